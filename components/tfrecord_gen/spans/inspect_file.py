"""Inspects a chosen file before a run: its size, times and mode."""

from __future__ import annotations

import os

from components.tfrecord_gen.spans.file_lister import FileLister
from components.tfrecord_gen.spans.window import SourceFile, with_state
from sluice.errors import UsageError
from sluice.storage.storage import is_remote


def inspect_file(
    lister: FileLister, file: SourceFile, pattern: str, key: str | None
) -> SourceFile:
    """Returns a file with its size and time of modification; it is not opened.

    Args:
      lister: of the data's directory.
      file: as it was listed.
      pattern: that matches it.
      key: where the pattern stands, for a message; None if that is unknown.

    Raises:
      UsageError: a link leads nowhere, the file may not be read, or it has gone.
    """
    where = f"{file.path} ({key})" if key else file.path
    if not is_remote(lister.base):
        _check_readable(file.path, pattern, where)
    found = lister.stat(lister.relative(file.path))
    return with_state(file, found)


def check_no_directory(
    lister: FileLister, path: str, pattern: str, key: str | None
) -> None:
    """Raises if a path that a pattern of files matches is a directory.

    Args:
      lister: of the data's directory.
      path: relative to it.
      pattern: that matches it.
      key: where the pattern stands, for a message; None if that is unknown.

    Raises:
      UsageError: it is one.
    """
    whole = lister.path(path)
    if os.path.isdir(whole):
        raise UsageError(
            f"the pattern {pattern!r} matches a directory",
            where=f"{whole} ({key})" if key else whole,
            expected="TFRecord files only",
            hint=f"match the files in it: {os.path.basename(path)}/*",
        )


def _check_readable(path: str, pattern: str, where: str) -> None:
    try:
        os.stat(path)
    except PermissionError:
        pass  # The next check says so.
    except OSError as error:
        if not os.path.islink(path):
            return  # It has gone since it was listed.
        raise UsageError(
            f"the pattern {pattern!r} matches a broken link",
            where=where,
            actual=f"a link to {os.readlink(path)}",
            hint="create the link's target, or delete the link",
        ) from error
    if not os.access(path, os.R_OK):
        raise UsageError(
            f"the pattern {pattern!r} matches a file that cannot be read",
            where=where,
            actual="no permission to read it",
            hint=f"chmod u+r {path}",
        )
