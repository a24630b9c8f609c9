"""Selects the files of the newest complete spans.

A span is the files of one number, or of one day, in all splits; of its versions the
newest complete one is used. A span without files of a split, or that is not complete,
is skipped, and listed in the window.

TFX supports a window of one span only, and fails if the newest span is not yet there in
every split. No file is opened or written here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from components.tfrecord_gen.spans.completeness import CompleteWhen
from components.tfrecord_gen.spans.file_lister import FileLister
from components.tfrecord_gen.spans.inspect_file import (
    check_no_directory,
    inspect_file,
)
from components.tfrecord_gen.spans.span_pattern import SpanPattern, span_date
from components.tfrecord_gen.spans.span_search import Files, Found, SpanSearch
from components.tfrecord_gen.spans.window import (
    MANIFEST_FILE,
    SkippedSpan,
    SourceFile,
    Span,
    Window,
)
from sluice.errors import ConfigError, DataError, UsageError
from sluice.storage.storage import is_remote

Splits = Mapping[str | None, str]


class NoFilesError(UsageError):
    """A pattern matches no file."""


def select_spans(
    base: str,
    patterns: Splits,
    window: int,
    complete_when: CompleteWhen,
    now_s: float,
    only: Sequence[Span] | None = None,
    keys: Splits | None = None,
) -> Window:
    """Returns the last complete spans and their files, with sizes and times.

    Args:
      base: the data's directory, or an address such as ``gs://bucket/trips``.
      patterns: by split; None stands for files whose records are hashed into splits.
      window: how many spans, the newest; fewer if there are not so many.
      complete_when: when a span counts as complete.
      now_s: seconds since 1970.
      only: exactly these spans, complete or not; None for the newest complete ones.
      keys: the config key of each split's pattern, for messages.

    Raises:
      ConfigError: a pattern cannot be used, or not together with the others.
      DataError: no span is complete, one of ``only`` is gone, a span has two names,
        or a file is matched by the patterns of two splits.
      NoFilesError: a pattern matches no file.
      UsageError: a directory cannot be read, or what is matched is no readable file.
    """
    parsed = {split: SpanPattern.parse(text) for split, text in patterns.items()}
    _check_patterns(parsed, complete_when)
    lister, keys = FileLister(base), keys or {}
    search = SpanSearch(lister, parsed, complete_when, now_s)
    if not search.has_spans and not is_remote(base):
        for split, pattern in parsed.items():
            for path in lister.folders(pattern.segments):
                check_no_directory(lister, path, pattern.text, keys.get(split))
    found, skipped = search.look_for_spans()
    if only is None:
        chosen = _take_newest(search, found, window, skipped)
    else:
        chosen = _take_only(search, found, only, skipped)
    if not chosen:
        raise _nothing(search, skipped, keys)
    spans = sorted(chosen, key=lambda span: span.number)
    files = [file for span in spans for file in search.sources(span, chosen[span])]
    _check_overlap(base, files)
    return Window(
        base=lister.base,
        files=tuple(
            inspect_file(lister, file, patterns[file.split], keys.get(file.split))
            for file in files
        ),
        spans=tuple(spans) if search.has_spans else (),
        skipped=tuple(skipped),
        manifests=_manifests(lister, files),
        patterns=tuple(patterns.items()),
    )


def _manifests(
    lister: FileLister, files: Sequence[SourceFile]
) -> tuple[SourceFile, ...]:
    folders = sorted({file.path.rpartition("/")[0] for file in files})
    paths = [f"{folder}/{MANIFEST_FILE}" for folder in folders]
    return tuple(
        inspect_file(lister, SourceFile(path, split=None), MANIFEST_FILE, None)
        for path in paths
        if lister.exists(lister.relative(path))
    )


def _take_newest(
    search: SpanSearch, found: Found, window: int, skipped: list[SkippedSpan]
) -> dict[Span, Files]:
    chosen: dict[Span, Files] = {}
    numbers: set[int] = set()
    for span in sorted(found, key=_age, reverse=True):
        if span.number in numbers:
            continue
        if len(numbers) == window:
            break
        files = search.files_of(found[span])
        if isinstance(files, str):
            skipped.append(_skip(search, span, files))
        else:
            chosen[span] = files
            numbers.add(span.number)
    return chosen


def _take_only(
    search: SpanSearch,
    found: Found,
    only: Sequence[Span],
    skipped: list[SkippedSpan],
) -> dict[Span, Files]:
    if not search.has_spans:
        return _take_newest(search, found, 1, skipped)
    wanted = {(span.number, span.version) for span in only}
    versions = {number: version or 0 for number, version in wanted}
    chosen: dict[Span, Files] = {}
    for span in sorted(found, key=_age, reverse=True):
        at = found[span]
        if (span.number, span.version) in wanted:
            files = search.list_files(at) if len(at) == len(search.patterns) else {}
            if files and all(files.values()):
                chosen[span] = files
        elif (span.version or 0) > versions.get(span.number, -1) and (
            span.number >= min(versions, default=0)
        ):
            lacks = search.files_of(at)
            why = lacks if isinstance(lacks, str) else "complete only since then"
            skipped.append(_skip(search, span, why))
    gone = wanted - {(span.number, span.version) for span in chosen}
    if gone:
        raise DataError(
            "selected spans no longer exist",
            where=search.lister.base,
            examples=[str(_dated(search, *key)) for key in sorted(gone, key=str)],
            hint="restore them, or start a new run",
        )
    return chosen


def _age(span: Span) -> tuple[int, int]:
    return span.number, span.version or 0


def _dated(search: SpanSearch, number: int, version: int | None) -> Span:
    pattern = next(iter(search.patterns.values()))
    is_date = "YYYY" in pattern.placeholders
    return Span(number, version, span_date(number) if is_date else None)


def _skip(search: SpanSearch, span: Span, why: str) -> SkippedSpan:
    name = str(span) if search.has_spans else "the data"
    return SkippedSpan(span.number, name, why)


def _check_patterns(
    patterns: dict[str | None, SpanPattern], complete_when: CompleteWhen
) -> None:
    kinds = {
        frozenset(pattern.placeholders): pattern.text for pattern in patterns.values()
    }
    if len(kinds) > 1:
        raise ConfigError(
            "the patterns of the splits have different placeholders",
            examples=[pattern.text for pattern in patterns.values()],
            hint="correct data.splits in the config",
        )
    for pattern in patterns.values():
        if complete_when.marker and pattern.segments[-1].has_placeholder:
            raise ConfigError(
                "complete_when.marker needs spans with directories of their own",
                where=f"the pattern {pattern.text!r}",
                expected="placeholders in directory names only",
                hint="set examples.complete_when to {quiet_for_s: SECONDS}",
            )


def _check_overlap(base: str, files: Sequence[SourceFile]) -> None:
    splits: dict[str, list[str]] = defaultdict(list)
    for file in files:
        splits[file.path].append(str(file.split))
    twice = [f"{path}: {', '.join(of)}" for path, of in splits.items() if len(of) > 1]
    if twice:
        raise ConfigError(
            "the patterns of two splits match the same file",
            where=base,
            expected="each file in one split, so that splits do not share records",
            examples=twice,
            hint="correct data.splits in the config",
        )


def _nothing(
    search: SpanSearch, skipped: Sequence[SkippedSpan], keys: Splits
) -> DataError | UsageError:
    """Returns the error for data with no complete span, or without a file at all."""
    for split, pattern in search.patterns.items():
        found = skipped if search.has_spans else search.lister.matches(pattern.segments)
        if not found:
            return _no_files(search.lister, pattern, keys.get(split))
    patterns = ", ".join(repr(p.text) for p in search.patterns.values())
    return DataError(
        "no span of the data is complete"
        if search.has_spans
        else "the data is not complete",
        where=search.lister.base,
        expected=f"files such as {patterns}",
        examples=[f"{span.name}: {span.why}" for span in skipped],
        hint="wait until it is complete, or change examples.complete_when",
    )


def _no_files(lister: FileLister, pattern: SpanPattern, key: str | None) -> UsageError:
    """Returns the error of a pattern; says which of its directories is missing."""
    parents = [""]
    for segment in pattern.segments:
        inner = lister.children(parents, segment)
        if not inner:
            break
        parents = inner
    directory, is_last = lister.path(parents[-1]), segment is pattern.segments[-1]
    names = lister.names(parents[-1])
    kind = "file" if is_last else "directory"
    return NoFilesError(
        f"no file matches the pattern {pattern.text!r}",
        where=f"{lister.base} ({key})" if key else lister.base,
        expected=f"a {kind} {segment.text} in {directory}",
        actual=None if names else f"{directory} is empty or does not exist",
        examples=names,
        hint="if the files were deleted or moved, restore them; otherwise correct "
        "data.dir or the pattern",
    )
