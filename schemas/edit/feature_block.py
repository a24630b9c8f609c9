"""Writes a feature as reviewed schemas have it: a line for each of its fields."""

from __future__ import annotations

from typing import Any

from tensorflow_metadata.proto.v0 import schema_pb2

from schemas.edit.one_line import one_line

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
