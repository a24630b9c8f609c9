"""Content digests of files and directories (SHA-256, hexadecimal)."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

_CHUNK_BYTES = 1 << 20


def of_bytes(data: bytes) -> str:
    """Returns the digest of some bytes."""
    return hashlib.sha256(data).hexdigest()


def of_file(path: str | Path) -> str:
    """Returns the digest of a file's content."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def of_tree(root: str | Path) -> str:
    """Returns the digest of a directory: relative paths and contents, no times.

    Empty directories do not count; a file renamed, added, removed or changed does.
    """
    root = Path(root)
    digest = hashlib.sha256()
    for path in sorted(path for path in root.rglob("*") if path.is_file()):
        name = os.fsencode(path.relative_to(root))
        digest.update(len(name).to_bytes(8, "little") + name)
        digest.update(bytes.fromhex(of_file(path)))
    return digest.hexdigest()
