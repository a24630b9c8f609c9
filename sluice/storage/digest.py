"""Content digests of files and directories (SHA-256, hexadecimal)."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

from sluice.storage.storage import Entry, storage_for

_CHUNK_BYTES = 1 << 20


def of_bytes(data: bytes) -> str:
    """Returns the digest of some bytes."""
    return hashlib.sha256(data).hexdigest()


def of_file(path: str | Path) -> str:
    """Returns the digest of a file's content."""
    digest = hashlib.sha256()
    with storage_for(path).open(str(path), "rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def of_tree(root: str | Path) -> str:
    """Returns the digest of a directory: relative paths and contents, no times.

    Empty directories do not count; a file renamed, added, removed or changed does.
    """
    return of_contents({e.name: of_file(e.uri) for e in files_below(root)})


def of_path(path: str | Path) -> str:
    """Returns the digest of a file or directory.

    Raises:
      FileNotFoundError: there is neither.
    """
    kind = storage_for(path).stat(str(path)).kind
    return of_file(path) if kind == "file" else of_tree(path)


def of_contents(digests: Mapping[str, str]) -> str:
    """Returns the digest of a directory from its files' digests, by relative name."""
    digest = hashlib.sha256()
    for name in sorted(digests, key=lambda name: name.split("/")):
        encoded = os.fsencode(name)
        digest.update(len(encoded).to_bytes(8, "little") + encoded)
        digest.update(bytes.fromhex(digests[name]))
    return digest.hexdigest()


def files_below(root: str | Path) -> list[Entry]:
    """Returns the files below a directory, sorted by the parts of their names."""
    entries = storage_for(root).list(str(root), recursive=True)
    there = (entry for entry in entries if entry.generation)
    return sorted(there, key=lambda entry: entry.name.split("/"))
