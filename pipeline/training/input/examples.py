"""From serialized examples to the batches that a model is trained on."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from contextlib import suppress
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


def raw_spec(
    tf_transform_output: Any, feature_set: FeatureSet, all_features: bool
) -> dict[str, Any]:
    """Returns the spec of what the preprocessing reads, label and weight included.

    Of the schema's features it has all if ``all_features``, as the user's preprocessing
    may need any; otherwise the config's.
    """
    label, weight = feature_set.label.feature, feature_set.sample_weight
    needed = {*feature_set.features, label, weight}
    return {
        name: spec
        for name, spec in tf_transform_output.raw_feature_spec().items()
        if all_features or name in needed
    }


@dataclass(frozen=True)
class ExampleFormat:
    """How a serialized example becomes one that a model is trained on.

    Attributes:
      raw_spec: of ``tf.io.parse_example``: what the preprocessing reads.
      transform: the preprocessing, a function of parsed examples.
      spec: what it returns; dense features only.
      feature_set: the image features and the label.
    """

    raw_spec: Mapping[str, Any]
    transform: Callable[[Any], Examples]
    spec: Mapping[str, Any]
    feature_set: FeatureSet

    def transformed(self, serialized: tf.Tensor) -> Examples:
        """Returns the transformed features of serialized examples ``[batch]``."""
        outputs = self.transform(tf.io.parse_example(serialized, dict(self.raw_spec)))
        return {
            name: tf.ensure_shape(outputs[name], [None, *feature.shape])
            for name, feature in self.spec.items()
        }

    @functools.cached_property
    def parse(self) -> Any:
        """Traced function from serialized ``[batch]`` to parsed examples.

        With label and weight; images as uint8 pixels.
        """

        def parse(serialized: tf.Tensor) -> Examples:
            return decode_pixels(self.transformed(serialized), self.feature_set.images)

        concrete = tf.function(parse, autograph=False).get_concrete_function(
            tf.TensorSpec([None], tf.string)
        )
        # Otherwise threads that call it first would each optimize it. A user's
        # preprocessing may fail without examples.
        with suppress(tf.errors.OpError), tf.device("CPU:0"):
            concrete(tf.zeros([0], tf.string))
        return concrete

    def parse_on_cpu(self, serialized: tf.Tensor) -> Examples:
        """Does the same from any thread."""
        with tf.device("CPU:0"):
            return self.parse(serialized)

    @functools.cached_property
    def parsed_spec(self) -> dict[str, tf.TensorSpec]:
        """Specs of one parsed example."""
        outputs = self.parse.structured_outputs
        return {
            name: tf.TensorSpec(tensor.shape[1:], tensor.dtype)
            for name, tensor in outputs.items()
        }

    def example_bytes(self, string_bytes: int = 64) -> int:
        """Returns the size of a parsed example, with an assumed size of strings."""
        return sum(
            spec.shape.num_elements()
            * (string_bytes if spec.dtype == tf.string else spec.dtype.size)
            for spec in self.parsed_spec.values()
        )

    @property
    def chunk_size(self) -> int:
        """Number of records to read or parse at a time."""
        size = _CHUNK_BYTES // self.example_bytes()
        return min(max(1, size), _MAX_CHUNK_SIZE)

    def split(self, examples: Examples) -> tuple[Examples, tf.Tensor, tf.Tensor | None]:
        """Returns a model's features, labels ``[batch, ...]``, weights ``[batch]``.

        Pixels are float32 in 0..1, weights None where no feature has them.
        """
        features = scale_pixels(examples, self.feature_set.images)
        labels = features.pop(self.feature_set.label.key)
        weights = features.pop(SAMPLE_WEIGHT_KEY, None)
        return features, labels, None if weights is None else weights[:, 0]
