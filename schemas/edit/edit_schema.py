"""Edits the text of a reviewed schema, and verifies the result.

The text is edited in place (``edit_text``), and the same edits are made in the parsed
proto. The new text is returned only if it parses to that proto. The file is replaced
atomically. No backup is written: a reviewed schema is under version control.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2

from schemas.edit.edit import AddFeature, AddValues, Edit, Owner, Put, Replace
from schemas.edit.edit_text import edit_text
from sluice.errors import ConfigError, UsageError
from sluice.storage import atomic


def edit_schema(text: str, edits: Sequence[Edit], where: object) -> str:
    """Returns a schema's text with the edits, comments and order kept.

    Args:
      text: a schema in protobuf's text format.
      edits: in any order. A value added twice is added once; of two replacements of
        one field the first is made.
      where: the file, for the error.

    Raises:
      ConfigError: the edited text would not parse to the edited schema.
    """
    edits = _merged(edits)
    before = text_format.Parse(text, schema_pb2.Schema())
    problem = "the edited text does not parse to the edited schema"
    try:
        edited = edit_text(text, edits)
        if text_format.Parse(edited, schema_pb2.Schema()) == edit_proto(before, edits):
            return edited
    except (KeyError, ValueError, IndexError, text_format.ParseError) as error:
        problem = str(error)
    raise ConfigError(
        "this schema's text cannot be edited safely; nothing was written",
        where=where,
        actual=problem,
        hint="edit the file by hand, or write its features in the usual form: "
        "feature { name: ... type: ... }",
    )


def _merged(edits: Sequence[Edit]) -> list[Edit]:
    merged: dict[object, Edit] = {}
    for number, edit in enumerate(edits):
        match edit:
            case AddValues():
                earlier = merged.get(edit.owner)
                before = earlier.values if isinstance(earlier, AddValues) else ()
                values = dict.fromkeys((*before, *edit.values))
                merged[edit.owner] = AddValues(edit.owner, tuple(values))
            case Replace():
                merged.setdefault((edit.owner, edit.old), edit)
            case _:
                merged[number] = edit
    return list(merged.values())


def edit_proto(schema: schema_pb2.Schema, edits: Iterable[Edit]) -> schema_pb2.Schema:
    """Returns an edited copy of a schema.

    Raises:
      KeyError: the schema does not have what an edit changes.
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


def accept_changes(path: Path, text: str, edits: Sequence[Edit]) -> None:
    """Edits a schema's file.

    Args:
      path: of the file; of a link, the target is replaced.
      text: of the file when the edits were chosen.
      edits: to make.

    Raises:
      ConfigError: the text cannot be edited safely.
      UsageError: the file has changed since, or cannot be written.
    """
    edited = edit_schema(text, edits, path)
    path = path.resolve()
    if read_schema_text(path) != text:
        raise UsageError(
            "the schema was changed in the meantime; nothing was written",
            where=path,
            hint="run the command again",
        )
    try:
        atomic.write_text(path, edited)
    except OSError as error:
        raise UsageError(
            "the schema cannot be written; it is unchanged",
            where=path,
            actual=error.strerror or str(error),
        ) from error


def read_schema_text(path: Path) -> str:
    """Returns a schema's text with its original line endings.

    Raises:
      UsageError: it cannot be read.
    """
    try:
        return path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            "the schema cannot be read", where=path, actual=str(error)
        ) from error
