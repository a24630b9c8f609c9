"""Storage interface for local files and objects in buckets.

``storage_for(uri)`` returns the storage that an address belongs to: this machine's file
systems, Google Cloud Storage for ``gs://``, and TFX's file systems for every other
``scheme://``. What fails raises an ``OSError``, whichever storage it is; see
``storage_errors``. A folder of a bucket is only a prefix of names: it is there as long
as something lies in it.
"""

from __future__ import annotations

import functools
import importlib
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal

Kind = Literal["file", "folder", "other"]

_SCHEME = re.compile(r"([a-z][a-z0-9+.-]{0,30})://")
# By scheme. Imported by name, so that the fingerprint of a node's code has them only if
# the node may access remote files; see ``remote_modules``.
_REMOTE = {"gs": "sluice.storage.gcs_storage:GcsStorage"}
_OTHER = "sluice.storage.fileio_storage:FileioStorage"


@dataclass(frozen=True)
class Entry:
    """A file or folder, as a listing has it.

    Attributes:
      name: relative to the listed folder.
      kind: "other" cannot be read as a file, such as a pipe.
      size_bytes: 0 for a folder.
      generation: changes with every write; empty for a folder and a dangling link.
      modified_s: time when the content was written, in seconds since 1970.
      changed_s: on a disk, time of the last change of content or metadata (``cp -p``
        keeps ``modified_s``); otherwise ``modified_s``.
    """

    uri: str
    name: str
    kind: Kind
    size_bytes: int = 0
    generation: str = ""
    modified_s: float = 0.0
    changed_s: float = 0.0


class Storage(ABC):
    """Files and folders by path or address.

    Attributes:
      has_preconditions: whether it knows ``if_generation`` and ``write_if_absent``.
      can_fork: whether a process that has used it may fork, and both use it then.
    """

    has_preconditions = True
    can_fork = True

    @abstractmethod
    def list(
        self,
        folder: str,
        *,
        recursive: bool = False,
        matching: Callable[[str], bool] | None = None,
    ) -> Sequence[Entry]:
        """Returns the entries of a folder, by name; none if there is no folder.

        ``recursive`` returns all files below it, and no folders; ``matching`` selects
        names, and on a disk others are not inspected.

        Raises:
          OSError: it cannot be listed; also where the bucket does not exist.
        """

    def names(self, folder: str) -> Sequence[str]:
        """Returns the names in a folder, sorted; see ``list``."""
        return [entry.name for entry in self.list(folder)]

    @abstractmethod
    def stat(self, uri: str) -> Entry:
        """Returns the entry of a file or folder.

        Raises:
          FileNotFoundError: there is none.
          OSError: it cannot be accessed.
        """

    def exists(self, uri: str) -> bool:
        """Whether there is a file or folder."""
        try:
            self.stat(uri)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def is_file(self, uri: str) -> bool:
        """Whether there is a file."""
        try:
            return self.stat(uri).kind == "file"
        except (FileNotFoundError, NotADirectoryError):
            return False

    def read(self, uri: str) -> bytes:
        """Returns the content of a file.

        Raises:
          OSError: it cannot be read.
        """
        with self.open(uri, "rb") as file:
            return file.read()

    @abstractmethod
    def open(
        self, uri: str, mode: Literal["rb", "wb"], *, generation: str | None = None
    ) -> IO[bytes]:
        """Opens a file, to read or write sequentially.

        An object in a bucket appears when it is closed, but not if the ``with`` block
        that writes it raises. Only one generation of an object is read: the one given,
        or else the current one.

        Raises:
          PreconditionFailedError: the file has another generation.
        """

    @abstractmethod
    def write_atomically(
        self, uri: str, data: bytes, *, if_generation: str | None = None
    ) -> None:
        """Writes a file so that a reader sees the old content or the new, never a part.

        Raises:
          PreconditionFailedError: the file is not of ``if_generation``, or is gone.
          OSError: it cannot be written; the old file is then untouched.
        """

    @abstractmethod
    def write_if_absent(self, uri: str, data: bytes) -> bool:
        """Creates a file atomically if there is none; returns whether it did.

        Of several concurrent writers exactly one gets True.
        """

    @abstractmethod
    def copy(self, source: str, target: str) -> None:
        """Copies a file, within one file system or bucket; replaces the target."""

    @abstractmethod
    def rename(self, source: str, target: str) -> None:
        """Renames a file, within one file system or bucket; replaces the target."""

    @abstractmethod
    def delete(self, uri: str) -> None:
        """Deletes a file.

        Raises:
          FileNotFoundError: there is no such file.
        """

    @abstractmethod
    def delete_tree(self, uri: str) -> None:
        """Deletes a file or a folder recursively, if it exists.

        Links are deleted, not followed.

        Raises:
          OSError: something in it cannot be deleted.
        """

    @abstractmethod
    def make_folder(self, uri: str) -> None:
        """Creates a folder and its parents, in a storage that has folders."""


def is_remote(uri: str) -> bool:
    """Whether an address is of another file system than this machine's."""
    return "://" in uri


def storage_for(uri: str | Path) -> Storage:
    """Returns the storage that a path or address belongs to."""
    scheme, separator, _ = os.fspath(uri).partition("://")
    return _storage_of(scheme if separator else "")


@functools.cache
def _storage_of(scheme: str) -> Storage:
    # Each imports what it needs: the client of a bucket, or TFX and TensorFlow.
    if not scheme:
        from sluice.storage.local_storage import LocalStorage

        return LocalStorage()
    module, _, name = _REMOTE.get(scheme, _OTHER).partition(":")
    return getattr(importlib.import_module(module), name)()


def remote_modules(text: str) -> list[str]:
    """Returns the modules that access the remote addresses in a text, by name."""
    classes = {_REMOTE.get(scheme, _OTHER) for scheme in _SCHEME.findall(text)}
    return sorted(name.partition(":")[0] for name in classes)
