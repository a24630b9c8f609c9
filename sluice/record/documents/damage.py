"""The error of a document whose artifact is damaged."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from google.protobuf.message import Error as ProtobufError
from google.protobuf.text_format import ParseError

from sluice.errors import WorkspaceError


@contextmanager
def damage_explained(what: str, where: Path, expected: str) -> Iterator[None]:
    """Raises a ``WorkspaceError`` for the errors of parsers in the block.

    Args:
      what: the content of the artifact, such as ``this schema``.
      where: the file.
      expected: its form.
    """
    try:
        yield
    except (ProtobufError, ParseError, ValueError, IndexError) as error:
        raise WorkspaceError(
            f"{what} cannot be read",
            where=where,
            expected=expected,
            actual=str(error),
            hint="run the node that wrote it again: sluice run NAME --force NODE",
        ) from error
