"""Access to the regular files of a model store, without following links.

The store writes regular files and directories only. A link was made by someone else,
and its target must not be read, deleted or served.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable
from pathlib import Path

from sluice.errors import UsageError


def read_file(path: Path) -> str:
    """Returns the text of a regular file.

    Raises:
      OSError: it is missing, a link or a special file, or cannot be read.
    """
    if not stat.S_ISREG(os.lstat(path).st_mode):
        raise OSError(errno.EINVAL, "Not a regular file", str(path))
    return path.read_text("utf-8")


def find_non_regular(root: Path) -> Path | None:
    """Returns a path that is neither directory nor regular file, if there is one."""
    for path in (root, *root.rglob("*")):
        mode = os.lstat(path).st_mode
        if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
            return path
    return None


def refuse_links(paths: Iterable[Path]) -> None:
    """Rejects a store whose own files or folders are links.

    Raises:
      UsageError: one of the paths is a link.
    """
    for path in paths:
        if path.is_symlink():
            raise UsageError(
                "the serving directory contains a link, which is not followed",
                where=path,
                expected="only files written by Sluice",
                actual=f"a link to {os.readlink(path)}",
                hint=f"rm {path}   (its target is not deleted); the store "
                "itself may lie behind a link: push.serving_dir is followed",
            )
