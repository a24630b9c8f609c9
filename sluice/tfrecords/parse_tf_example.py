"""Parses tf.Example without TensorFlow, whose import takes seconds.

The messages are those of ``tf_example.proto``, TensorFlow's under names of our own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from google.protobuf import message

from sluice.tfrecords import tf_example_pb2

_EXAMPLE: Any = tf_example_pb2.Example
_MAX_SHOWN = 60
KINDS = ("bytes_list", "float_list", "int64_list")


def parse(data: bytes) -> Any:
    """Returns a record as a tf.Example.

    ``parse(data).features.feature[name]`` is a feature; its ``WhichOneof("kind")`` is
    one of ``KINDS`` or None, and that attribute's ``value`` holds the values.

    Raises:
      ValueError: the bytes are no tf.Example, with the reason.
    """
    example = _EXAMPLE()
    try:
        read = example.MergeFromString(data)
    except message.DecodeError as error:
        raise ValueError("not a tf.Example: the bytes do not parse") from error
    example.DiscardUnknownFields()
    size = example.ByteSize()
    # It is also shorter than the record where a name is there twice.
    if size != len(data) and (
        read != len(data) or size != _EXAMPLE.FromString(data).ByteSize()
    ):
        raise ValueError(
            "not a tf.Example: it has fields of another message, as a "
            "tf.SequenceExample has: write each of its feature lists as one feature of "
            "a tf.Example, a list of values"
        )
    return example


def types_of(example: Any) -> dict[str, str]:
    """Returns the kind of list of each feature of a tf.Example that has one."""
    kinds = ((x, y.WhichOneof("kind")) for x, y in example.features.feature.items())
    return {name: kind for name, kind in kinds if kind}


def values_of(feature: Any) -> Sequence[Any]:
    """Returns the values of a feature; none of None."""
    kind = feature.WhichOneof("kind") if feature is not None else None
    return getattr(feature, kind).value if kind else ()


def as_text(value: bytes) -> str | None:
    """Returns bytes as text, None if they are not UTF-8."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None


def show_values(values: Sequence[Any]) -> str:
    """Returns the first value, readable, and the number of further values."""
    if not values:
        return "no values"
    more = f" and {len(values) - 1} more values" if len(values) > 1 else ""
    value = values[0]
    shown = f"{value:g}" if isinstance(value, float) else str(value)
    if isinstance(value, bytes):
        text, size = as_text(value), len(value)
        shown = repr(text) if text is not None else f"{size:,} bytes that are not text"
    return (shown if len(shown) <= _MAX_SHOWN else f"{shown[:_MAX_SHOWN]}...") + more
