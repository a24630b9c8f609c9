"""Lists the files below a directory, on disk or in a bucket.

Names come from listings and not from a glob, so directory names may contain ``[`` and
``*``. Sizes and times come with the listing, without a request per file.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from sluice.errors import UsageError
from sluice.storage.file_pattern import Segment
from sluice.storage.storage import Entry, Kind, storage_for
from sluice.storage.storage_errors import explain_unreadable

_DIRECTORY = "a directory of the data cannot be read"


class FileLister:
    """The files below one directory; all paths are relative to it, with ``/``."""

    def __init__(self, base: str) -> None:
        """Names the directory, which need not exist: then it has no files.

        Args:
          base: a local path, or an address such as ``gs://bucket/trips``.
        """
        self.base = base.rstrip("/") or "/"
        self._storage = storage_for(base)
        # Entries of folders by relative path, then name.
        self._listed: dict[str, dict[str, Entry]] = {}

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
        with explain_unreadable(path):
            return self._storage.is_file(path)

    def names(self, folder: str) -> list[str]:
        """Returns the names in a folder, sorted, for messages; [] if there is none."""
        path = self.path(folder)
        with explain_unreadable(path, _DIRECTORY):
            return sorted(map(_shown, self._storage.names(path)))

    def children(self, folders: Sequence[str], segment: Segment) -> list[str]:
        """Returns everything in some folders that matches, for messages.

        Unlike ``folders``, it checks that literal names exist.
        """
        return [
            _join(folder, name)
            for folder in folders
            for name in self.names(folder)
            if segment.match(name) is not None
        ]

    def _in(self, folder: str, segment: Segment) -> list[str]:
        names = self._names(folder, segment, of_folders=True)
        return [_join(folder, name) for name in names]

    def _names(self, folder: str, segment: Segment, *, of_folders: bool) -> list[str]:
        if segment.regex is None and of_folders:
            return [segment.text]
        wanted = "folder" if of_folders else "file"
        names = []
        kinds: list[Kind] = ["folder"] if of_folders else ["file", "other"]
        for entry in self._listing(folder).values():
            if entry.kind not in kinds or segment.match(entry.name) is None:
                continue
            if entry.kind == "other" and not of_folders:
                # Opening a pipe would block until there is a writer.
                raise UsageError(
                    "a path that matches a data pattern is not a regular file",
                    where=self.path(_join(folder, entry.name)),
                    hint="move it away, or correct the pattern",
                )
            if entry.kind == wanted:
                _check_name(self.path(folder), entry.name)
                names.append(entry.name)
        return names

    def _listing(self, folder: str) -> dict[str, Entry]:
        if folder not in self._listed:
            path = self.path(folder)
            with explain_unreadable(path, _DIRECTORY):
                entries = self._storage.list(path)
            self._listed[folder] = {entry.name: entry for entry in entries}
        return self._listed[folder]

    def stat(self, relative: str) -> Entry:
        """Returns a file's size and times, without reading it.

        Raises:
          UsageError: the file is gone, or cannot be read.
        """
        path = self.path(relative)
        with explain_unreadable(path):
            folder, _, name = relative.rpartition("/")
            seen = self._listing(folder).get(name)
            # A dangling link is inspected again, for its error.
            return seen if seen and seen.generation else self._storage.stat(path)


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def _check_name(folder: str, name: str) -> None:
    try:
        name.encode()
    except UnicodeEncodeError as error:
        # Neither JSON nor ML Metadata can hold it.
        raise UsageError(
            "the name of a data file is not UTF-8",
            where=f"{folder}/{_shown(name)}",
            hint="rename it",
        ) from error


def _shown(name: str) -> str:
    return os.fsencode(name).decode(errors="backslashreplace")
