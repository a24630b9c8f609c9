"""Built-in models, one module each, and the ``ModelInputs`` they are built from.

A module has ``build_model(inputs: ModelInputs, params: dict) -> tf.keras.Model``, which
returns an uncompiled model of a dict of transformed features. Its output is class
probabilities ``[batch, classes]``, or for two classes the probability ``[batch, 1]`` of
the second one. A new built-in model is registered in ``BUNDLED_MODELS`` of
``pipeline.config.config``; a config names the user's own by import path.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from pipeline.config.features import FeatureSet, identifier


@dataclass(frozen=True)
class ModelInputs:
    """The transformed features.

    Attributes:
      shapes: transformed name -> shape without the batch; images are decoded.
      dtypes: transformed name -> dtype.
      number_of_ids: transformed name of a categorical feature -> number of ids.
    """

    feature_set: FeatureSet
    shapes: Mapping[str, tuple[int, ...]]
    dtypes: Mapping[str, Any]
    number_of_ids: Mapping[str, int]

    def keras_inputs(self) -> dict[str, Any]:
        """Returns one new ``tf.keras.Input`` per transformed feature, by name."""
        return {
            name: tf.keras.Input(shape, dtype=self.dtypes[name], name=identifier(name))
            for name, shape in self.shapes.items()
        }

    def output_layer(self) -> Any:
        """Returns the layer that gives the probabilities of the classes, in float32.

        Lower precision would lose small probabilities, and with them the loss.
        """
        classes = len(self.feature_set.label.class_names)
        dense = tf.keras.layers.Dense
        if classes == 2:
            return dense(1, "sigmoid", name="probability", dtype="float32")
        return dense(classes, "softmax", name="probabilities", dtype="float32")
