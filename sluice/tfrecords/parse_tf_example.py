"""Parses tf.Example without TensorFlow, whose import takes seconds.

The messages are those of ``tf_example.proto``, TensorFlow's under names of our own.
"""

from __future__ import annotations

import warnings
from typing import Any

from google.protobuf import message

from sluice.tfrecords import tf_example_pb2
from sluice.tfrecords.check_tf_example import check_wire_format

_EXAMPLE: Any = tf_example_pb2.Example
_SEQUENCE_EXAMPLE: Any = tf_example_pb2.SequenceExample
KINDS = ("bytes_list", "float_list", "int64_list")


def parse(data: bytes) -> Any:
    """Returns a record as a tf.Example.

    ``parse(data).features.feature[name]`` is a feature; its ``WhichOneof("kind")`` is
    one of ``KINDS`` or None, and that attribute's ``value`` holds the values.

    Raises:
      ValueError: the bytes are no tf.Example, with the reason.
    """
    try:
        check_wire_format(data)
        return _EXAMPLE.FromString(data)
    except ValueError as error:
        if is_sequence_example(data):
            raise ValueError("a tf.SequenceExample, not a tf.Example") from error
        raise
    except message.DecodeError as error:
        raise ValueError("not a tf.Example: the bytes do not parse") from error


def is_sequence_example(data: bytes) -> bool:
    """Whether a record is a tf.SequenceExample, with lists of features.

    Parsing alone does not prove it: many other messages have the fields 1 and 2.
    """
    with warnings.catch_warnings():
        # Protobuf warns of bytes after the end of a group.
        warnings.simplefilter("ignore", RuntimeWarning)
        try:
            found = _SEQUENCE_EXAMPLE.FromString(data)
        except message.DecodeError:
            return False
    found.DiscardUnknownFields()
    return found.HasField("feature_lists") and bool(found.ByteSize() == len(data))
