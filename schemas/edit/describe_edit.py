"""Says what an edit writes; it shows nothing of a schema but what is new."""

from __future__ import annotations

from typing import Any

from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2

from schemas.edit.edit import AddFeature, AddValues, Edit, Put
from schemas.edit.feature_block import feature_block


def describe_edit(edit: Edit) -> list[str]:
    """Returns the lines of schema text that an edit brings."""
    if isinstance(edit, Put):
        return [_one_line(edit.message())]
    if isinstance(edit, AddValues):
        added = [schema_pb2.StringDomain(value=[value]) for value in edit.values]
        return [_one_line(value) for value in added]
    if isinstance(edit, AddFeature):
        return feature_block(edit.feature)
    return [f"{_one_line(edit.message)}  (in place of {edit.old})"]


def _one_line(message: Any) -> str:
    return text_format.MessageToString(message, as_one_line=True, as_utf8=True).strip()
