"""Writes config and schema: both or neither, and never over what is there."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Mapping
from pathlib import Path

from sluice import atomic
from sluice.errors import UsageError


def write_proposal(texts: Mapping[Path, str], *, replace: bool) -> None:
    """Writes files, each of which appears whole; makes their directories.

    Args:
      texts: the content by path.
      replace: also over files that are there.

    Raises:
      UsageError: there is one already, or one cannot be written; those that were
        written anew are then gone again.
    """
    if not replace:
        check_absent(*texts)
    written: list[Path] = []
    for file, text in texts.items():
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            if replace:
                atomic.write_text(file, text)
            else:
                _create(file, text)
                written.append(file)
        except OSError as error:
            for other in written:
                other.unlink(missing_ok=True)
            if isinstance(error, FileExistsError):
                check_absent(file)
            raise UsageError(
                "A file cannot be written.",
                where=error.filename or file,
                actual=error.strerror or str(error),
                hint="check the directory's permissions and the disk's space",
            ) from error


def check_absent(*files: Path) -> None:
    """Raises a ``UsageError`` where one of the files is there."""
    there = [str(file) for file in files if os.path.lexists(file)]
    if there:
        raise UsageError(
            "There is such a config or schema already.",
            where=there[0],
            examples=there[1:],
            hint="take another NAME, or give --force to replace config and schema",
        )


def _create(file: Path, text: str) -> None:
    whole = file.parent / f".{file.name}.{secrets.token_hex(8)}"
    atomic.write_text(whole, text)
    try:
        # Unlike a rename, a link never replaces what somebody has written meanwhile.
        os.link(whole, file)
    finally:
        with contextlib.suppress(FileNotFoundError):
            whole.unlink()
    atomic.sync_directory(file.parent)
