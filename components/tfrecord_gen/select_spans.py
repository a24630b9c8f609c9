"""Selects the files of the newest complete spans.

A span is the files of one number, or of one day, in all splits; of its versions the
newest complete one is used. A span without files of a split, or that is not complete,
is skipped, and so is a day after tomorrow, in UTC. TFX supports a window of one span
only, and fails if the newest span is not yet there in every split. No data file is
opened here.

The placeholders ``{SPAN}``, of a date and ``{VERSION}`` are those of TFX's ExampleGen;
``sluice.storage.file_pattern`` defines what each matches.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta, timezone
from itertools import chain
from typing import Any

from components.tfrecord_gen.input_files import (
    EPOCH,
    MANIFEST_FILE,
    SourceFile,
    Span,
    SpanChoice,
    Window,
)
from components.tfrecord_gen.settings import SETTINGS, SPANS, Ingestion
from sluice.errors import DataError, UsageError, bounded
from sluice.node_environment import node_environment
from sluice.storage.file_pattern import FilePattern, PatternError, Segment
from sluice.storage.storage import Entry, storage_for
from sluice.storage.storage_errors import explain_unreadable

# Paths of files or folders by split.
_Paths = Mapping[str, Sequence[str]]
_DATE = ("YYYY", "MM", "DD")
_MAX_INT64 = 2**63 - 1
_TOGETHER = "{SPAN}, or {YYYY}, {MM} and {DD}; each once; {VERSION} only with them"


class SpanPattern(FilePattern):
    """A file pattern with a valid combination of placeholders."""

    @classmethod
    def parse(cls, text: str) -> SpanPattern:
        """Reads a pattern.

        Raises:
          PatternError: a placeholder is unknown, repeated, or lacks others that it
            needs; or the pattern names no file.
        """
        pattern = super().parse(text)
        names = sorted(name for name in pattern.placeholders if name != "VERSION")
        if names not in (["SPAN"], sorted(_DATE), []) or (
            not names and pattern.placeholders
        ):
            raise PatternError(text, _TOGETHER)
        return cls(pattern.text, pattern.segments)

    @property
    def parts(self) -> tuple[tuple[Segment, ...], tuple[Segment, ...]]:
        """The leading segments that contain all placeholders, and the others.

        Without placeholders, the leading literal directories and the others.
        """
        marked = [segment.has_placeholder for segment in self.segments]
        literal = [segment.regex is None for segment in self.segments[:-1]]
        at = [*literal, False].index(False)
        if any(marked):
            at = len(marked) - marked[::-1].index(True)
        return self.segments[:at], self.segments[at:]

    def digits(self, path: str) -> dict[str, str]:
        """Returns the digits of the placeholders in the beginning of a path."""
        digits: dict[str, str] = {}
        for segment, name in zip(self.segments, path.split("/"), strict=False):
            digits |= segment.match(name) or {}
        return digits


class NoFilesError(UsageError):
    """A pattern matches no file."""


def select_spans(settings: Ingestion, now_s: float) -> Window:
    """Returns the newest complete spans and their files.

    Args:
      settings: which files, and how many spans; fewer if there are not so many.
      now_s: seconds since 1970.

    Raises:
      ConfigError: a pattern cannot be used.
      DataError: no span is complete, or one is there twice.
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
        self._base = self.settings.base.rstrip("/")
        self._storage = storage_for(self.settings.base)

    def window(self) -> Window:
        """Returns the newest complete spans."""
        places, chosen = self._spans(), dict[Span, _Paths]()
        for span in sorted(places, key=lambda x: (x.number, x.version or 0))[::-1]:
            if any(span.number == newer.number for newer in chosen):
                continue
            if len(chosen) == self.settings.window:
                break
            self._require_one_spelling(span, places[span])
            paths = self._files(places[span])
            if isinstance(paths, str):
                name = span if self._has_spans else "the data"
                self.skipped.append(f"{name} was not taken: {paths}")
            else:
                chosen[span] = paths
        if not chosen:
            raise self._nothing()
        if days := [str(day) for day in _missing_days(places, chosen)]:
            self.skipped.append(f"there is no span of {', '.join(bounded(days))}")
        files = [
            self._source(path, split, span)
            for span in reversed(chosen)
            for split, paths in chosen[span].items()
            for path in sorted(paths)
        ]
        paths_of = (chain(*paths.values()) for paths in chosen.values())
        folders = {path.rpartition("/")[0] for path in chain(*paths_of)}
        manifests = [
            self._source(f"{folder}/{MANIFEST_FILE}", "")
            for folder in sorted(folders)
            if MANIFEST_FILE in self._list(folder)
        ]
        skipped = tuple(dict.fromkeys(self.skipped))
        listed = tuple(files), tuple(manifests), skipped
        return Window(self._base or "/", self.settings.patterns, *listed)

    @property
    def _has_spans(self) -> bool:
        return any(pattern.placeholders for pattern in self.patterns.values())

    def _spans(self) -> dict[Span, dict[str, list[str]]]:
        """Returns the folders, or files, whose names have the number of each span."""
        places: dict[Span, dict[str, list[str]]] = defaultdict(
            lambda: defaultdict(list)
        )
        # Tomorrow has begun in other time zones.
        today = datetime.fromtimestamp(self.now_s, timezone.utc).date()
        tomorrow = today + timedelta(days=1)
        for split, pattern in self.patterns.items():
            first, rest = pattern.parts
            for path in self._walk([self._base], first, to_files=not rest):
                try:
                    span = _span(self._digits(pattern, path))
                    if span.date and span.date > tomorrow:
                        raise ValueError(f"a day after {tomorrow}, tomorrow in UTC")
                except ValueError as error:
                    self.skipped.append(f"{path} was not taken: {error}")
                else:
                    places[span][split].append(path)
        return places

    def _digits(self, pattern: SpanPattern, path: str) -> dict[str, str]:
        return pattern.digits(path[len(self._base) + 1 :])

    def _require_one_spelling(self, span: Span, places: _Paths) -> None:
        """Raises if names differ in leading zeros only, such as ``10`` and ``010``."""
        for split, paths in places.items():
            pattern = self.patterns[split]
            spelled = {str(self._digits(pattern, path)): path for path in paths}
            if len(spelled) > 1:
                raise DataError(
                    f"{span} is there twice, under names that differ in leading zeros",
                    where=self._base,
                    examples=[*spelled.values()],
                    hint="delete or rename all but one",
                )

    def _files(self, places: _Paths) -> _Paths | str:
        """Returns the files of a span by split, or why it is not complete."""
        for split, pattern in self.patterns.items():
            if split not in places:
                return f"no file matches {pattern.text}"
        when = self.settings.complete_when
        if when.marker:
            # Before the files are listed: it is written last.
            for folder in dict.fromkeys(chain(*places.values())):
                marker = f"{folder}/{when.marker}"
                with explain_unreadable(marker):
                    if not self._storage.is_file(marker):
                        return f"no {when.marker} in {folder}"
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
            if not self._walk([self._base], pattern.segments, to_files=True):
                return NoFilesError(
                    f"no file matches the pattern {pattern.text!r}",
                    where=self._base,
                    examples=[*self._list(self._base)],
                    hint="correct data.dir or the pattern",
                )
        return DataError(
            "no span of the data is complete",
            where=self._base,
            examples=self.skipped,
            hint="wait until it is complete, or change examples.complete_when",
        )

    def _source(self, path: str, split: str, span: Span | None = None) -> SourceFile:
        entry = self._entry(path)
        number = span.number if span and self._has_spans else None
        version = span.version if span else None
        state = entry.size_bytes, entry.generation, entry.modified_s
        return SourceFile(path, split or None, number, version, *state)

    def _walk(
        self, paths: Sequence[str], segments: Sequence[Segment], *, to_files: bool
    ) -> Sequence[str]:
        """Returns the paths below some folders that match, one segment per name."""
        for index, segment in enumerate(segments):
            last = to_files and index == len(segments) - 1
            kind = "file" if last else "folder"
            if segment.regex is None and not last:
                paths = [f"{path}/{segment.text}" for path in paths]
            else:
                paths = [
                    f"{path}/{entry.name}"
                    for path in paths
                    for entry in self._list(path).values()
                    if entry.kind == kind and segment.match(entry.name) is not None
                ]
        return paths

    def _list(self, folder: str) -> dict[str, Entry]:
        if folder not in self._listed:
            with explain_unreadable(folder, "a directory of the data cannot be read"):
                entries = self._storage.list(folder or "/")
            self._listed[folder] = {entry.name: entry for entry in entries}
        return self._listed[folder]

    def _entry(self, path: str) -> Entry:
        folder, _, name = path.rpartition("/")
        return self._list(folder)[name]


