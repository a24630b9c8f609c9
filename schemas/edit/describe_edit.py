"""Says what an edit writes; it shows nothing of a schema but what is new."""

from __future__ import annotations

from tensorflow_metadata.proto.v0 import schema_pb2

from schemas.edit.edit import AddFeature, AddValues, Edit, Put
from schemas.edit.feature_block import feature_block
from schemas.edit.one_line import one_line


def describe_edit(edit: Edit) -> list[str]:
    """Returns the lines of schema text that an edit brings."""
    if isinstance(edit, Put):
        return [one_line(edit.message())]
    if isinstance(edit, AddValues):
        added = [schema_pb2.StringDomain(value=[value]) for value in edit.values]
        return [one_line(value) for value in added]
    if isinstance(edit, AddFeature):
        return feature_block(edit.feature)
    return [f"{one_line(edit.message)}  (in place of {edit.old})"]
