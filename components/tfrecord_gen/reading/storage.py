"""Files by path: the operating system's, and TFX's file systems where one is needed.

A path with "://" goes through ``tfx.dsl.io.fileio``, which is imported only then: it
brings TensorFlow, whose import takes seconds.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any, cast

from sluice.errors import UsageError


def is_remote(path: str) -> bool:
    """Whether a path is an address of another file system."""
    return "://" in path


def open_file(path: str, mode: str) -> IO[bytes]:
    """Opens a file, binary."""
    if is_remote(path):
        return cast(IO[bytes], _fileio().open(path, mode))
    return cast(IO[bytes], open(path, mode))


def size_bytes(path: str) -> int:
    """Returns the size of a file."""
    if is_remote(path):
        return int(_fileio().stat(path).length)
    return os.stat(path).st_size


def list_names(folder: str) -> list[str]:
    """Returns the names in a folder, sorted."""
    names = _fileio().listdir(folder) if is_remote(folder) else os.listdir(folder)
    return sorted(name.rstrip("/") for name in names)


def make_folder(path: str) -> None:
    """Makes a folder and its parents where they are missing."""
    if is_remote(path):
        _fileio().makedirs(path)
    else:
        os.makedirs(path, exist_ok=True)


def rename(source: str, target: str) -> None:
    """Renames a file within one file system."""
    if is_remote(source):
        _fileio().rename(source, target, overwrite=True)
    else:
        os.replace(source, target)


def remove(path: str) -> None:
    """Removes a file."""
    if is_remote(path):
        _fileio().remove(path)
    else:
        os.unlink(path)


@contextmanager
def explain_unreadable(path: str) -> Iterator[None]:
    """Runs code that reads an input file.

    Raises:
      UsageError: it cannot be read.
    """
    try:
        yield
    except _read_errors(path) as error:
        raise UsageError(
            "This TFRecord file cannot be read.",
            where=path,
            expected="a readable file",
            actual=getattr(error, "strerror", None) or str(error),
            hint="Check the path and its permissions.",
        ) from error


def _read_errors(path: str) -> tuple[type[Exception], ...]:
    if not is_remote(path):
        return (OSError,)
    import tensorflow as tf

    return (OSError, tf.errors.OpError)


def _fileio() -> Any:
    from tfx.dsl.io import fileio

    return fileio
