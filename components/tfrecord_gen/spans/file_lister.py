"""Lists the files below a directory, on disk or in a bucket.

Names come from listings and never from a glob, so that a directory may be named with
``[`` or ``*``. Addresses with ``://`` are listed by TFX, which is imported only then.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Literal

from sluice.errors import UsageError
from sluice.storage import uri
from sluice.storage.file_pattern import Segment

_Kind = Literal["folder", "file", "other", "unknown"]


class FileLister:
    """The files below one directory; all paths are relative to it, with ``/``."""

    def __init__(self, base: str) -> None:
        """Names the directory, which need not exist: then it has no files.

        Args:
          base: a local path, or an address such as ``gs://bucket/trips``.
        """
        self.base = base.rstrip("/") or "/"
        self._is_remote = uri.is_remote(base)

    def path(self, relative: str) -> str:
        """Returns the whole path, or address, of a file or folder."""
        if not relative:
            return self.base
        return f"{self.base.rstrip('/')}/{relative}"

    def relative(self, path: str) -> str:
        """Returns a file's path below the base, of its whole path."""
        return path[len(self.base.rstrip("/")) + 1 :]

    def folders(self, segments: Sequence[Segment]) -> list[str]:
        """Returns the folders whose names match, one segment for each name."""
        found = [""]
        for segment in segments:
            found = [inner for folder in found for inner in self._in(folder, segment)]
        return found

    def files(self, folder: str, segments: Sequence[Segment]) -> list[str]:
        """Returns the files below a folder whose names match, sorted.

        A link that leads nowhere is one of them.

        Args:
          folder: where to begin; ``""`` is the base.
          segments: one for each name below it; the last is the file's.

        Raises:
          UsageError: a directory cannot be read, or what matches is no regular file,
            or has a name that is not UTF-8.
        """
        folders = [folder]
        for segment in segments[:-1]:
            folders = [inner for outer in folders for inner in self._in(outer, segment)]
        return sorted(
            _join(parent, name)
            for parent in folders
            for name in self._names(parent, segments[-1], of_folders=False)
        )

    def matches(self, segments: Sequence[Segment]) -> bool:
        """Whether there is a file whose path matches, one segment for each name."""
        return bool(self.files("", segments))

    def exists(self, relative: str) -> bool:
        """Whether there is such a file."""
        path = self.path(relative)
        with _explain(path, "a file of the data cannot be looked at"):
            return uri.is_file(path)

    def names(self, folder: str) -> list[str]:
        """Returns what lies in a folder, sorted, for a message; [] if there is none."""
        return sorted(_shown(name) for name, _ in self._entries(folder))

    def modified_s(self, relative: str) -> float:
        """Returns when a file's content was written, in seconds since 1970.

        Raises:
          UsageError: the file is gone, or cannot be looked at.
        """
        return self._stat(relative)[1]

    def changed_s(self, relative: str) -> float:
        """Returns when a file last changed, in seconds since 1970.

        On disk its arrival counts as well: ``cp -p`` keeps the time of modification.

        Raises:
          UsageError: the file is gone, or cannot be looked at.
        """
        return max(self._stat(relative)[1:])

    def state(self, relative: str) -> tuple[int, float]:
        """Returns size in bytes and time of modification, without reading the file.

        Raises:
          UsageError: the file is gone, or cannot be looked at.
        """
        size, modified_s, _ = self._stat(relative)
        return size, modified_s

    def _in(self, folder: str, segment: Segment) -> list[str]:
        names = self._names(folder, segment, of_folders=True)
        return [_join(folder, name) for name in names]

    def _names(self, folder: str, segment: Segment, *, of_folders: bool) -> list[str]:
        if segment.regex is None and of_folders:
            return [segment.text]
        wanted: tuple[_Kind, ...] = ("folder" if of_folders else "file", "unknown")
        names = []
        for name, kind in self._entries(folder, segment):
            if kind == "other" and not of_folders:
                # Opened, a pipe would wait for a writer for ever.
                raise UsageError(
                    "what matches a pattern of the data is no regular file",
                    where=self.path(_join(folder, name)),
                    hint="move it away, or correct the pattern",
                )
            if kind in wanted:
                _check_name(self.path(folder), name)
                names.append(name)
        return names

    def _entries(
        self, folder: str, segment: Segment | None = None
    ) -> list[tuple[str, _Kind]]:
        """Returns names, of which only those that match are looked at."""

        def matches(name: str) -> bool:
            return segment is None or segment.match(name) is not None

        path = self.path(folder)
        with _explain(path, "a directory of the data cannot be read"):
            try:
                if self._is_remote:
                    return [item for item in _remote_entries(path) if matches(item[0])]
                with os.scandir(path) as entries:
                    return [(e.name, _kind(e)) for e in entries if matches(e.name)]
            except (FileNotFoundError, NotADirectoryError):
                return []

    def _stat(self, relative: str) -> tuple[int, float, float]:
        """Returns the size, and when content and file changed, in seconds."""
        path = self.path(relative)
        with _explain(path, "a file of the data cannot be looked at"):
            if not self._is_remote:
                status = os.stat(path)
                return status.st_size, status.st_mtime, status.st_ctime
            from tfx.dsl.io import fileio

            found = fileio.stat(path)
            modified_s = found.mtime_nsec / 1e9
            return found.length, modified_s, modified_s


@contextmanager
def _explain(path: str, what: str) -> Iterator[None]:
    try:
        yield
    except uri.read_errors(path) as error:
        raise UsageError(
            what,
            where=path,
            actual=getattr(error, "strerror", None) or str(error) or "it is gone",
            hint="check the path and its permissions, and whether something removes "
            "data now",
        ) from error


def _remote_entries(path: str) -> list[tuple[str, _Kind]]:
    # A bucket's listing ends the names of folders with a slash.
    return [
        (name.rstrip("/"), "folder" if name.endswith("/") else "unknown")
        for name in uri.list_remote(path)
        if name.strip("/")
    ]


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def _check_name(folder: str, name: str) -> None:
    try:
        name.encode()
    except UnicodeEncodeError as error:
        # Neither JSON nor ML Metadata can hold it.
        raise UsageError(
            "the name of a file of the data is not UTF-8",
            where=f"{folder}/{_shown(name)}",
            hint="rename it",
        ) from error


def _shown(name: str) -> str:
    return os.fsencode(name).decode(errors="backslashreplace")


def _kind(entry: os.DirEntry[str]) -> _Kind:
    try:
        if entry.is_dir():
            return "folder"
        if entry.is_file():
            return "file"
    except OSError:  # A link in a circle, or below a directory that is closed to us.
        return "file"
    is_broken_link = entry.is_symlink() and not os.path.exists(entry.path)
    return "file" if is_broken_link else "other"
