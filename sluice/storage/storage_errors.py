"""Storage errors that a user can fix: unreadable data, a full disk."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sluice.errors import RemoteError, UsageError, WorkspaceError
from sluice.storage.storage import is_remote

FULL = (errno.ENOSPC, errno.EDQUOT)
# Texts of SQLite and the operating system, for libraries that keep only the text.
FULL_TEXTS = (
    "database or disk is full",
    "No space left on device",
    "Disk quota exceeded",
)


@contextmanager
def explain_unreadable(
    path: str, message: str = "a file of the data cannot be read"
) -> Iterator[None]:
    """Converts ``OSError`` while input data is read.

    Raises:
      UsageError: it cannot be read; RemoteError if its service does not answer.
    """
    try:
        yield
    except OSError as error:
        kind = RemoteError if is_unreachable(error) else UsageError
        raise kind(
            message, where=path, actual=error.strerror or str(error) or "it is gone"
        ) from error


def is_unreachable(error: OSError) -> bool:
    """Whether a service that keeps files does not answer, or fails."""
    failed = error.errno in (errno.EHOSTUNREACH, errno.EIO)
    return failed and is_remote(str(error.filename))


@contextmanager
def explain_full_disk(where: Path) -> Iterator[None]:
    """Converts ENOSPC and EDQUOT of code that writes below a folder.

    Raises:
      WorkspaceError: the disk is full.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in FULL:
            raise
        raise disk_full(error.filename or where, error.strerror) from error


def require_free_space(folder: Path, needed_bytes: int) -> None:
    """Checks the disk of a folder before files are written that belong together.

    Raises:
      WorkspaceError: less space is free.
    """
    free_bytes = shutil.disk_usage(folder).free
    if free_bytes < needed_bytes:
        raise disk_full(folder, f"{free_bytes / 1e6:.1f} MB free")


def disk_full(where: object, actual: str | None) -> WorkspaceError:
    """Returns the error of a disk on which a file cannot be written."""
    return WorkspaceError(
        "the disk is full",
        where=where,
        actual=actual,
        hint="free some space there, then run the command again",
    )
