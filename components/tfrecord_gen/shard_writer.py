"""Writes the gzip shards of one split, in the format of TFX's components.

Shards are renamed at the end, when their number is known; until then their names are
hidden.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import IO

from sluice.storage.storage import storage_for

# Uncompressed bytes per shard: few files, but enough for a process per core.
SHARD_BYTES = 64 << 20
_GZIP_WINDOW_BITS = 31


@dataclass(frozen=True)
class Part:
    """A shard that has no final name yet.

    Attributes:
        split: its split.
        path: where it lies.
        records: its records.
    """

    split: str
    path: str
    records: int


class ShardWriter:
    """Writes records of one split into one shard after the other.

    Args:
      split: the split.
      prefix: path of the shards, to which a number is added.
      level: of the compression; 0 stores, in a tenth of the time of level 1.
      max_bytes: uncompressed bytes after which a new shard is begun.
    """

    def __init__(
        self, split: str, prefix: str, level: int, max_bytes: float = SHARD_BYTES
    ) -> None:
        self.parts: list[Part] = []
        self._split = split
        self._prefix = prefix
        self._level = level
        self._max_bytes = max_bytes
        self._file: IO[bytes] | None = None
        self._path = ""
        self._records = 0
        self._bytes = 0

    def write(self, frames: bytes | memoryview, records: int) -> None:
        """Writes framed records.

        Raises:
          OSError: the disk is full, or the folder cannot be written.
        """
        if self._file is None:
            self._path = f"{self._prefix}-{len(self.parts)}"
            self._file = storage_for(self._path).open(self._path, "wb")
            self._gzip = zlib.compressobj(self._level, zlib.DEFLATED, _GZIP_WINDOW_BITS)
        self._file.write(self._gzip.compress(frames))
        self._records += records
        self._bytes += len(frames)
        if self._bytes >= self._max_bytes:
            self.close()

    def close(self) -> None:
        """Ends the shard that is open, if one is."""
        if self._file is None:
            return
        with self._file as file:
            file.write(self._gzip.flush())
        self.parts.append(Part(self._split, self._path, self._records))
        self._file, self._records, self._bytes = None, 0, 0


def name_shards(split: str, folder: str, parts: Iterable[Part]) -> list[str]:
    """Renames the parts of a split to their final names, and returns these.

    A split without records gets one empty shard, as in TFX.
    """
    paths = [part.path for part in parts]
    if not paths:
        writer = ShardWriter(split, os.path.join(folder, ".empty"), 1)
        writer.write(b"", 0)
        writer.close()
        paths = [writer.parts[0].path]
    numbers = range(len(paths))
    names = [f"data_tfrecord-{i:05d}-of-{len(paths):05d}.gz" for i in numbers]
    for path, name in zip(paths, names, strict=True):
        storage_for(folder).rename(path, os.path.join(folder, name))
    return names
