"""Storage errors: a lost race, a full disk, access denied.

Every storage raises an ``OSError``. What a service answers is turned into one here, and
what a user can mend is told as an error of ours.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sluice.errors import UsageError, WorkspaceError

FULL = (errno.ENOSPC, errno.EDQUOT)
# How SQLite and the operating system say it, where libraries keep only the text.
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
    """A file is not of the generation that was to be replaced: another writer won."""

    def __init__(self, uri: str) -> None:
        super().__init__(errno.ESTALE, "another writer has changed it meanwhile", uri)


def error_of_status(status: int | None, message: str, uri: str) -> OSError:
    """Returns the error for what a storage service has answered.

    Args:
      status: of HTTP; None where there was no answer.
      message: of the service or its client.
      uri: that was asked for.
    """
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
def explain_unreadable(path: str) -> Iterator[None]:
    """Runs code that reads an input file.

    Raises:
      UsageError: it cannot be read.
    """
    try:
        yield
    except OSError as error:
        raise UsageError(
            "This file of the data cannot be read.",
            where=path,
            expected="a readable file",
            actual=error.strerror or str(error) or "it is gone",
            hint="Check the path, its permissions, and where links lead.",
        ) from error


@contextmanager
def explain_full_disk(where: Path) -> Iterator[None]:
    """Runs code that writes below a folder; reports ENOSPC as a user error.

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
            hint="free some space there, then run the command again",
        ) from error
