"""The Keras model inside a SavedModel, rebuilt from its weights, and its inputs.

It takes transformed features, images decoded. TFLite has no lookup tables that it could
initialize, and TF.js' converter fails on a SavedModel with preprocessing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tensorflow as tf

from pipeline.config.features import FeatureSet, identifier
from pipeline.config.train import Train
from pipeline.config.tuned_values import with_values
from pipeline.training.build import build_model, model_inputs
from pipeline.training.models.published_weights import (
    load_weights,
    refresh_normalization,
)
from pipeline.training.strategy.distribution import Distribution
from sluice.errors import NodeError
from sluice.secrets import resolve


@dataclass(frozen=True)
class InnerModel:
    """A model of tensors by name.

    Attributes:
      model: as the user's function returns it.
      names: by the model's own name of an input, its name in exports.
      specs: of the inputs by their names in exports, in their order there.
      output: the name of its output.
    """

    model: tf.keras.Model
    names: Mapping[str, str]
    specs: Mapping[str, tf.TensorSpec]
    output: str

    def __call__(self, **tensors: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns the predictions by the name of the output."""
        given = {own: tensors[name] for own, name in self.names.items()}
        return {self.output: self.model(given, training=False)}

    def functional(self) -> tf.keras.Model:
        """Returns the model with a list of inputs: TF.js loads no other.

        Raises:
          NodeError: it is a subclass of ``tf.keras.Model``, which has only code.
        """
        if not self.model.inputs:
            raise NodeError(
                "the model is a subclass of tf.keras.Model: TF.js and .keras files "
                "hold only models of layers",
                where="export",
                hint="build it with tf.keras.Model(inputs, outputs), or export tflite",
            )
        inputs = _inputs_of(self.model)
        return tf.keras.Model(
            [inputs[name] for name in self.specs], self.model.outputs[0]
        )


def rebuild(
    config: Mapping[str, Any], transform: Any, weights: Path, output: str
) -> InnerModel:
    """Returns the trained model.

    Args:
      config: as ``run_fn`` takes it: ``feature_set``, ``model``, ``model_params``; and
        ``tuned``, the values of a Tuner, if there was one.
      transform: the ``tft.TFTransformOutput`` that it was trained with.
      weights: file of its weights.
      output: name of its output.
    """
    inputs = model_inputs(FeatureSet.model_validate(config["feature_set"]), transform)
    here = Distribution(tf.distribute.get_strategy(), "one_device", "", 1)
    # All values that were tuned; those of the training are of no use here.
    train, tuned = Train.model_construct(), config.get("tuned", {})
    _, params = with_values(train, config["model_params"], tuned)
    model = build_model(config["model"], resolve(params), inputs, here)
    load_weights(model, weights)
    refresh_normalization(model)
    used = _inputs_of(model)
    names = {name: identifier(name) for name in inputs.shapes}
    names = {key: name for key, name in names.items() if not used or name in used}
    specs = {
        name: tf.TensorSpec([None, *inputs.shapes[key]], inputs.dtypes[key], name)
        for key, name in names.items()
    }
    return InnerModel(model, names, specs, output)


def _inputs_of(model: tf.keras.Model) -> dict[str, Any]:
    """Returns a model's inputs by name; none of a subclass of ``tf.keras.Model``."""
    if not model.inputs:
        return {}
    if isinstance(model.input, dict):
        return {identifier(key): tensor for key, tensor in model.input.items()}
    return {tensor.name: tensor for tensor in model.inputs}
