"""Searches a data directory for spans and their files."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from components.tfrecord_gen.spans.completeness import CompleteWhen
from components.tfrecord_gen.spans.file_lister import FileLister
from components.tfrecord_gen.spans.span_pattern import (
    SpanPattern,
    span_date,
    span_number,
)
from components.tfrecord_gen.spans.window import SkippedSpan, SourceFile, Span
from sluice.errors import DataError


@dataclass
class SpanLocation:
    """Location of one split's files of one span.

    Attributes:
      folders: relative paths; the rest of the pattern is matched below them.
      names: the digits of the span and version in the paths.
    """

    folders: list[str] = field(default_factory=list)
    names: set[tuple[str, ...]] = field(default_factory=set)


Found = dict[Span, dict[str | None, SpanLocation]]
Files = dict[str | None, list[str]]


@dataclass(frozen=True)
class SpanSearch:
    """Search for the spans of one data directory.

    Attributes:
      lister: of the data's directory.
      patterns: by split, all with the same placeholders.
      complete_when: when a span counts as complete.
      now_s: seconds since 1970.
    """

    lister: FileLister
    patterns: dict[str | None, SpanPattern]
    complete_when: CompleteWhen
    now_s: float

    @property
    def has_spans(self) -> bool:
        """Whether the patterns have placeholders; else all files are one span, 0."""
        return any(pattern.placeholders for pattern in self.patterns.values())

    def look_for_spans(self) -> tuple[Found, list[SkippedSpan]]:
        """Returns the location of each span, and skipped names that are not dates."""
        found: Found = defaultdict(lambda: defaultdict(SpanLocation))
        not_dates = {}
        for split, pattern in self.patterns.items():
            for path in self._locations_of(pattern):
                digits = _digits(pattern, path)
                try:
                    span = _span(digits)
                except ValueError:
                    not_dates["-".join(digits.values())] = path
                    continue
                found[span][split].folders.append(path)
                found[span][split].names.add(tuple(digits.values()))
        return found, [
            SkippedSpan(
                int(name.replace("-", "")),
                f"span {name}",
                f"not a date: {self.lister.path(path)}",
            )
            for name, path in not_dates.items()
        ]

    def _locations_of(self, pattern: SpanPattern) -> list[str]:
        location = pattern.segments[: pattern.location_length]
        if len(location) < len(pattern.segments):
            return self.lister.folders(location)
        return self.lister.files("", location)

    def files_of(self, locations: dict[str | None, SpanLocation]) -> Files | str:
        """Returns the files of a span by split, or why it is skipped."""
        missing = [split for split in self.patterns if split not in locations]
        if missing:
            return f"no file of {_of_split(missing[0])}"
        folders = {path: None for at in locations.values() for path in at.folders}
        if unmarked := self.complete_when.why_unmarked(self.lister, folders):
            return unmarked
        files = self.list_files(locations)
        for split, paths in files.items():
            if not paths:
                return f"no file of {_of_split(split)}"
        every = [path for paths in files.values() for path in paths]
        return self.complete_when.why_unquiet(self.lister, every, self.now_s) or files

    def list_files(self, locations: dict[str | None, SpanLocation]) -> Files:
        """Returns the files of a span by split, relative to the base."""
        files: Files = {}
        for split, pattern in self.patterns.items():
            at = locations[split]
            if len(at.names) > 1:
                raise DataError(
                    "two names denote the same span",
                    where=self.lister.base,
                    examples=[self.lister.path(path) for path in sorted(at.folders)],
                    hint="rename or remove one of them",
                )
            rest = pattern.segments[pattern.location_length :]
            paths = at.folders
            if rest:
                paths = [
                    path
                    for folder in at.folders
                    for path in self.lister.files(folder, rest)
                ]
            marker = self.complete_when.marker
            files[split] = [p for p in paths if p.rpartition("/")[2] != marker]
        return files

    def sources(self, span: Span, files: Files) -> Iterator[SourceFile]:
        """Yields the files of a span, split by split."""
        number = span.number if self.has_spans else None
        for split, paths in files.items():
            for path in sorted(paths):
                yield SourceFile(self.lister.path(path), split, number, span.version)


def _span(digits: dict[str, str]) -> Span:
    if not digits:
        return Span(0)
    number = span_number(digits)
    version = int(digits["VERSION"]) if "VERSION" in digits else None
    return Span(number, version, span_date(number) if "YYYY" in digits else None)


def _digits(pattern: SpanPattern, path: str) -> dict[str, str]:
    digits: dict[str, str] = {}
    for segment, name in zip(pattern.segments, path.split("/"), strict=False):
        digits |= segment.match(name) or {}
    return digits


def _of_split(split: str | None) -> str:
    return "the data" if split is None else f"split {split}"
