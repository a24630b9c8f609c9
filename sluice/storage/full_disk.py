"""A full disk, told as what it is and not as a bug."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sluice.errors import WorkspaceError

FULL = (errno.ENOSPC, errno.EDQUOT)
# How SQLite and the operating system say it, where libraries keep only the text.
FULL_TEXTS = (
    "database or disk is full",
    "No space left on device",
    "Disk quota exceeded",
)


@contextmanager
def explain_full_disk(where: Path) -> Iterator[None]:
    """Runs code that writes below a folder.

    Raises:
      WorkspaceError: there is no space left for what it writes.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in FULL:
            raise
        raise WorkspaceError(
            "the disk is full",
            where=error.filename or where,
            actual=error.strerror,
            hint="free some space there, then give the command again",
        ) from error
