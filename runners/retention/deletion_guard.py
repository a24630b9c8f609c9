"""Deletion guard: allows deletions only below a folder, and not of protected paths.

Paths come from ML Metadata, which may contain anything: a path outside the folder, one
that leaves it through a link, or one that contains another artifact. None of these is
deleted, and links are removed, not followed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from sluice.storage.storage import storage_for


class DeletionGuard:
    """Guards deletions below ``root``, which need not exist."""

    def __init__(self, root: Path, protected: Iterable[str | Path] = ()) -> None:
        self._root = Path(os.path.realpath(root))
        self._protected = {place for item in protected if (place := self.place(item))}
        self._above = {
            parent for item in self._protected for parent in (item, *item.parents)
        }

    def place(self, path: str | Path) -> Path | None:
        """Returns the resolved path; None unless it is strictly below the root."""
        text = str(path)
        if not os.path.isabs(text):
            return None
        normal = Path(os.path.normpath(text))
        place = Path(os.path.realpath(normal.parent)) / normal.name
        return place if self._root in place.parents else None

    def may_delete(self, path: str | Path) -> bool:
        """Whether a path is below the root, and not above or below a protected one."""
        place = self.place(path)
        if place is None or place in self._above:
            return False
        return self._protected.isdisjoint(place.parents)


def folders(parent: Path) -> list[Path]:
    """Returns the subfolders of a folder, sorted; links are left out."""
    if parent.is_symlink() or not parent.is_dir():
        return []
    return sorted(
        path for path in parent.iterdir() if path.is_dir() and not path.is_symlink()
    )


def remove(path: Path) -> None:
    """Deletes a file, a link or a whole folder, if it exists.

    Raises:
      OSError: something in it cannot be deleted.
    """
    storage_for(path).delete_tree(str(path))


def size_bytes(path: Path) -> int:
    """Returns the size of a file, or of all files in a folder; links are not followed.

    Raises:
      OSError: a folder cannot be listed.
    """
    if path.is_symlink() or not path.is_dir():
        return path.lstat().st_size if os.path.lexists(path) else 0
    return sum(size_bytes(Path(entry.path)) for entry in os.scandir(path))
