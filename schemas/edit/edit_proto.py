"""Makes an edit in a schema's proto: what the edit of its text is held against."""

from __future__ import annotations

from collections.abc import Iterable

from tensorflow_metadata.proto.v0 import schema_pb2

from schemas.edit.edit import AddFeature, AddValues, Edit, Owner, Put, Replace


def edit_proto(schema: schema_pb2.Schema, edits: Iterable[Edit]) -> schema_pb2.Schema:
    """Returns an edited copy of a schema.

    Raises:
      KeyError: an edit is of something that the schema does not have.
    """
    edited = schema_pb2.Schema()
    edited.CopyFrom(schema)
    for edit in edits:
        match edit:
            case AddFeature():
                edited.feature.append(edit.feature)
            case Put():
                parent = _find(edited, edit.owner)
                for step in edit.path[:-1]:
                    parent = getattr(parent, step)
                setattr(parent, edit.path[-1], edit.value)
            case AddValues():
                found = _find(edited, edit.owner)
                inline = isinstance(found, schema_pb2.Feature)
                (found.string_domain if inline else found).value.extend(edit.values)
            case Replace():
                feature = _find(edited, edit.owner)
                if not feature.HasField(edit.old):
                    raise KeyError(f"{edit.owner.name}: no {edit.old}")
                feature.ClearField(edit.old)
                getattr(feature, edit.new).CopyFrom(getattr(edit.message, edit.new))
    return edited


def _find(
    schema: schema_pb2.Schema, owner: Owner
) -> schema_pb2.Feature | schema_pb2.StringDomain:
    for item in getattr(schema, owner.kind):
        if item.name == owner.name:
            return item
    raise KeyError(f"no {owner.kind} {owner.name!r}")
