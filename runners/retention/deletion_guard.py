"""Deletion guard: files may be deleted only below a folder, and not if protected.

Paths come from ML Metadata, which may name anything: a path outside of the folder, one
that leads out of it through a link, or one that another artifact lies below. None of
these is ever deleted, and links are removed instead of followed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from sluice.storage.storage import storage_for


class DeletionGuard:
    """The folder ``root``, which need not exist, with paths that must stay."""

    def __init__(self, root: Path, protected: Iterable[str | Path] = ()) -> None:
        self._root = Path(os.path.realpath(root))
        self._protected = {place for item in protected if (place := self.place(item))}
        self._above = {
            parent for item in self._protected for parent in (item, *item.parents)
        }

    def place(self, path: str | Path) -> Path | None:
        """Returns where a path really is; None unless strictly below the root."""
        text = str(path)
        if not os.path.isabs(text):
            return None
        normal = Path(os.path.normpath(text))
        place = Path(os.path.realpath(normal.parent)) / normal.name
        return place if self._root in place.parents else None

    def may_go(self, path: str | Path) -> bool:
        """Whether a path is inside and neither holds nor is held by what stays."""
        place = self.place(path)
        if place is None or place in self._above:
            return False
        return self._protected.isdisjoint(place.parents)


def folders(parent: Path) -> list[Path]:
    """Returns the folders in a folder, by name; links to folders elsewhere are none."""
    if parent.is_symlink() or not parent.is_dir():
        return []
    return sorted(
        path for path in parent.iterdir() if path.is_dir() and not path.is_symlink()
    )


def remove(path: Path) -> None:
    """Deletes a file, a link or a whole folder; nothing where there is none.

    Raises:
      OSError: something in it cannot be deleted.
    """
    storage_for(path).delete_tree(str(path))


def size_bytes(path: Path) -> int:
    """Returns the bytes in a file or in all files of a folder; links are not followed.

    Raises:
      OSError: a folder cannot be listed.
    """
    if path.is_symlink() or not path.is_dir():
        return path.lstat().st_size if os.path.lexists(path) else 0
    return sum(size_bytes(Path(entry.path)) for entry in os.scandir(path))
