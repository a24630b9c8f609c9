"""Stat-keyed cache of file digests and other values computed from files.

A file whose path, size, inode, and times of modification and change are those of last
time is what it was last time, as Git's index has it. A file that was modified moments
before it was read is not remembered: it may change again within the clock's resolution.
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
    """Cache of one value per file in a JSON file; a damaged one counts as empty."""

    def __init__(self, memory: Path | None, look: Callable[[Path], Any]) -> None:
        """Reads what is remembered.

        Args:
          memory: the JSON file; None remembers for this process alone.
          look: finds out about a file; what it returns can be written as JSON.
        """
        self._memory = memory
        self._look = look
        self._known = _read(memory) if memory is not None else {}
        self._asked: set[str] = set()
        self._changed = False

    def of(self, path: Path) -> Any:
        """Returns the answer for a file.

        Raises:
          OSError: the file cannot be read.
        """
        state = _state(path)
        self._asked.add(str(path))
        known = self._known.get(str(path))
        if isinstance(known, list) and known[:-1] == state:
            return known[-1]
        found = self._look(path)
        modified_s = state[1] / 1e9
        if _state(path) == state and abs(time.time() - modified_s) > _SETTLED_S:
            self._known[str(path)] = [*state, found]
            self._changed = True
        return found

    def save(self) -> None:
        """Writes what is new to the memory, and forgets what nobody has asked for."""
        forgotten = self._known.keys() - self._asked
        if self._memory is None or not (self._changed or forgotten):
            return
        for path in forgotten:
            del self._known[path]
        atomic.write_json(self._memory, self._known)
        self._changed = False


class FileDigests(StatCache):
    """Cache of the SHA-256 of each file's content, in hexadecimal."""

    def __init__(self, memory: Path) -> None:
        super().__init__(memory, digest.of_file)


def unchanged_files(memory: Path) -> list[Path] | None:
    """Returns the files that a memory knows, None if one of them has changed.

    Raises:
      OSError: one of them is gone.
    """
    known = _read(memory)
    states = ((Path(path), known[path][:-1]) for path in known)
    found = [path for path, state in states if _state(path) == state]
    return found if len(found) == len(known) else None


def _read(memory: Path) -> dict[str, list]:
    try:
        known = json.loads(memory.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


def _state(path: Path) -> list[int]:
    status = path.stat()
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]
