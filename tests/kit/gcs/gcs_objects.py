"""Buckets and objects of the emulator: an index in memory, and a file per object."""

from __future__ import annotations

import base64
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import google_crc32c


@dataclass(frozen=True)
class StoredObject:
    """An object of a bucket.

    Attributes:
      crc32c: of its content, as the service writes it.
      metadata: the user's.
    """

    bucket: str
    name: str
    generation: int
    size: int
    updated_s: float
    crc32c: str
    metadata: Mapping[str, str]


class ObjectStore:
    """Objects by bucket and name; used by several threads.

    Attributes:
      root: folder for the contents; created if need be.
    """

    def __init__(self, root: Path) -> None:
        root.mkdir(parents=True, exist_ok=True)
        self.root = root
        self._buckets: dict[str, dict[str, StoredObject]] = {}
        self._generation = 0
        self.lock = threading.RLock()
        """Held by who looks at an object and then changes it."""

    def make_bucket(self, bucket: str) -> None:
        """Makes an empty bucket, if there is none."""
        self._buckets.setdefault(bucket, {})

    def has_bucket(self, bucket: str) -> bool:
        return bucket in self._buckets

    def find(self, bucket: str, name: str) -> StoredObject | None:
        """Returns an object; None if there is none."""
        return self._buckets.get(bucket, {}).get(name)

    def below(self, bucket: str, prefix: str) -> list[StoredObject]:
        """Returns the objects whose name has a prefix, by name."""
        with self.lock:
            found = self._buckets.get(bucket, {}).items()
            return [item for name, item in sorted(found) if name.startswith(prefix)]

    def put(
        self,
        bucket: str,
        name: str,
        content: bytes,
        metadata: Mapping[str, str],
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
                metadata,
            )
            self._file(new).write_bytes(content)
            self._buckets[bucket][name] = new
            if old is not None:
                self._file(old).unlink()
        return new

    def remove(self, found: StoredObject) -> None:
        with self.lock:
            del self._buckets[found.bucket][found.name]
            self._file(found).unlink()

    def content(self, found: StoredObject, start: int = 0, size: int = -1) -> bytes:
        """Returns content from a byte on.

        Raises:
          FileNotFoundError: the object has been replaced or removed.
        """
        with self._file(found).open("rb") as file:
            file.seek(start)
            return file.read(size)

    def _file(self, found: StoredObject) -> Path:
        return self.root / str(found.generation)


def _crc32c(content: bytes) -> str:
    return base64.b64encode(google_crc32c.value(content).to_bytes(4, "big")).decode()
