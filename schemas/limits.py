"""Finds entries of a schema that cannot work, such as a limit that everything meets.

Some of them TFDV passes over: what is compared with NaN is never too small, and a
feature without a name is that of no data. A min above its max refuses whatever comes.
Others it calls invalid (INVALID_SCHEMA_SPECIFICATION, without words), but only once
data is there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from google.protobuf.message import Message
from tensorflow_metadata.proto.v0 import schema_pb2

_FRACTIONS = {
    "min_fraction",
    "min_domain_mass",
    "min_coverage",
    "min_fraction_of_sequences",
    "max_fraction_of_sequences",
    "minimum_supported_image_fraction",
}
# By message and field: the least number that TFDV takes.
_LEAST = {("ValueCount", "min"): 0, ("ValueCount", "max"): 0, ("Dim", "size"): 1}
_NAMED = {"Feature", "SparseFeature", "WeightedFeature"}
_LISTS = {"domain", "string_domain"}


def invalid_entries(message: Message, path: str = "") -> Iterator[str]:
    """Yields what is wrong with a schema, or a part of it, and where.

    Args:
      message: a schema, or a part of one and all that is inside of it.
      path: where the part is.
    """
    if message.DESCRIPTOR.name in _NAMED and not getattr(message, "name", ""):
        yield f"{path} has no name"
    if isinstance(message, schema_pb2.Feature) and (
        message.HasField("distribution_constraints")
        and message.WhichOneof("domain_info") not in _LISTS
    ):
        yield f"{path}.distribution_constraints needs a string_domain or domain"
    for field, value in message.ListFields():
        place = f"{path}.{field.name}".removeprefix(".")
        if field.message_type is None:
            if fault := _fault(message, field.name, value):
                yield f"{place} {fault}"
        elif isinstance(value, Message):
            yield from invalid_entries(value, place)
        elif not field.message_type.GetOptions().map_entry:
            for number, item in enumerate(value, start=1):
                name = getattr(item, "name", "")
                which = repr(name) if name else f"number {number}"
                yield from invalid_entries(item, f"{place} {which}")


def _fault(message: Message, name: str, value: Any) -> str | None:
    """Returns what is wrong with one number; None for what is no limit."""
    is_limit = name.startswith(("min", "max")) or name == "threshold"
    if is_limit and isinstance(value, float) and math.isnan(value):
        return "is NaN; every comparison with NaN is false"
    if name in _FRACTIONS and not 0 <= value <= 1:
        return f"is {value:g}, not a fraction between 0 and 1"
    least = _LEAST.get((message.DESCRIPTOR.name, name))
    if least is not None and value < least:
        return f"is {value}, less than {least}"
    other = name.replace("max", "min", 1)
    if name.startswith("max") and other in message.DESCRIPTOR.fields_by_name:
        low = getattr(message, other)
        if message.HasField(other) and low > value:
            return f"is {value}, less than {other}, which is {low}"
    return None
