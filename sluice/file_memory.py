"""What was found out about files, asked again only of those that have changed.

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

from sluice import atomic

_SETTLED_S = 2.0


class FileMemory:
    """A memory of answers in a JSON file; a damaged one counts as empty."""

    def __init__(self, memory: Path | None, look: Callable[[Path], Any]) -> None:
        """Reads what is remembered.

        Args:
          memory: the JSON file; None remembers for this process alone.
          look: finds out about a file; what it returns can be written as JSON.
        """
        self._memory = memory
        self._look = look
        known = {}
        if memory is not None:
            try:
                known = json.loads(memory.read_text(encoding="utf-8"))
            except (OSError, ValueError):
                known = {}
        self._known: dict[str, list] = known if isinstance(known, dict) else {}
        self._changed = False

    def of(self, path: Path) -> Any:
        """Returns the answer for a file.

        Raises:
          OSError: the file cannot be read.
        """
        state = _state(path)
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
        """Writes what is new to the memory."""
        if self._changed and self._memory is not None:
            atomic.write_json(self._memory, self._known)
            self._changed = False


def _state(path: Path) -> list[int]:
    status = path.stat()
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]
