"""The files that a run ingests, a window of spans, and their state when chosen.

The operation chooses before the run starts, and stores the choice as JSON. Its nodes,
and a resumed run, ingest these files and not those delivered later.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta, timezone
from pathlib import Path

from pydantic import TypeAdapter

from sluice.errors import DataError
from sluice.splits import SERVING
from sluice.storage import digest
from sluice.storage.storage import is_remote, storage_for
from sluice.storage.storage_errors import explain_unreadable

MANIFEST_FILE = "manifest.json"
SPANS_FILE = "spans.json"
EPOCH = date(1970, 1, 1)
DigestOf = Callable[[Path], str]


@dataclass(frozen=True)
class SourceFile:
    """One input file of an ingestion.

    Attributes:
        path: a local path, or an address with "://".
        split: of its records; None if each record's hash decides.
        span: None where the data has no spans.
        version: of the span; None where spans have none.
        size_bytes: when it was chosen.
        generation: of the storage, see ``Entry``; changes with every write.
        modified_s: time of modification in seconds since 1970.
    """

    path: str
    split: str | None
    span: int | None = None
    version: int | None = None
    size_bytes: int = 0
    generation: str | None = None
    modified_s: float = 0.0


@dataclass(frozen=True)
class Span:
    """One span of the data.

    Attributes:
      number: as in the files' names; for a date, the days since 1970-01-01.
      version: None if the names have none.
      date: None where the span is not a date.
    """

    number: int
    version: int | None = None
    date: date | None = None

    def __str__(self) -> str:
        name = f"span {self.date or self.number}"
        return name if self.version is None else f"{name}, version {self.version}"

    def to_dict(self) -> dict[str, int | str | None]:
        """Returns the JSON form, as a run's record has it."""
        day = self.date.isoformat() if self.date else None
        return {"span": self.number, "version": self.version, "date": day}


@dataclass(frozen=True)
class Window:
    """The newest complete spans: one list of their files.

    Attributes:
      base: the data's directory or address.
      patterns: of the files, by split.
      files: oldest span first; in a span by split, then by name.
      manifests: the ``manifest.json`` files beside the files.
      skipped: a line per span that was not taken, with the reason.
    """

    base: str
    patterns: dict[str, str]
    files: tuple[SourceFile, ...]
    manifests: tuple[SourceFile, ...] = ()
    skipped: tuple[str, ...] = ()

    @property
    def spans(self) -> list[Span]:
        """Its spans, oldest first; none where the patterns have no placeholders."""
        is_date = any("{YYYY}" in pattern for pattern in self.patterns.values())
        keys = {(f.span, f.version): None for f in self.files}
        return [
            Span(number, version, EPOCH + timedelta(days=number) if is_date else None)
            for number, version in keys
            if number is not None
        ]

    def newest(self, count: int) -> Window:
        """Returns the newest spans; all files where there are no spans."""
        kept = {None, *(span.number for span in self.spans[-count:])}
        files = tuple(file for file in self.files if file.span in kept)
        folders = {os.path.dirname(file.path) for file in files}
        manifests = (x for x in self.manifests if os.path.dirname(x.path) in folders)
        return replace(self, files=files, manifests=tuple(manifests))

    def contents(self, digest_of: DigestOf | None = None) -> dict[str, str]:
        """Returns the content of each file and manifest, by split and relative path.

        Args:
          digest_of: returns a local file's digest; without it, and for files in a
            bucket, size and generation stand for the content.

        Raises:
          UsageError: a file cannot be read.
        """
        contents, start = {}, len(self.base.rstrip("/")) + 1
        for file in (*self.files, *self.manifests):
            content = f"{file.size_bytes} {file.generation}"
            if digest_of and not is_remote(self.base):
                with explain_unreadable(file.path):
                    content = digest_of(Path(file.path))
            contents[f"{file.split or 'all'}: {file.path[start:]}"] = content
        return contents

    def check_unchanged(self) -> None:
        """Raises if a file, or a manifest beside one, has changed since it was chosen.

        Raises:
          DataError: one is gone, or has another size or generation.
        """
        files = (*self.files, *self.manifests)
        folders = dict.fromkeys(os.path.dirname(file.path) for file in files)
        now = {
            entry.uri: (entry.size_bytes, entry.generation)
            for folder in folders
            for entry in storage_for(folder).list(folder)
        }
        if lines := [
            file.path
            for file in files
            if now.get(file.path) != (file.size_bytes, file.generation)
        ]:
            raise DataError(
                "data files have changed since the run chose them",
                where=self.base,
                examples=lines,
                hint="run again; set examples.complete_when if spans are still being "
                "written",
            )


def fingerprint(contents: Mapping[str, str]) -> str:
    """Returns a digest of what ``Window.contents`` returns."""
    return "sha256:" + digest.of_bytes(json.dumps(contents).encode())


@dataclass(frozen=True)
class SpanChoice:
    """The files of one run.

    Attributes:
      data: to train and evaluate on.
      serving: serving requests to compare with; None where the config has none.
    """

    data: Window
    serving: Window | None = None

    @property
    def windows(self) -> dict[str, Window]:
        """The windows by input, as a run's record names them."""
        serving = {} if self.serving is None else {SERVING: self.serving}
        return {"data": self.data, **serving}

    def to_json(self) -> bytes:
        """Returns what ``load`` reads."""
        return TypeAdapter(SpanChoice).dump_json(self, indent=2)

    @classmethod
    def load(cls, uri: str | Path) -> SpanChoice:
        """Reads a stored choice.

        Raises:
          FileNotFoundError: there is none.
        """
        content = storage_for(uri).read(str(uri))
        return TypeAdapter(SpanChoice).validate_json(content)


def check_staleness(window: Window, stale_after_h: float | None, now_s: float) -> None:
    """Raises if the newest span is older than the limit, in hours; None for no limit.

    The age of a span with a date counts from the end of that day, in UTC; that of any
    other, and of data without spans, from the modification of its newest file. Whoever
    chooses the spans checks it: an ingestion may be cached.

    Raises:
      DataError: the newest span is older.
    """
    if stale_after_h is None:
        return
    newest = window.spans[-1] if window.spans else None
    if newest and newest.date:
        end = datetime.combine(newest.date, time.min, timezone.utc) + timedelta(days=1)
    else:
        number = newest.number if newest else None
        made_s = max(f.modified_s for f in window.files if f.span == number)
        end = datetime.fromtimestamp(made_s, timezone.utc)
    age_h = (now_s - end.timestamp()) / 3600
    if age_h > stale_after_h:
        raise DataError(
            f"the newest data is too old: {newest or 'its newest file'} is of "
            f"{end:%Y-%m-%d %H:%M} UTC, {age_h:,.0f} h ago",
            where=window.base,
            expected=f"at most {stale_after_h:g} h (validate.stale_after_h)",
            examples=window.skipped,
        )
