"""Parses tf.Example without TensorFlow, whose import takes seconds.

The messages are declared here from the published definition, under names of our own so
that they do not meet TensorFlow's in one pool; the wire format is the same:
https://github.com/tensorflow/tensorflow/blob/v2.16.2/tensorflow/core/example/feature.proto
https://github.com/tensorflow/tensorflow/blob/v2.16.2/tensorflow/core/example/example.proto
"""

from __future__ import annotations

import warnings
from typing import Any

from google.protobuf import descriptor_pb2, message

from sluice.records.message_class import message_class
from sluice.records.tf_example_wire import check_wire_format

_FIELD = descriptor_pb2.FieldDescriptorProto
_PACKAGE = "sluice.tf_example"
_LISTS = (
    ("BytesList", _FIELD.TYPE_BYTES),
    ("FloatList", _FIELD.TYPE_FLOAT),
    ("Int64List", _FIELD.TYPE_INT64),
)
KINDS = ("bytes_list", "float_list", "int64_list")


def parse(data: bytes) -> Any:
    """Returns a record as a tf.Example.

    ``parse(data).features.feature[name]`` is a feature; its ``WhichOneof("kind")`` is
    one of ``KINDS`` or None, and that attribute's ``value`` holds the values.

    Raises:
      ValueError: the bytes are no tf.Example; says what they are instead.
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

    That it parses does not tell: many a message of a user's own has the fields 1 and 2.
    """
    with warnings.catch_warnings():
        # Of bytes after an end of a group, which are left out.
        warnings.simplefilter("ignore", RuntimeWarning)
        try:
            found = _SEQUENCE_EXAMPLE.FromString(data)
        except message.DecodeError:
            return False
    found.DiscardUnknownFields()
    return found.HasField("feature_lists") and bool(found.ByteSize() == len(data))


def _declare() -> tuple[Any, Any]:
    """Returns the classes of the messages tf.Example and tf.SequenceExample."""
    file = descriptor_pb2.FileDescriptorProto(
        name="sluice/tf_example.proto", package=_PACKAGE, syntax="proto3"
    )
    for name, kind in _LISTS:
        _add(file.message_type.add(name=name), "value", 1, kind, repeated=True)
    feature = file.message_type.add(name="Feature")
    feature.oneof_decl.add(name="kind")
    for number, (kind_name, (list_name, _)) in enumerate(
        zip(KINDS, _LISTS, strict=True)
    ):
        _add(feature, kind_name, number + 1, list_name)
        feature.field[number].oneof_index = 0
    _add_entries(file, "Features", "FeatureEntry", "feature", "Feature")
    file.message_type[-1].nested_type[0].options.map_entry = True
    _add(file.message_type.add(name="Example"), "features", 1, "Features")
    _add(
        file.message_type.add(name="FeatureList"),
        "feature",
        1,
        "Feature",
        repeated=True,
    )
    _add_entries(
        file, "FeatureLists", "FeatureListEntry", "feature_list", "FeatureList"
    )
    sequence = file.message_type.add(name="SequenceExample")
    _add(sequence, "context", 1, "Features")
    _add(sequence, "feature_lists", 2, "FeatureLists")
    return message_class(file, "Example"), message_class(file, "SequenceExample")


def _add_entries(file: Any, name: str, entry_name: str, field: str, value: str) -> None:
    """Adds a message of values by name: the features, or their lists."""
    parent = file.message_type.add(name=name)
    entry = parent.nested_type.add(name=entry_name)
    _add(entry, "key", 1, _FIELD.TYPE_STRING)
    _add(entry, "value", 2, value)
    _add(parent, field, 1, f"{name}.{entry_name}", repeated=True)


def _add(
    parent: Any, name: str, number: int, kind: int | str, *, repeated: bool = False
) -> None:
    field = parent.field.add(name=name, number=number)
    field.label = _FIELD.LABEL_REPEATED if repeated else _FIELD.LABEL_OPTIONAL
    if isinstance(kind, str):
        field.type = _FIELD.TYPE_MESSAGE
        field.type_name = f".{_PACKAGE}.{kind}"
    else:
        field.type = kind


_EXAMPLE, _SEQUENCE_EXAMPLE = _declare()
