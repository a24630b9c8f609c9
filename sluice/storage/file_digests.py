"""Content digests of files that are read only when the file has changed."""

from __future__ import annotations

from pathlib import Path

from sluice.storage import digest
from sluice.storage.stat_cache import FileMemory

# Names the file of a process's parent that remembers digests.
MEMORY_FILE = "SLUICE_FILE_DIGESTS"


class FileDigests(FileMemory):
    """The SHA-256 of each file's content, in hexadecimal."""

    def __init__(self, memory: Path) -> None:
        super().__init__(memory, digest.of_file)
