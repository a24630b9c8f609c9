"""Encodes tf.Examples without TensorFlow, whose import takes seconds.

The message is small and its wire format fixed, so it is encoded here, field by field:
https://github.com/tensorflow/tensorflow/blob/v2.16.2/tensorflow/core/example/feature.proto
Features are ordered by name. A protobuf library promises no order for a map, so this is
what makes equal features equal bytes, in every process and with every version.

It only encodes, and it has no empty features: a missing value is a missing feature.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import cast

from sluice.records.tf_example_wire import varint

Values = Sequence[int] | Sequence[float] | Sequence[bytes]

# Field numbers of the three kinds of lists in message Feature.
_BYTES_LIST, _FLOAT_LIST, _INT64_LIST = 1, 2, 3


def encode(features: Mapping[str, Values]) -> bytes:
    """Returns the serialized tf.Example.

    Args:
      features: per feature name its values, one or more, all int, all float or all
        bytes. Floats are stored in 32 bits.

    Raises:
      TypeError: a feature's values are of no or of several of these types.
      ValueError: a feature has no values.
    """
    entries = b"".join(
        _field(1, _field(1, name.encode()) + _field(2, _feature(name, features[name])))
        for name in sorted(features)
    )
    return _field(1, entries)


def _feature(name: str, values: Values) -> bytes:
    if not values:
        raise ValueError(f"feature {name!r} has no values: leave it out")
    kinds = {type(value) for value in values}
    if kinds == {int}:
        integers = cast(Sequence[int], values)
        packed = b"".join(varint(value & 0xFFFFFFFFFFFFFFFF) for value in integers)
        return _field(_INT64_LIST, _field(1, packed))
    if kinds == {float}:
        packed = struct.pack(f"<{len(values)}f", *values)
        return _field(_FLOAT_LIST, _field(1, packed))
    if kinds == {bytes}:
        strings = cast(Sequence[bytes], values)
        return _field(_BYTES_LIST, b"".join(_field(1, value) for value in strings))
    names = sorted(kind.__name__ for kind in kinds)
    raise TypeError(f"feature {name!r} has values of type {', '.join(names)}")


def _field(number: int, content: bytes) -> bytes:
    """Encodes a length-delimited field (wire type 2)."""
    return varint(number << 3 | 2) + varint(len(content)) + content
