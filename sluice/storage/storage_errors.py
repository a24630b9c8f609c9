"""Storage errors: a lost race, a full disk, access denied.

Every storage raises ``OSError``. Responses of storage services are converted to it
here, and errors that a user can fix to a ``SluiceError``.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sluice.errors import UsageError, WorkspaceError

FULL = (errno.ENOSPC, errno.EDQUOT)
# Texts of SQLite and the operating system, for libraries that keep only the text.
FULL_TEXTS = (
    "database or disk is full",
    "No space left on device",
    "Disk quota exceeded",
)
_LOGIN = (
    "run `gcloud auth application-default login`, or let GOOGLE_APPLICATION_CREDENTIALS"
    " name a key file"
)


class PreconditionFailedError(OSError):
    """A file does not have the generation to replace: another writer won."""

    def __init__(self, uri: str) -> None:
        super().__init__(errno.ESTALE, "another writer has changed it meanwhile", uri)


def error_of_status(status: int | None, message: str, uri: str) -> OSError:
    """Returns the error for the response of a storage service."""
    if status == 412:
        return PreconditionFailedError(uri)
    if status == 404:
        if "bucket does not exist" in message:
            bucket = "/".join(uri.split("/")[:3])
            return FileNotFoundError(errno.ENOENT, f"there is no bucket {bucket}", uri)
        return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), uri)
    if status == 401:
        text = f"no valid credentials: {_LOGIN} ({message})"
        return PermissionError(errno.EACCES, text, uri)
    if status == 403:
        text = f"permission denied for these credentials ({message})"
        return PermissionError(errno.EACCES, text, uri)
    return OSError(errno.EIO, f"the storage service failed ({message})", uri)


@contextmanager
def explain_unreadable(
    path: str, what: str = "a file of the data cannot be read"
) -> Iterator[None]:
    """Converts ``OSError`` while input data is read.

    Raises:
      UsageError: it cannot be read.
    """
    try:
        yield
    except OSError as error:
        raise UsageError(
            what,
            where=path,
            actual=error.strerror or str(error) or "it is gone",
            hint="check the network, then try again"
            if error.errno == errno.EHOSTUNREACH
            else "check the path, its permissions, and whether something deletes data "
            "now",
        ) from error


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
        found = f"{os.strerror(errno.ENOSPC)}: {free_bytes / 1e6:.1f} MB free"
        raise disk_full(folder, found, f"at least {needed_bytes / 1e6:g} MB free")


def disk_full(
    where: object, actual: str | None, expected: str | None = None
) -> WorkspaceError:
    """Returns the error of a disk on which a file cannot be written."""
    return WorkspaceError(
        "the disk is full",
        where=where,
        expected=expected,
        actual=actual,
        hint="free some space there, then run the command again",
    )
