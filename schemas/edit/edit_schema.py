"""Edits the text of a reviewed schema, and proves that it says what was meant.

The text is edited by its places (``edit_text``), the proto that it stood for by its
fields (``edit_proto``). The new text is returned only if it parses to the same.
"""

from __future__ import annotations

from collections.abc import Sequence

from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2

from schemas.edit.edit import AddValues, Edit, Owner, Replace
from schemas.edit.edit_proto import edit_proto
from schemas.edit.edit_text import edit_text
from sluice.errors import ConfigError


def edit_schema(text: str, edits: Sequence[Edit], where: object) -> str:
    """Returns a schema's text with edits made in it, its comments and order kept.

    Args:
      text: a schema in protobuf's text format.
      edits: in any order. A value that two of them add is added once; of two that
        replace the same field the first one counts.
      where: the file, for the error.

    Raises:
      ConfigError: the new text would not say exactly what the edits mean.
    """
    edits = _merged(edits)
    before = text_format.Parse(text, schema_pb2.Schema())
    problem = "the edited text says something else than the edit"
    try:
        edited = edit_text(text, edits)
        if text_format.Parse(edited, schema_pb2.Schema()) == edit_proto(before, edits):
            return edited
    except (KeyError, ValueError, IndexError, text_format.ParseError) as error:
        problem = str(error)
    raise ConfigError(
        "This schema's text cannot be edited safely; nothing was written.",
        where=where,
        actual=problem,
        hint="edit the file by hand, or write its features in the usual form: "
        "feature { name: ... type: ... }",
    )


def _merged(edits: Sequence[Edit]) -> list[Edit]:
    merged: list[Edit] = []
    added: dict[Owner, int] = {}
    replaced: set[tuple[Owner, str]] = set()
    for edit in edits:
        if isinstance(edit, AddValues) and edit.owner in added:
            place = added[edit.owner]
            earlier = merged[place]
            assert isinstance(earlier, AddValues)
            values = dict.fromkeys((*earlier.values, *edit.values))
            merged[place] = AddValues(edit.owner, tuple(values))
            continue
        if isinstance(edit, Replace):
            if (edit.owner, edit.old) in replaced:
                continue
            replaced.add((edit.owner, edit.old))
        elif isinstance(edit, AddValues):
            added[edit.owner] = len(merged)
        merged.append(edit)
    return merged
