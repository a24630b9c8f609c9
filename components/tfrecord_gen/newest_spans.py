"""Selects the files of the newest complete spans.

A span is the files of one number, or of one day, in all splits; of its versions the
newest complete one is used. A span without files of a split, or that is not complete,
is skipped. TFX supports a window of one span only, and fails if the newest span is not
yet there in every split. No file is opened or written here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

from components.tfrecord_gen.input_files import MANIFEST_FILE, SourceFile, Span, Window
from components.tfrecord_gen.placeholders import SpanPattern, span_date, span_number
from components.tfrecord_gen.settings import Ingestion
from sluice.errors import DataError, UsageError
from sluice.storage.file_pattern import Segment
from sluice.storage.storage import Entry, storage_for
from sluice.storage.storage_errors import explain_unreadable

# Paths, relative to the base, by split.
_Paths = Mapping[str, Sequence[str]]


class NoFilesError(UsageError):
    """A pattern matches no file."""


def select_spans(settings: Ingestion, now_s: float) -> Window:
    """Returns the newest complete spans and their files.

    Args:
      settings: which files, and how many spans; fewer if there are not so many.
      now_s: seconds since 1970.

    Raises:
      ConfigError: a pattern cannot be used.
      DataError: no span is complete.
      NoFilesError: a pattern matches no file.
      UsageError: a directory cannot be read, or what is matched is no readable file.
    """
    patterns = {name: SpanPattern.parse(p) for name, p in settings.patterns.items()}
    return _Search(settings, patterns, now_s).window()


@dataclass
class _Search:
    """The search of one data directory, whose folders are listed at most once."""

    settings: Ingestion
    patterns: Mapping[str, SpanPattern]
    now_s: float
    skipped: list[str] = field(default_factory=list)
    _listed: dict[str, dict[str, Entry]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._base = self.settings.base.rstrip("/") or "/"
        self._storage = storage_for(self._base)

    def window(self) -> Window:
        """Returns the newest complete spans."""
        found, chosen = self._spans(), dict[Span, _Paths]()
        for span in sorted(found, key=lambda x: (x.number, x.version or 0))[::-1]:
            if any(span.number == newer.number for newer in chosen):
                continue
            if len(chosen) == self.settings.window:
                break
            paths = self._files(found[span])
            if isinstance(paths, str):
                name = span if self._has_spans else "the data"
                self.skipped.append(f"{name} was not taken: {paths}")
            else:
                chosen[span] = paths
        if not chosen:
            raise self._nothing()
        files = [
            self._source(path, split, span)
            for span in reversed(chosen)
            for split, paths in chosen[span].items()
            for path in sorted(paths)
        ]
        paths_of = (chain(*paths.values()) for paths in chosen.values())
        folders = {path.rpartition("/")[0] for path in chain(*paths_of)}
        manifests = [
            self._source(_join(folder, MANIFEST_FILE), "")
            for folder in sorted(folders)
            if MANIFEST_FILE in self._list(folder)
        ]
        skipped = tuple(dict.fromkeys(self.skipped))
        listed = tuple(files), tuple(manifests), skipped
        return Window(self._base, self.settings.patterns, *listed)

    @property
    def _has_spans(self) -> bool:
        return any(pattern.placeholders for pattern in self.patterns.values())

    def _spans(self) -> dict[Span, dict[str, list[str]]]:
        """Returns the folders, or files, whose names have the number of each span."""
        found: dict[Span, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
        for split, pattern in self.patterns.items():
            first, rest = pattern.parts
            for path in self._walk([""], first, to_files=not rest):
                try:
                    span = _span(pattern.digits(path))
                except ValueError:
                    self.skipped.append(f"{path} was not taken: not a date")
                else:
                    found[span][split].append(path)
        return found

    def _files(self, places: _Paths) -> _Paths | str:
        """Returns the files of a span by split, or why it is not complete."""
        for split, pattern in self.patterns.items():
            if split not in places:
                return f"no file matches {pattern.text}"
        when = self.settings.complete_when
        if when.marker:
            # Before the files are listed: it is written last.
            for folder in dict.fromkeys(chain(*places.values())):
                marker = self._path(_join(folder, when.marker))
                with explain_unreadable(marker):
                    if not self._storage.is_file(marker):
                        return f"no {when.marker} in {self._path(folder)}"
        files = {}
        for split, pattern in self.patterns.items():
            _, rest = pattern.parts
            paths = self._walk(places[split], rest, to_files=True)
            files[split] = [p for p in paths if p.rpartition("/")[2] != when.marker]
            if not files[split]:
                return f"no file matches {pattern.text}"
        if when.quiet_for_s:
            every = (path for paths in files.values() for path in paths)
            last_s, path = max((self._entry(path).changed_s, path) for path in every)
            if self.now_s - last_s < when.quiet_for_s:
                ago = f"{self.now_s - last_s:.0f} s ago"
                return f"{path} was changed {ago}, not {when.quiet_for_s:g} s ago"
        return files

    def _nothing(self) -> DataError | UsageError:
        """Returns the error for data with no complete span, or without a file."""
        for pattern in self.patterns.values():
            if not self._walk([""], pattern.segments, to_files=True):
                return NoFilesError(
                    f"no file matches the pattern {pattern.text!r}",
                    where=self._base,
                    examples=[*self._list("")],
                    hint="correct data.dir or the pattern",
                )
        return DataError(
            "no span of the data is complete",
            where=self._base,
            examples=self.skipped,
            hint="wait until it is complete, or change examples.complete_when",
        )

    def _source(self, path: str, split: str, span: Span | None = None) -> SourceFile:
        entry, whole = self._entry(path), self._path(path)
        if entry.kind != "file":
            # Opening a pipe would block until there is a writer.
            raise UsageError("what matches a pattern is no regular file", where=whole)
        if not entry.generation:
            with explain_unreadable(whole):  # A link that leads nowhere.
                self._storage.stat(whole)
        number = span.number if span and self._has_spans else None
        version = span.version if span else None
        state = entry.size_bytes, entry.generation, entry.modified_s
        return SourceFile(whole, split or None, number, version, *state)

    def _walk(
        self, paths: Sequence[str], segments: Sequence[Segment], *, to_files: bool
    ) -> Sequence[str]:
        """Returns the paths below some folders that match, one segment per name."""
        for index, segment in enumerate(segments):
            is_file = to_files and index == len(segments) - 1
            if segment.regex is None and not is_file:
                paths = [_join(path, segment.text) for path in paths]
            else:
                paths = [
                    _join(path, entry.name)
                    for path in paths
                    for entry in self._list(path).values()
                    if (entry.kind != "folder") == is_file
                    and segment.match(entry.name) is not None
                ]
        return paths

    def _list(self, folder: str) -> dict[str, Entry]:
        if folder not in self._listed:
            path = self._path(folder)
            with explain_unreadable(path, "a directory of the data cannot be read"):
                entries = self._storage.list(path)
            self._listed[folder] = {entry.name: entry for entry in entries}
        return self._listed[folder]

    def _entry(self, path: str) -> Entry:
        folder, _, name = path.rpartition("/")
        return self._list(folder)[name]

    def _path(self, relative: str) -> str:
        return f"{self._base.rstrip('/')}/{relative}" if relative else self._base


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def _span(digits: dict[str, str]) -> Span:
    if not digits:
        return Span(0)
    number = span_number(digits)
    version = int(digits["VERSION"]) if "VERSION" in digits else None
    return Span(number, version, span_date(number) if "YYYY" in digits else None)
