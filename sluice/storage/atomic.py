"""Atomic file writes, and locks that are released when their owner dies."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any


def write_bytes(path: str | Path, data: bytes) -> None:
    """Writes a file so that a reader sees the old content or the new, never a part.

    The bytes and the directory entry are flushed to the disk before this returns. The
    file's mode is the umask's, and never wider than that of the old file.

    Raises:
      OSError: the directory cannot be written, or the disk is full; the old file is
        then untouched and no temporary file stays.
    """
    with replacing(path) as file:
        file.write(data)


@contextlib.contextmanager
def replacing(path: str | Path) -> Iterator[IO[bytes]]:
    """Yields a file that replaces a path's file at the end; see ``write_bytes``."""
    path, mode = Path(path), 0o666
    with contextlib.suppress(FileNotFoundError):
        mode &= path.stat().st_mode
    temporary = _beside(path)
    # Not tempfile's, whose mode is 0600: the umask can be read only by setting it.
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    sync_directory(path.parent)


def create(path: str | Path, data: bytes) -> bool:
    """Creates a file atomically if there is none; returns whether it did.

    Of several concurrent writers of one file exactly one gets True.

    Raises:
      OSError: the directory cannot be written, the disk is full, or the file system
        has no hard links.
    """
    temporary = _beside(Path(path))
    write_bytes(temporary, data)
    try:
        os.link(temporary, path)
    except FileExistsError:
        return False
    finally:
        temporary.unlink()
    sync_directory(temporary.parent)
    return True


def _beside(path: Path) -> Path:
    return path.with_name(f".{path.name}.{secrets.token_hex(8)}")


def write_text(path: str | Path, text: str) -> None:
    """Writes UTF-8 text atomically; see ``write_bytes``."""
    write_bytes(path, text.encode("utf-8"))


def write_json(path: str | Path, value: Any, *, indent: int | None = 2) -> None:
    """Writes a value as JSON atomically; see ``write_bytes``.

    Raises:
      ValueError: a number is not finite, which JSON does not support.
    """
    text = json.dumps(value, indent=indent, ensure_ascii=False, allow_nan=False)
    # A lone surrogate, as of an argument that is not UTF-8, becomes JSON's own escape.
    write_bytes(path, f"{text}\n".encode("utf-8", errors="backslashreplace"))


def sync_directory(directory: str | Path) -> None:
    """Flushes a directory, so that a rename survives a power failure."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextlib.contextmanager
def lock(path: str | Path, *, wait: bool = True) -> Iterator[int]:
    """Holds a ``flock`` on a file, which is created if need be.

    The kernel releases it when the owner dies, however it dies.

    Yields:
      The open file descriptor, to write information about the owner.

    Raises:
      BlockingIOError: ``wait`` is false and another process holds the lock.
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        yield handle
    finally:
        os.close(handle)


def is_locked(path: str | Path) -> bool:
    """Whether a ``lock`` on a file is held; the file is only read.

    Raises:
      OSError: the file cannot be opened, such as where there is none.
    """
    handle = os.open(path, os.O_RDONLY)
    try:
        # Shared, so that concurrent calls do not see each other's lock.
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False
