"""Writes config and schema: both or none, and over existing files only on request."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path

from sluice.errors import UsageError
from sluice.storage import atomic


@contextlib.contextmanager
def write_proposal(texts: Mapping[Path, str], *, replace: bool) -> Iterator[None]:
    """Writes files atomically; the body of the ``with`` statement checks them.

    If a file cannot be written, or the body raises, new files are deleted and replaced
    ones are restored. New directories stay. Existing files are overwritten only to
    ``replace`` them.

    Raises:
      UsageError: a file exists, or cannot be written.
    """
    if not replace:
        check_absent(*texts)
    kept: dict[Path, Path | None] = {}
    try:
        for file, text in texts.items():
            with _explain(file):
                file.parent.mkdir(parents=True, exist_ok=True)
                if replace:
                    kept[file] = _keep(file)
                    atomic.write_text(file, text)
                elif atomic.create(file, text.encode()):
                    kept[file] = None
                else:
                    raise FileExistsError(errno.EEXIST, "File exists", file)
        yield
    except BaseException:
        for file, old in kept.items():
            if old is None:
                file.unlink(missing_ok=True)
            else:
                os.replace(old, file)
        raise
    finally:
        for old in filter(None, kept.values()):
            old.unlink(missing_ok=True)


def check_absent(*files: Path) -> None:
    """Raises a ``UsageError`` if one of the files exists."""
    there = [str(file) for file in files if os.path.lexists(file)]
    if there:
        raise UsageError(
            "the config or schema already exists",
            where=there[0],
            examples=there[1:],
            hint="choose another NAME, or use --force to overwrite config and schema",
        )


@contextlib.contextmanager
def _explain(file: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if isinstance(error, FileExistsError):
            check_absent(file)
        raise UsageError(
            "a file cannot be written",
            where=error.filename or file,
            actual=error.strerror or str(error),
            hint="check the directory's permissions and the disk's space",
        ) from error


def _keep(file: Path) -> Path | None:
    """Makes a hard link to a file, as a backup; None if there is no file.

    A link needs no space, so the file can be restored on a full disk.
    """
    kept = file.parent / f".{file.name}.{secrets.token_hex(8)}"
    try:
        os.link(file, kept, follow_symlinks=False)
    except FileNotFoundError:
        return None
    return kept