def _span(digits: dict[str, str]) -> Span:
    """Returns the span of a path; the number of a date is that of days since 1970.

    Raises:
      ValueError: the date is not in the calendar, or a number is too large.
    """
    if not digits:
        return Span(0)
    if max(map(int, digits.values())) > _MAX_INT64:
        raise ValueError("its number does not fit into 64 bits")
    version = int(digits["VERSION"]) if "VERSION" in digits else None
    if "SPAN" in digits:
        return Span(int(digits["SPAN"]), version)
    try:
        day = date(*(int(digits[name]) for name in _DATE))
    except ValueError:
        raise ValueError("not a date") from None
    return Span((day - EPOCH).days, version, day)


def _missing_days(all_spans: Iterable[Span], chosen: Iterable[Span]) -> list[date]:
    """Returns the days between those of the window that have no span at all."""
    days = [span.date for span in chosen if span.date]
    known = {span.date for span in all_spans}
    between = range((max(days) - min(days)).days) if days else ()
    every = (min(days) + timedelta(days=number) for number in between)
    return [day for day in every if day not in known]


def window_of(properties: Mapping[str, Any]) -> Window:
    """Returns the files that a node ingests, according to its exec properties.

    They are those chosen for its run, or else the newest complete spans.

    Raises:
      ConfigError, DataError, UsageError: as ``select_spans`` does.
      DataError: a chosen file has changed, or is gone.
    """
    settings = Ingestion.model_validate_json(properties[SETTINGS])
    if uri := properties.get(SPANS) or node_environment().spans:
        for window in SpanChoice.load(uri).windows.values():
            if window.patterns == settings.patterns:
                chosen = window.newest(settings.window)
                chosen.check_unchanged()
                return chosen
    return select_spans(settings, time.time())
