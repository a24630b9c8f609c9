"""Built-in models, one module each, and the ``ModelInputs`` they are built from.

A module has ``build_model(inputs: ModelInputs, params: dict) -> tf.keras.Model``, which
returns an uncompiled model of a dict of transformed features; one of the user's own may
be of Keras 3. Its output is class
probabilities ``[batch, classes]``, or of two classes, one of which is right, the
probability ``[batch, 1]`` of the second; of a regression it is ``[batch, targets]``, in
the unit of the label. A new built-in model is registered in ``BUNDLED_MODELS`` of
``pipeline.config.config``; a config names the user's own by import path.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from pipeline.config.features import FeatureSet, identifiers

# The last layer of a regression.
TARGET_SCALE = "target_scale"


@dataclass(frozen=True)
class ModelInputs:
    """The transformed features.

    Attributes:
      shapes: transformed name -> shape without the batch; images are decoded.
      dtypes: transformed name -> dtype.
      number_of_ids: transformed name of a categorical feature -> number of ids.
      units: number of the model's outputs.
    """

    feature_set: FeatureSet
    shapes: Mapping[str, tuple[int, ...]]
    dtypes: Mapping[str, Any]
    number_of_ids: Mapping[str, int]
    units: int

    def keras_inputs(self, keras: Any = tf.keras) -> dict[str, Any]:
        """Returns one new ``Input`` of a Keras per transformed feature, by name.

        ``keras`` is the module with which the model is made: of Keras 3, ``keras``.
        """
        # Keras 3 takes any name, but only that of the key.
        names = identifiers(self.shapes) if keras is tf.keras else {}
        return {
            name: keras.Input(
                self.shapes[name],
                dtype=tf.as_dtype(self.dtypes[name]).name,
                name=names.get(name, name),
            )
            for name in self.shapes
        }

    def output_layer(self, keras: Any = tf.keras) -> Any:
        """Returns the layer that gives what the model predicts, in float32.

        Lower precision would lose small probabilities, and with them the loss. That of
        a regression is two layers, of which the second is not trained: it turns
        z-scores into the unit of the label, see ``build.set_target_scale``. ``keras``
        is as in ``keras_inputs``.
        """
        task, dense = self.feature_set.label.task, keras.layers.Dense
        if task == "regression":
            z_scores = dense(self.units, name="z_scores", dtype="float32")
            scale = dense(
                self.units,
                kernel_initializer="identity",
                trainable=False,
                name=TARGET_SCALE,
                dtype="float32",
            )
            layers = [z_scores, scale]
            return _Chain(layers) if keras is tf.keras else keras.Sequential(layers)
        if task == "multi_label" or self.units == 1:
            return dense(self.units, "sigmoid", name="probability", dtype="float32")
        return dense(self.units, "softmax", name="probabilities", dtype="float32")


class _Chain(tf.keras.layers.Layer):
    """Calls layers one after another.

    A subclassed model whose attribute it is tracks their weights; a functional model
    has those layers alone.
    """

    def __init__(self, layers: list[Any]) -> None:
        super().__init__()
        self._chained = layers

    def __call__(self, x: Any) -> Any:
        for layer in self._chained:
            x = layer(x)
        return x


@tf.keras.utils.register_keras_serializable("sluice")
class MeanOfWords(tf.keras.layers.Layer):
    """The mean of ``[batch, length, width]`` over the words whose id is not 0.

    It is 0 where there are none, where that of ``GlobalAveragePooling1D`` is NaN.
    """

    def call(self, inputs: Any) -> Any:
        """Returns ``[batch, width]`` from vectors and ids ``[batch, length]``."""
        vectors, ids = inputs
        there = tf.cast(ids > 0, vectors.dtype)[..., tf.newaxis]
        count = tf.maximum(tf.reduce_sum(there, axis=1), 1)
        return tf.reduce_sum(vectors * there, axis=1) / count
