"""Formats schemas as protobuf text, in the layout of the reviewed ones."""

from __future__ import annotations

from typing import Any

from google.protobuf import text_format
from google.protobuf.message import Message
from tensorflow_metadata.proto.v0 import schema_pb2

_FIRST = ("name", "type", "presence", "shape", "value_count")


def schema_text(schema: schema_pb2.Schema) -> str:
    """Returns a schema as text: a block per feature, its domain below it."""
    rest = schema_pb2.Schema()
    rest.CopyFrom(schema)
    del rest.feature[:], rest.string_domain[:]
    domains = {domain.name: domain for domain in schema.string_domain}
    blocks = [_printable(rest)] if rest.ListFields() else []
    for feature in schema.feature:
        blocks.append(block("feature", feature))
        if domain := domains.pop(feature.domain, None):
            blocks.append(block("string_domain", domain))
    blocks += [block("string_domain", domain) for domain in domains.values()]
    return "\n\n".join(blocks) + "\n"


def block(name: str, message: Message) -> str:
    """Returns ``name { ... }`` with one line per field of a message."""
    order = {field: place for place, field in enumerate(_FIRST)}
    fields = sorted(
        message.ListFields(), key=lambda item: order.get(item[0].name, len(order))
    )
    lines = [f"{name} {{"]
    for descriptor, value in fields:
        repeated = descriptor.label == descriptor.LABEL_REPEATED
        for item in value if repeated else [value]:
            one: Any = type(message)()
            if repeated:
                getattr(one, descriptor.name).append(item)
            elif descriptor.message_type is not None:
                getattr(one, descriptor.name).CopyFrom(item)
            else:
                setattr(one, descriptor.name, item)
            lines.append(f"  {_printable(one, as_one_line=True)}")
    return "\n".join([*lines, "}"])


def _printable(message: Message, *, as_one_line: bool = False) -> str:
    """Returns a message as text, escaped if a character cannot be printed."""
    text, escaped = (
        text_format.MessageToString(message, as_one_line=as_one_line, as_utf8=as_utf8)
        for as_utf8 in (True, False)
    )
    return (text if text.replace("\n", "").isprintable() else escaped).strip()
