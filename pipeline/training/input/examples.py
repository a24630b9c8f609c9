"""From serialized examples to the batches that a model is trained on."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from pipeline.config.features import SAMPLE_WEIGHT_KEY, FeatureSet
from pipeline.training.input.images import decode_pixels, scale_pixels

_CHUNK_BYTES = 16_000_000
_MAX_CHUNK_SIZE = 1024

Examples = dict[str, tf.Tensor]
# For functions of datasets: they have no control flow, and converting takes seconds.
not_converted = tf.autograph.experimental.do_not_convert


@dataclass(frozen=True)
class ExampleFormat:
    """What a transformed example holds.

    Attributes:
      spec: of ``tf.io.parse_example``; dense features only.
      feature_set: the image features and the label.
    """

    spec: Mapping[str, Any]
    feature_set: FeatureSet

    @functools.cached_property
    def parse(self) -> Any:
        """Traced function from serialized to parsed examples.

        With label and weight; images as uint8 pixels.
        """

        def parse(serialized: tf.Tensor) -> Examples:
            examples = tf.io.parse_example(serialized, dict(self.spec))
            return decode_pixels(examples, self.feature_set.images)

        return traced(parse)

    @functools.cached_property
    def parsed_spec(self) -> dict[str, tf.TensorSpec]:
        """Specs of one parsed example."""
        outputs = self.parse.structured_outputs
        return {
            name: tf.TensorSpec(item.shape[1:], item.dtype)
            for name, item in outputs.items()
        }

    @property
    def chunk_size(self) -> int:
        """Number of records to read or parse at a time."""
        size = _CHUNK_BYTES // example_bytes(self.parsed_spec)
        return min(max(1, size), _MAX_CHUNK_SIZE)

    def split(self, examples: Examples) -> tuple[Examples, tf.Tensor, tf.Tensor | None]:
        """Returns a model's features, class ids ``[batch, 1]``, weights ``[batch]``.

        Pixels are float32 in 0..1, weights None where no feature has them.
        """
        features = scale_pixels(examples, self.feature_set.images)
        labels = features.pop(self.feature_set.label.key)
        weights = features.pop(SAMPLE_WEIGHT_KEY, None)
        return features, labels, None if weights is None else weights[:, 0]


def traced(function: Callable[[tf.Tensor], Any]) -> Any:
    """Returns the concrete function of a function of serialized examples ``[batch]``.

    It has been called once: threads that do so first would each optimize it.
    """
    concrete = tf.function(function, autograph=False).get_concrete_function(
        tf.TensorSpec([None], tf.string)
    )
    with tf.device("CPU:0"):
        concrete(tf.zeros([0], tf.string))
    return concrete


def example_bytes(spec: Mapping[str, tf.TensorSpec], string_bytes: int = 64) -> int:
    """Returns the size of an example in memory, with an assumed size of strings."""
    sizes = (
        string_bytes if item.dtype == tf.string else item.dtype.size
        for item in spec.values()
    )
    counts = (item.shape.num_elements() for item in spec.values())
    return sum(size * count for size, count in zip(sizes, counts, strict=True))
