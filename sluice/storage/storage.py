"""Storage interface for local files and objects in buckets.

``storage_for(uri)`` returns the storage that an address belongs to: this machine's file
systems, or Google Cloud Storage for ``gs://``. What fails raises an ``OSError``,
whichever storage it is. A folder of a bucket is only a prefix of names: it is there as
long as something lies in it.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal, cast

from sluice.errors import UsageError
from sluice.storage import atomic

Kind = Literal["file", "folder", "other"]


class PreconditionFailedError(OSError):
    """A file does not have the generation to replace: another writer won."""

    def __init__(self, uri: str) -> None:
        super().__init__(errno.ESTALE, "another writer has changed it meanwhile", uri)


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
    """Files by path or address; each implementation has its own file system."""

    @abstractmethod
    def list(self, folder: str, *, recursive: bool = False) -> Sequence[Entry]:
        """Returns the entries of a folder, by name; none if there is no folder.

        ``recursive`` returns all files below it, and no folders.

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
        return self.exists(uri) and self.stat(uri).kind == "file"

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
        or else the current one; a disk ignores it.

        Raises:
          PreconditionFailedError: the object has another generation.
        """

    @abstractmethod
    def write_atomically(self, uri: str, data: bytes) -> None:
        """Writes a file so that a reader sees the old content or the new, never a part.

        Raises:
          OSError: it cannot be written; the old file is then untouched.
        """

    @abstractmethod
    def write_if_absent(self, uri: str, data: bytes) -> bool:
        """Creates a file atomically if there is none; returns whether it did.

        Of several concurrent writers exactly one gets True.
        """

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


class LocalStorage(Storage):
    """Files of this machine; a generation is the inode and its time of modification."""

    def list(self, folder: str, *, recursive: bool = False) -> Sequence[Entry]:
        try:
            names = os.listdir(folder)
        except (FileNotFoundError, NotADirectoryError):
            return []
        if recursive:
            names = [*_names_below(folder)]
        entries = (_entry(os.path.join(folder, name), name) for name in sorted(names))
        return [e for e in entries if not recursive or e.kind == "file"]

    def stat(self, uri: str) -> Entry:
        os.stat(uri)
        return _entry(uri, os.path.basename(uri))

    def open(
        self, uri: str, mode: Literal["rb", "wb"], *, generation: str | None = None
    ) -> IO[bytes]:
        return cast(IO[bytes], open(uri, mode))

    def write_atomically(self, uri: str, data: bytes) -> None:
        atomic.write_bytes(uri, data)

    def write_if_absent(self, uri: str, data: bytes) -> bool:
        return atomic.create(uri, data)

    def rename(self, source: str, target: str) -> None:
        os.replace(source, target)

    def delete(self, uri: str) -> None:
        os.unlink(uri)

    def delete_tree(self, uri: str) -> None:
        if os.path.isdir(uri) and not os.path.islink(uri):
            shutil.rmtree(uri)
        else:
            Path(uri).unlink(missing_ok=True)

    def make_folder(self, uri: str) -> None:
        os.makedirs(uri, exist_ok=True)


def is_remote(uri: str) -> bool:
    """Whether an address is of another file system than this machine's."""
    return "://" in uri


def storage_for(uri: str | Path) -> Storage:
    """Returns the storage that a path or address belongs to.

    Raises:
      UsageError: the address is neither a path nor ``gs://``.
    """
    scheme, separator, _ = os.fspath(uri).partition("://")
    if not separator:
        return _LOCAL
    if scheme != "gs":
        raise UsageError(f"{scheme}:// is not supported, only gs:// is", where=uri)
    # Imports the client, which takes a second.
    from sluice.storage.gcs_storage import GcsStorage

    return GcsStorage()


_LOCAL = LocalStorage()


def _names_below(folder: str) -> Iterator[str]:
    """Yields the files' relative names; links to folders are not followed."""

    def fail(error: OSError) -> None:
        raise error

    for top, _, names in os.walk(folder, onerror=fail):
        for name in names:
            yield os.path.relpath(os.path.join(top, name), folder)


def _entry(path: str, name: str) -> Entry:
    try:
        status = os.stat(path)
    except OSError:  # A dangling link; reading it raises.
        return Entry(path, name, "file")
    if stat.S_ISDIR(status.st_mode):
        return Entry(path, name, "folder")
    return Entry(
        uri=path,
        name=name,
        kind="file" if stat.S_ISREG(status.st_mode) else "other",
        size_bytes=status.st_size,
        generation=f"{status.st_ino}-{status.st_mtime_ns}",
        modified_s=status.st_mtime,
        changed_s=max(status.st_mtime, status.st_ctime),
    )
