"""Content digests of files that are read only when the file has changed.

A file whose path, size, inode, and times of modification and change are those of last
time has the digest of last time, as Git's index has it. A file that was modified
moments before it was read is not remembered: it may change again within the clock's
resolution.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

from sluice import atomic, digest

# Names the file of a process's parent that remembers digests.
MEMORY_FILE = "SLUICE_FILE_DIGESTS"
_SETTLED_S = 2.0


class FileDigests:
    """A memory of digests in a JSON file; a damaged one counts as empty."""

    def __init__(self, memory: Path) -> None:
        self._memory = memory
        try:
            known = json.loads(memory.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            known = {}
        self._known: dict[str, list] = known if isinstance(known, dict) else {}
        self._changed = False

    def of(self, path: Path) -> str:
        """Returns the SHA-256 of a file's content.

        Raises:
          OSError: the file cannot be read.
        """
        state = _state(path)
        known = self._known.get(str(path))
        if isinstance(known, list) and known[:-1] == state:
            return known[-1]
        found = digest.of_file(path)
        modified_s = state[1] / 1e9
        if _state(path) == state and abs(time.time() - modified_s) > _SETTLED_S:
            self._known[str(path)] = [*state, found]
            self._changed = True
        return found

    def save(self) -> None:
        """Writes what is new to the memory."""
        if self._changed:
            atomic.write_json(self._memory, self._known)
            self._changed = False


def _state(path: Path) -> list[int]:
    status = path.stat()
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]
