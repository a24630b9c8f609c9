"""Writes chosen differences into the file of a reviewed schema.

The file is replaced as a whole, by one rename. No copy of the old one is kept beside
it: a reviewed schema is under version control, which says who changed what, and a stray
``.bak`` would be committed or read as a schema.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from schemas.edit.edit import Edit
from schemas.edit.edit_schema import edit_schema
from sluice.errors import UsageError
from sluice.storage import atomic


def accept_changes(path: Path, text: str, edits: Sequence[Edit]) -> None:
    """Edits a schema's file.

    Args:
      path: of the file; where it is a link, what it leads to is replaced.
      text: of the file, as it was when the edits were chosen.
      edits: what to do.

    Raises:
      ConfigError: the text cannot be edited safely.
      UsageError: the file is not what it was, or cannot be written.
    """
    edited = edit_schema(text, edits, path)
    path = path.resolve()
    if read_schema_text(path) != text:
        raise UsageError(
            "The schema has been changed meanwhile; nothing was written.",
            where=path,
            hint="give the command again",
        )
    try:
        atomic.write_text(path, edited)
    except OSError as error:
        raise UsageError(
            "The schema cannot be written; it is as it was.",
            where=path,
            actual=error.strerror or str(error),
        ) from error


def read_schema_text(path: Path) -> str:
    """Returns a schema's text with its line ends as they are.

    Raises:
      UsageError: it cannot be read.
    """
    try:
        return path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            "The schema cannot be read.", where=path, actual=str(error)
        ) from error
