"""Encodes tf.Examples without TensorFlow, whose import takes seconds.

Features are ordered by name, so equal features are equal bytes. There are no empty
features: a missing value is a missing feature.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sluice.tfrecords.parse_tf_example import parse

Values = Sequence[int] | Sequence[float] | Sequence[bytes]

_LISTS: dict[type, str] = {int: "int64_list", float: "float_list", bytes: "bytes_list"}


def encode(features: Mapping[str, Values]) -> bytes:
    """Returns the serialized tf.Example.

    Args:
      features: per feature name its values, one or more, all int, all float or all
        bytes. Floats are stored in 32 bits.
    """
    example = parse(b"")
    example.features.SetInParent()
    for name, values in features.items():
        feature = example.features.feature[name]
        getattr(feature, _LISTS[type(values[0])]).value.extend(values)
    return example.SerializeToString(deterministic=True)
