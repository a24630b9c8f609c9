"""Resolves output paths given by users, and writes to them."""

from __future__ import annotations

import os
from pathlib import Path

from sluice.errors import UsageError
from sluice.storage import atomic


def resolve_output_path(text: str, base: Path, name: str) -> Path:
    """Returns the absolute output path: ``~`` is expanded, links are resolved.

    Raises:
      UsageError: the path cannot be used.
    """
    try:
        if not text or "://" in text:
            raise ValueError("expected a path of this machine")
        return Path(base, os.path.expanduser(text)).resolve()
    except (
        OSError,
        RuntimeError,
        ValueError,
    ) as error:  # RuntimeError: a loop of links.
        raise UsageError(
            f"{name} is not a usable output path: {error}", actual=repr(text)
        ) from error


def resolve_output_uri(text: str, base: Path, name: str) -> str:
    """Returns a ``gs://`` address, or else the absolute path; see above.

    Raises:
      UsageError: the path cannot be used.
    """
    if text.startswith("gs://"):
        return text.rstrip("/")
    return str(resolve_output_path(text, base, name))


def write_output(path: Path, text: str, name: str) -> None:
    """Writes a file that the user asked for, whole or not at all.

    Raises:
      UsageError: it cannot be written.
    """
    try:
        atomic.write_text(path, text)
    except OSError as error:
        raise UsageError(
            f"the {name} cannot be written: {error.strerror}", where=path
        ) from error
