"""From serialized examples to the batches that a model is trained on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from pipeline.config.feature_set import SAMPLE_WEIGHT_KEY, FeatureSet
from pipeline.training.input.images import decode_pixels, scale_pixels

Examples = dict[str, tf.Tensor]


@dataclass(frozen=True)
class ExampleFormat:
    """What a transformed example holds.

    Attributes:
      spec: of ``tf.io.parse_example``; dense features only.
      feature_set: the image features and the label.
    """

    spec: Mapping[str, Any]
    feature_set: FeatureSet

    def parse(self, serialized: tf.Tensor) -> Examples:
        """Returns parsed examples, with label and weight; images as uint8 pixels."""
        examples = tf.io.parse_example(serialized, dict(self.spec))
        return decode_pixels(examples, self.feature_set.images)

    @property
    def parsed_spec(self) -> dict[str, tf.TensorSpec]:
        """Specs of one parsed example."""
        none = tf.data.Dataset.from_tensors(tf.zeros([0], tf.string))
        parse = tf.autograph.experimental.do_not_convert(self.parse)
        return none.map(parse).unbatch().element_spec

    def split(self, examples: Examples) -> tuple[Examples, tf.Tensor, tf.Tensor | None]:
        """Returns a model's features, class ids ``[batch, 1]``, weights ``[batch]``.

        Pixels are float32 in 0..1, weights None where no feature has them.
        """
        features = scale_pixels(examples, self.feature_set.images)
        labels = features.pop(self.feature_set.label.key)
        weights = features.pop(SAMPLE_WEIGHT_KEY, None)
        return features, labels, None if weights is None else weights[:, 0]
