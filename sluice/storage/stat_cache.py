"""Stat-keyed cache of file digests and other values computed from files.

As in Git's index, a file is unchanged if its size, inode, and times of modification and
change are. A file modified just before it was read is not cached: it may change again
within the clock's resolution.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sluice.storage import atomic, digest

# The environment variable that names the cache of digests of the parent process.
DIGESTS_FILE = "SLUICE_FILE_DIGESTS"
_SETTLED_S = 2.0


class StatCache:
    """Cache of one value per file, in a JSON file; a damaged one counts as empty."""

    def __init__(self, cache_file: Path | None, compute: Callable[[Path], Any]) -> None:
        """Reads the cache; None caches for this process only."""
        self._cache_file = cache_file
        self._compute = compute
        self._entries = _read(cache_file) if cache_file is not None else {}
        self._requested: set[str] = set()
        self._changed = False

    def of(self, path: Path) -> Any:
        """Returns the value of a file.

        Raises:
          OSError: the file cannot be read.
        """
        state = _state(path)
        self._requested.add(str(path))
        known = self._entries.get(str(path))
        if isinstance(known, list) and known[:-1] == state:
            return known[-1]
        found = self._compute(path)
        modified_s = state[1] / 1e9
        if _state(path) == state and abs(time.time() - modified_s) > _SETTLED_S:
            self._entries[str(path)] = [*state, found]
            self._changed = True
        return found

    def save(self) -> None:
        """Writes the cache, without the files that were not requested."""
        unused = self._entries.keys() - self._requested
        if self._cache_file is None or not (self._changed or unused):
            return
        for path in unused:
            del self._entries[path]
        atomic.write_json(self._cache_file, self._entries)
        self._changed = False


class FileDigests(StatCache):
    """Cache of the SHA-256 of each file's content, in hexadecimal."""

    def __init__(self, cache_file: Path) -> None:
        super().__init__(cache_file, digest.of_file)


def unchanged_files(cache_file: Path) -> list[Path] | None:
    """Returns the files in a cache; None if one of them has changed.

    Raises:
      OSError: one of them is gone.
    """
    known = _read(cache_file)
    states = ((Path(path), known[path][:-1]) for path in known)
    found = [path for path, state in states if _state(path) == state]
    return found if len(found) == len(known) else None


def _read(cache_file: Path) -> dict[str, list]:
    try:
        known = json.loads(cache_file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


def _state(path: Path) -> list[int]:
    status = path.stat()
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]
