"""Storage on the other file systems that TFX supports, such as ``s3://``.

They are accessed through ``tfx.dsl.io.fileio``, which imports TensorFlow. It has no
preconditions, so conditional writes raise an error.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Literal, cast

import tensorflow as tf
from tfx.dsl.io import fileio, filesystem

from sluice.storage.storage import Entry, Storage
from sluice.storage.storage_errors import PreconditionFailedError


class FileioStorage(Storage):
    """Files by address, in TFX's registered file systems."""

    has_preconditions = False
    can_fork = False  # TensorFlow has threads.

    def list(
        self,
        folder: str,
        *,
        recursive: bool = False,
        matching: Callable[[str], bool] | None = None,
    ) -> Sequence[Entry]:
        with _os_errors(folder):
            if recursive:
                found = [
                    self._entry(
                        folder, os.path.relpath(os.path.join(top, name), folder)
                    )
                    for top, _, names in fileio.walk(folder)
                    for name in names
                ]
            else:
                # The listing has names only: each entry is one more request.
                names = (name.rstrip("/") for name in _listdir(folder))
                found = [
                    self._entry(folder, name)
                    for name in names
                    if name and (matching is None or matching(name))
                ]
        return sorted(found, key=lambda entry: entry.name)

    def names(self, folder: str) -> Sequence[str]:
        with _os_errors(folder):
            return sorted(name.rstrip("/") for name in _listdir(folder))

    def stat(self, uri: str) -> Entry:
        with _os_errors(uri):
            return self._entry(*os.path.split(uri.rstrip("/")))

    def is_file(self, uri: str) -> bool:
        with _os_errors(uri):
            return bool(fileio.exists(uri))

    def open(
        self, uri: str, mode: Literal["rb", "wb"], *, generation: str | None = None
    ) -> IO[bytes]:
        if generation is not None and generation != self.stat(uri).generation:
            raise PreconditionFailedError(uri)
        return cast(IO[bytes], _File(uri, mode))

    def write_atomically(
        self, uri: str, data: bytes, *, if_generation: str | None = None
    ) -> None:
        if if_generation is not None:
            raise _unsupported("replace a file only if it is of one generation", uri)
        # An object appears when it is closed.
        with self.open(uri, "wb") as file:
            file.write(data)

    def write_if_absent(self, uri: str, data: bytes) -> bool:
        raise _unsupported("write a file only where there is none", uri)

    def copy(self, source: str, target: str) -> None:
        with _os_errors(source):
            fileio.copy(source, target, overwrite=True)

    def rename(self, source: str, target: str) -> None:
        with _os_errors(source):
            fileio.rename(source, target, overwrite=True)

    def delete(self, uri: str) -> None:
        with _os_errors(uri):
            fileio.remove(uri)

    def delete_tree(self, uri: str) -> None:
        with _os_errors(uri):
            if fileio.isdir(uri):
                fileio.rmtree(uri)
            elif fileio.exists(uri):
                fileio.remove(uri)

    def make_folder(self, uri: str) -> None:
        with _os_errors(uri):
            fileio.makedirs(uri)

    def _entry(self, folder: str, name: str) -> Entry:
        uri = f"{folder.rstrip('/')}/{name}"
        found = fileio.stat(uri)
        if found.is_directory:
            return Entry(uri, name, "folder")
        modified_s = found.mtime_nsec / 1e9
        generation = f"{found.length}-{found.mtime_nsec}"
        return Entry(
            uri, name, "file", found.length, generation, modified_s, modified_s
        )


class _File:
    """A file of ``fileio``, which raises OSErrors."""

    def __init__(self, uri: str, mode: str) -> None:
        self._uri = uri
        with _os_errors(uri):
            self._file = fileio.open(uri, mode)

    def read(self, size: int = -1) -> bytes:
        with _os_errors(self._uri):
            return self._file.read(size)

    def write(self, data: bytes) -> None:
        with _os_errors(self._uri):
            self._file.write(data)

    def close(self) -> None:
        with _os_errors(self._uri):
            self._file.close()

    def __enter__(self) -> _File:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _listdir(folder: str) -> list[str]:
    try:
        return list(fileio.listdir(folder))
    except filesystem.NotFoundError:
        # TensorFlow raises this for every error, as its isdir is false; stat raises the
        # real one.
        try:
            found = fileio.stat(folder)
        except (filesystem.NotFoundError, tf.errors.NotFoundError):
            return []
        return list(fileio.listdir(folder)) if found.is_directory else []


@contextmanager
def _os_errors(uri: str) -> Iterator[None]:
    """Raises as an OSError what TensorFlow's file systems raise."""
    try:
        yield
    except (filesystem.NotFoundError, tf.errors.NotFoundError) as error:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), uri) from error
    except tf.errors.OpError as error:
        raise OSError(errno.EIO, error.message, uri) from error


def _unsupported(what: str, uri: str) -> OSError:
    return OSError(errno.EOPNOTSUPP, f"this file system cannot {what}", uri)
