"""Formats schemas as protobuf text, in the layout of reviewed ones."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2

from schemas.edit.edit import AddFeature, AddValues, Edit, Put

_BOUNDS = ("min", "max")


def without_values(
    schema: schema_pb2.Schema, sensitive: Collection[str]
) -> schema_pb2.Schema:
    """Returns a copy without listed values and bounds of sensitive features.

    Flags such as ``is_categorical``, and image domains, are kept.
    """
    found = schema_pb2.Schema()
    found.CopyFrom(schema)
    for feature in found.feature:
        if feature.name not in sensitive:
            continue
        for field in ("domain", "string_domain", "bool_domain"):
            feature.ClearField(field)
        for field in ("int_domain", "float_domain"):
            if feature.HasField(field):
                for bound in _BOUNDS:
                    getattr(feature, field).ClearField(bound)
    used = {feature.domain for feature in found.feature}
    kept = [domain for domain in found.string_domain if domain.name in used]
    del found.string_domain[:]
    found.string_domain.extend(kept)
    return found


def one_line(message: Any) -> str:
    """Returns the fields of a message, such as ``presence { min_fraction: 0.9 }``."""
    return message_text(message, as_one_line=True)


def message_text(message: Any, *, as_one_line: bool = False) -> str:
    """Returns a message as text; characters that cannot be printed are escaped."""
    text, escaped = (
        text_format.MessageToString(message, as_one_line=as_one_line, as_utf8=as_utf8)
        for as_utf8 in (True, False)
    )
    is_printable = text.replace("\n", "").isprintable()
    return (text if is_printable else escaped).strip()


_FIRST = ("name", "type", "presence", "shape", "value_count")


def feature_block(feature: schema_pb2.Feature) -> list[str]:
    """Returns the lines of ``feature { ... }``."""
    order = {name: place for place, name in enumerate(_FIRST)}
    fields = sorted(
        feature.ListFields(), key=lambda item: order.get(item[0].name, len(order))
    )
    lines = ["feature {"]
    for descriptor, value in fields:
        repeated = descriptor.label == descriptor.LABEL_REPEATED
        for item in value if repeated else [value]:
            lines.append(f"  {_line(descriptor, item)}")
    return [*lines, "}"]


def _line(descriptor: Any, value: Any) -> str:
    one = schema_pb2.Feature()
    if descriptor.label == descriptor.LABEL_REPEATED:
        getattr(one, descriptor.name).append(value)
    elif descriptor.message_type is not None:
        getattr(one, descriptor.name).CopyFrom(value)
    else:
        setattr(one, descriptor.name, value)
    line = one_line(one)
    return f"{line[:-3]}{{}}" if line.endswith("{ }") else line


def plain_text(schema: schema_pb2.Schema) -> str:
    """Returns a schema as text."""
    rest = schema_pb2.Schema()
    rest.CopyFrom(schema)
    del rest.feature[:]
    blocks = ["\n".join(feature_block(feature)) for feature in schema.feature]
    if rest.ListFields():
        blocks.insert(0, message_text(rest))
    return "\n\n".join(blocks) + "\n"


def describe_edit(edit: Edit) -> list[str]:
    """Returns the lines of schema text that an edit adds."""
    if isinstance(edit, Put):
        return [one_line(edit.message())]
    if isinstance(edit, AddValues):
        added = [schema_pb2.StringDomain(value=[value]) for value in edit.values]
        return [one_line(value) for value in added]
    if isinstance(edit, AddFeature):
        return feature_block(edit.feature)
    return [f"{one_line(edit.message)}  (in place of {edit.old})"]
