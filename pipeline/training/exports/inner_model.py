"""The Keras model inside a SavedModel, rebuilt from its weights.

It takes transformed features, images decoded. TFLite has no lookup tables that it could
initialize, and TF.js' converter fails on a SavedModel with preprocessing.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tensorflow as tf

from pipeline.config.features import FeatureSet, identifiers
from pipeline.config.train import Train
from pipeline.config.tune import with_values
from pipeline.training.build import build_model, model_inputs
from pipeline.training.models.published_weights import (
    load_weights,
    refresh_normalization,
)
from pipeline.training.strategy.distribution import Distribution
from sluice.errors import NodeError
from sluice.secrets import resolve


def rebuild(
    config: Mapping[str, Any], transform: Any, weights: Path
) -> tuple[tf.keras.Model, dict[str, str]]:
    """Returns the trained model and its inputs, see ``with_listed_inputs``.

    Args:
      config: as ``run_fn`` takes it: ``feature_set``, ``model``, ``model_params``; and
        ``tuned``, the values of a Tuner, if there was one.
      transform: the ``tft.TFTransformOutput`` that it was trained with.
      weights: file of its weights.

    Raises:
      NodeError: it is a subclass of ``tf.keras.Model``, which has only code.
    """
    inputs = model_inputs(FeatureSet.model_validate(config["feature_set"]), transform)
    here = Distribution(tf.distribute.get_strategy(), "one_device", "", 1)
    # All values that were tuned; those of the training are of no use here.
    train, tuned = Train.model_construct(), config.get("tuned", {})
    _, params = with_values(train, config["model_params"], tuned)
    model = build_model(config["model"], resolve(params), inputs, here)
    load_weights(model, weights)
    refresh_normalization(model)
    return with_listed_inputs(model, [*inputs.shapes])


def with_listed_inputs(
    model: tf.keras.Model, features: list[str]
) -> tuple[tf.keras.Model, dict[str, str]]:
    """Returns a model with a list of inputs, as TF.js loads no other.

    Also the transformed features that it takes, in order, and by these their names in
    exports.

    Args:
      model: takes a dict of features, or tensors with their names.
      features: transformed names of all.

    Raises:
      NodeError: it is a subclass of ``tf.keras.Model``.
    """
    if not model.inputs:
        raise NodeError(
            "the model is a subclass of tf.keras.Model: only models of layers are "
            "exported",
            where="export",
            hint="return tf.keras.Model(inputs, outputs), with yours as a layer",
        )
    given = model.input if isinstance(model.input, dict) else None
    tensors = given or {tensor.name: tensor for tensor in model.inputs}
    used = {
        name: key
        for name, key in identifiers(features).items()
        if name in tensors or key in tensors
    }
    inputs = [tensors.get(name, tensors.get(key)) for name, key in used.items()]
    return tf.keras.Model(inputs, model.outputs[0]), used
