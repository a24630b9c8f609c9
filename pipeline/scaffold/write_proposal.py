"""Writes config and schema: both or neither, without overwriting files."""

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
    """Writes files, each of which appears whole; the block that follows checks them.

    Where one cannot be written, or the block raises, new files are gone again and those
    that were replaced are back. Directories that were made stay.

    Args:
      texts: the content by path.
      replace: also over files that are there.

    Raises:
      UsageError: there is one already, or one cannot be written.
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
                    raise FileExistsError(errno.EEXIST, "it is there already", file)
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
    """Raises a ``UsageError`` where one of the files is there."""
    there = [str(file) for file in files if os.path.lexists(file)]
    if there:
        raise UsageError(
            "The config or schema already exists.",
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
            "A file cannot be written.",
            where=error.filename or file,
            actual=error.strerror or str(error),
            hint="check the directory's permissions and the disk's space",
        ) from error


def _keep(file: Path) -> Path | None:
    """Gives a file a second name beside it; None where there is no file.

    A name needs no space: the file can be put back on a disk that is full.
    """
    kept = file.parent / f".{file.name}.{secrets.token_hex(8)}"
    try:
        os.link(file, kept, follow_symlinks=False)
    except FileNotFoundError:
        return None
    return kept
