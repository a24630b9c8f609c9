"""Local file system, behind the interface of ``storage``."""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Literal, cast

from sluice.storage import atomic
from sluice.storage.storage import Entry, Kind, Storage
from sluice.storage.storage_errors import PreconditionFailedError


class LocalStorage(Storage):
    """Files by path; a generation is the inode and its time of modification.

    A conditional write locks the file that it replaces (``flock``), so concurrent
    conditional writers do not overwrite each other.
    """

    def list(
        self,
        folder: str,
        *,
        recursive: bool = False,
        matching: Callable[[str], bool] | None = None,
    ) -> Sequence[Entry]:
        found = _files_below(folder) if recursive else _scan(folder)
        entries = [
            _entry(item, name)
            for name, item in found
            if matching is None or matching(name)
        ]
        return sorted(entries, key=lambda entry: entry.name)

    def names(self, folder: str) -> Sequence[str]:
        try:
            return sorted(os.listdir(folder))
        except (FileNotFoundError, NotADirectoryError):
            return []

    def stat(self, uri: str) -> Entry:
        return _from_status(uri, os.path.basename(uri), os.stat(uri))

    def exists(self, uri: str) -> bool:
        return os.path.exists(uri)

    def is_file(self, uri: str) -> bool:
        return os.path.isfile(uri)

    def open(
        self, uri: str, mode: Literal["rb", "wb"], *, generation: str | None = None
    ) -> IO[bytes]:
        file = cast(IO[bytes], open(uri, mode))  # noqa: SIM115
        now = _generation(os.fstat(file.fileno()))
        if generation not in (None, now):
            file.close()
            raise PreconditionFailedError(uri)
        return file

    def write_atomically(
        self, uri: str, data: bytes, *, if_generation: str | None = None
    ) -> None:
        if if_generation is None:
            atomic.write_bytes(uri, data)
            return
        with _only_if(uri, if_generation):
            atomic.write_bytes(uri, data)

    def write_if_absent(self, uri: str, data: bytes) -> bool:
        return atomic.create(uri, data)

    def copy(self, source: str, target: str) -> None:
        shutil.copyfile(source, target)

    def rename(self, source: str, target: str) -> None:
        os.replace(source, target)

    def delete(self, uri: str) -> None:
        os.unlink(uri)

    def delete_tree(self, uri: str) -> None:
        if os.path.isdir(uri) and not os.path.islink(uri):
            shutil.rmtree(uri)
        elif os.path.lexists(uri):
            os.unlink(uri)

    def make_folder(self, uri: str) -> None:
        os.makedirs(uri, exist_ok=True)


@contextmanager
def _only_if(path: str, generation: str) -> Iterator[None]:
    """Holds the lock of a file, which is of this generation.

    Who waits for the lock finds another file in its place afterwards.
    """
    try:
        handle = os.open(path, os.O_RDWR)
    except FileNotFoundError as error:
        raise PreconditionFailedError(path) from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        try:
            now = _generation(os.stat(path))
        except FileNotFoundError as error:
            raise PreconditionFailedError(path) from error
        if now != generation:
            raise PreconditionFailedError(path)
        yield
    finally:
        os.close(handle)


def _generation(status: os.stat_result) -> str:
    return f"{status.st_ino}-{status.st_mtime_ns}"


def _scan(folder: str) -> Iterator[tuple[str, os.DirEntry[str]]]:
    try:
        with os.scandir(folder) as items:
            yield from ((item.name, item) for item in items)
    except (FileNotFoundError, NotADirectoryError):
        return


def _files_below(folder: str, prefix: str = "") -> Iterator[tuple[str, os.DirEntry]]:
    """Yields relative names; links to folders are not followed, and no files."""
    for name, item in _scan(folder):
        if item.is_dir(follow_symlinks=False):
            yield from _files_below(item.path, f"{prefix}{name}/")
        elif _kind(item) == "file":
            yield f"{prefix}{name}", item


def _entry(item: os.DirEntry[str], name: str) -> Entry:
    kind = _kind(item)
    if kind == "file":
        try:
            return _from_status(item.path, name, item.stat())
        except OSError:  # A dangling link; reading it raises.
            pass
    return Entry(item.path, name, kind)


def _from_status(uri: str, name: str, status: os.stat_result) -> Entry:
    mode = status.st_mode
    if stat.S_ISDIR(mode):
        return Entry(uri, name, "folder")
    return Entry(
        uri=uri,
        name=name,
        kind="file" if stat.S_ISREG(mode) else "other",
        size_bytes=status.st_size,
        generation=_generation(status),
        modified_s=status.st_mtime,
        changed_s=max(status.st_mtime, status.st_ctime),
    )


def _kind(entry: os.DirEntry[str]) -> Kind:
    try:
        if entry.is_dir():
            return "folder"
        if entry.is_file():
            return "file"
    except OSError:  # A link in a circle, or below a directory that is closed to us.
        return "file"
    is_broken_link = entry.is_symlink() and not os.path.exists(entry.path)
    return "file" if is_broken_link else "other"
