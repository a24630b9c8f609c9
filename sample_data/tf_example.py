"""Encodes tf.Examples without TensorFlow, whose import takes seconds.

Features are ordered by name, so equal features are equal bytes. There are no empty
features: a missing value is a missing feature.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sluice.tfrecords.parse_tf_example import parse

Values = Sequence[int] | Sequence[float] | Sequence[bytes]

_LISTS: dict[type, str] = {
    int: "int64_list",
    float: "float_list",
    bytes: "bytes_list",
}


def encode(features: Mapping[str, Values]) -> bytes:
    """Returns the serialized tf.Example.

    Args:
      features: per feature name its values, one or more, all int, all float or all
        bytes. Floats are stored in 32 bits.

    Raises:
      TypeError: a feature's values are of no or of several of these types.
      ValueError: a feature has no values.
    """
    example = parse(b"")
    example.features.SetInParent()
    for name, values in features.items():
        if not values:
            raise ValueError(f"feature {name!r} has no values: leave it out")
        kinds = {type(value) for value in values}
        if len(kinds) > 1 or not kinds <= _LISTS.keys():
            names = sorted(kind.__name__ for kind in kinds)
            raise TypeError(f"feature {name!r} has values of type {', '.join(names)}")
        feature = example.features.feature[name]
        getattr(feature, _LISTS[kinds.pop()]).value.extend(values)
    return example.SerializeToString(deterministic=True)
