"""Files by path: the operating system's, and TFX's file systems where one is needed.

A path with "://" goes through ``tfx.dsl.io.fileio``, which is imported only then: it
brings TensorFlow, whose import takes seconds.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any, cast

from sluice.errors import UsageError
from sluice.storage import atomic


def is_remote(path: str) -> bool:
    """Whether a path is an address of another file system."""
    return "://" in path


def open_file(path: str, mode: str) -> IO[bytes]:
    """Opens a file, binary."""
    if is_remote(path):
        return cast(IO[bytes], _fileio().open(path, mode))
    return cast(IO[bytes], open(path, mode))


def read_bytes(path: str) -> bytes:
    """Returns the content of a file.

    Raises:
      OSError: it cannot be read.
    """
    with _os_errors(path), open_file(path, "rb") as file:
        return file.read()


def write_bytes(path: str, content: bytes) -> None:
    """Writes a file so that a reader sees the old content or the new, never a part.

    Raises:
      OSError: it cannot be written.
    """
    if not is_remote(path):
        atomic.write_bytes(path, content)
        return
    # An object of a bucket appears when it is closed.
    with _os_errors(path), open_file(path, "wb") as file:
        file.write(content)


def size_bytes(path: str) -> int:
    """Returns the size of a file."""
    if is_remote(path):
        return int(_fileio().stat(path).length)
    return os.stat(path).st_size


def is_file(path: str) -> bool:
    """Whether there is a regular file, or in a bucket anything of this name."""
    return bool(_fileio().exists(path)) if is_remote(path) else os.path.isfile(path)


def list_names(folder: str) -> list[str]:
    """Returns the names in a folder, sorted."""
    names = list_remote(folder) if is_remote(folder) else os.listdir(folder)
    return sorted(name.rstrip("/") for name in names)


def list_remote(folder: str) -> list[str]:
    """Returns the names in a remote folder; those of folders may end with a slash.

    Raises:
      FileNotFoundError: there is no such folder.
      NotADirectoryError: it is a file.
      tf.errors.OpError: it cannot be listed.
    """
    from tfx.dsl.io import filesystem

    try:
        return list(_fileio().listdir(folder))
    except filesystem.NotFoundError as error:
        # TensorFlow says so too where it may not look, or gets no answer: its isdir is
        # false for every error. Its stat says which.
        try:
            found = _fileio().stat(folder)
        except filesystem.NotFoundError:
            raise _os_error(errno.ENOENT, folder) from error
        if not found.is_directory:
            raise _os_error(errno.ENOTDIR, folder) from error
        return list(_fileio().listdir(folder))


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
    """Removes a file.

    Raises:
      FileNotFoundError: there is no such file.
    """
    if not is_remote(path):
        os.unlink(path)
        return
    from tfx.dsl.io import filesystem

    try:
        _fileio().remove(path)
    except filesystem.NotFoundError as error:
        raise _os_error(errno.ENOENT, path) from error


@contextmanager
def explain_unreadable(path: str) -> Iterator[None]:
    """Runs code that reads an input file.

    Raises:
      UsageError: it cannot be read.
    """
    try:
        yield
    except read_errors(path) as error:
        raise UsageError(
            "This file of the data cannot be read.",
            where=path,
            expected="a readable file",
            actual=getattr(error, "strerror", None) or str(error) or "it is gone",
            hint="Check the path, its permissions, and where links lead.",
        ) from error


@contextmanager
def _os_errors(path: str) -> Iterator[None]:
    """Raises as an OSError what TensorFlow's file systems raise."""
    if not is_remote(path):
        yield
        return
    import tensorflow as tf

    try:
        yield
    except tf.errors.NotFoundError as error:
        raise _os_error(errno.ENOENT, path) from error
    except tf.errors.OpError as error:
        raise OSError(error.message) from error


def read_errors(path: str) -> tuple[type[Exception], ...]:
    """Returns what reading a file may raise, by the file system that it lies in."""
    if not is_remote(path):
        return (OSError,)
    import tensorflow as tf

    return (OSError, tf.errors.OpError)


def _os_error(number: int, path: str) -> OSError:
    return OSError(number, os.strerror(number), path)


def _fileio() -> Any:
    from tfx.dsl.io import fileio

    return fileio
