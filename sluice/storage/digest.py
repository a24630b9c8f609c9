"""Content digests of files and directories (SHA-256, hexadecimal)."""

from __future__ import annotations

import hashlib
import os
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
    digest = hashlib.sha256()
    for entry in files_below(root):
        name = os.fsencode(entry.name)
        digest.update(len(name).to_bytes(8, "little") + name)
        digest.update(bytes.fromhex(of_file(entry.uri)))
    return digest.hexdigest()


def files_below(root: str | Path) -> list[Entry]:
    """Returns the files below a directory, sorted by the parts of their names."""
    entries = storage_for(root).list(str(root), recursive=True)
    there = (entry for entry in entries if entry.generation)
    return sorted(there, key=lambda entry: entry.name.split("/"))
