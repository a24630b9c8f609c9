"""Buckets and objects of the emulator, in a folder.

An index in SQLite, and a file per generation of an object: names are free, as in the
service (``a`` beside ``a/b``, a thousand bytes long), and the objects of one rehearsal
are there in the next.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import google_crc32c

_SCHEMA = """
CREATE TABLE IF NOT EXISTS buckets (bucket TEXT PRIMARY KEY);
CREATE TABLE IF NOT EXISTS objects (
  bucket TEXT, name TEXT, generation INTEGER, size INTEGER, updated_s REAL,
  crc32c TEXT, metadata TEXT, PRIMARY KEY (bucket, name)
);
"""
_COLUMNS = "bucket, name, generation, size, updated_s, crc32c, metadata"
_LAST_CHARACTER = "\U0010ffff"


@dataclass(frozen=True)
class StoredObject:
    """An object of a bucket.

    Attributes:
      crc32c: of its content, as the service writes it.
      metadata: the user's, as JSON.
    """

    bucket: str
    name: str
    generation: int
    size: int
    updated_s: float
    crc32c: str
    metadata: str


class ObjectStore:
    """Objects by bucket and name; used by several threads.

    Args:
      root: folder for everything; created if need be.
    """

    def __init__(self, root: Path) -> None:
        self._contents = root / "contents"
        self._contents.mkdir(parents=True, exist_ok=True)
        self.lock = threading.RLock()
        """Held by who looks at an object and then changes it."""
        self._index = sqlite3.connect(
            root / "index.sqlite", check_same_thread=False, isolation_level=None
        )
        self._index.executescript(_SCHEMA)
        # A crash of the machine may cost a rehearsal, a crash of the process may not.
        self._index.execute("PRAGMA synchronous=OFF")
        newest = self._index.execute("SELECT MAX(generation) FROM objects").fetchone()
        self._generation = newest[0] or 0

    def make_bucket(self, bucket: str) -> None:
        with self.lock:
            self._index.execute("INSERT OR IGNORE INTO buckets VALUES (?)", [bucket])

    def has_bucket(self, bucket: str) -> bool:
        with self.lock:
            query = "SELECT 1 FROM buckets WHERE bucket = ?"
            return self._index.execute(query, [bucket]).fetchone() is not None

    def find(self, bucket: str, name: str) -> StoredObject | None:
        """Returns an object; None if there is none."""
        query = f"SELECT {_COLUMNS} FROM objects WHERE bucket = ? AND name = ?"
        with self.lock:
            row = self._index.execute(query, [bucket, name]).fetchone()
        return StoredObject(*row) if row else None

    def below(
        self, bucket: str, prefix: str, after: str = ""
    ) -> Iterator[StoredObject]:
        """Yields the objects whose name has a prefix, by name, from one name on."""
        query = (
            f"SELECT {_COLUMNS} FROM objects WHERE bucket = ? AND name >= ? "
            "AND name < ? ORDER BY name"
        )
        with self.lock:
            rows = self._index.execute(
                query, [bucket, max(prefix, after), prefix + _LAST_CHARACTER]
            ).fetchall()
        return (StoredObject(*row) for row in rows)

    def put(
        self,
        bucket: str,
        name: str,
        content: bytes,
        metadata: dict[str, str],
        age_s: float = 0,
    ) -> StoredObject:
        """Writes an object, as if some seconds ago."""
        with self.lock:
            old = self.find(bucket, name)
            now_s = time.time()
            # As in the service, about the time in microseconds.
            self._generation = max(self._generation + 1, int(now_s * 1e6))
            new = StoredObject(
                bucket,
                name,
                self._generation,
                len(content),
                now_s - age_s,
                _crc32c(content),
                json.dumps(metadata),
            )
            self._file(new).write_bytes(content)
            self._index.execute(
                "INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?, ?, ?, ?)",
                list(vars(new).values()),
            )
            self._forget(old)
        return new

    def remove(self, found: StoredObject) -> None:
        with self.lock:
            self._index.execute(
                "DELETE FROM objects WHERE bucket = ? AND name = ?",
                [found.bucket, found.name],
            )
            self._forget(found)

    def content(self, found: StoredObject, start: int = 0, size: int = -1) -> bytes:
        """Returns content from a byte on.

        Raises:
          FileNotFoundError: the object has been replaced or removed.
        """
        with self._file(found).open("rb") as file:
            file.seek(start)
            return file.read(size)

    def _file(self, found: StoredObject) -> Path:
        return self._contents / str(found.generation)

    def _forget(self, old: StoredObject | None) -> None:
        if old is not None:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._file(old))


def _crc32c(content: bytes) -> str:
    return base64.b64encode(google_crc32c.value(content).to_bytes(4, "big")).decode()
