"""A window of spans: spans, their files, and the state of each file."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sluice.storage import digest
from sluice.storage.storage import Entry, is_remote

MANIFEST_FILE = "manifest.json"
# Prefix of a fingerprint of sizes and generations, for files in a bucket.
LISTING = "listing "


@dataclass(frozen=True)
class SourceFile:
    """One input file of an ingestion.

    Attributes:
        path: a local path, or an address with "://".
        split: of its records; None if each record's hash decides.
        span: None where the data has no spans.
        version: of the span; None where spans have none.
        size_bytes: when it was chosen; None if unknown.
        modified_s: time of modification in seconds since 1970; None if unknown.
        generation: of an object in a bucket; None if unknown, or on a disk.
    """

    path: str
    split: str | None
    span: int | None = None
    version: int | None = None
    size_bytes: int | None = None
    modified_s: float | None = None
    generation: str | None = None

    @property
    def state(self) -> str:
        """Size and generation or time, in place of a digest of the content."""
        return f"{self.size_bytes} {self.generation or self.modified_s}"


def with_state(file: SourceFile, entry: Entry) -> SourceFile:
    """Returns a file with the size, time and generation of a listing."""
    return replace(
        file,
        size_bytes=entry.size_bytes,
        modified_s=entry.modified_s,
        generation=entry.generation if is_remote(file.path) else None,
    )


@dataclass(frozen=True, order=True)
class Span:
    """One span of the data.

    Attributes:
      number: as in the files' names; for a date, the days since 1970-01-01.
      version: None if the names have none.
      date: None where the span is not a date.
    """

    number: int
    version: int | None = None
    date: datetime.date | None = None

    def __str__(self) -> str:
        name = f"span {self.date or self.number}"
        return name if self.version is None else f"{name}, version {self.version}"

    def to_dict(self) -> dict[str, int | str | None]:
        """Returns the JSON form, as a run's record has it."""
        date = self.date.isoformat() if self.date else None
        return {"span": self.number, "version": self.version, "date": date}


@dataclass(frozen=True)
class SkippedSpan:
    """A span newer than the window's oldest that is not in the window.

    Attributes:
      span: its number; for an invalid date, its digits.
      name: display name, with the version.
      why: the reason.
    """

    span: int
    name: str
    why: str


@dataclass(frozen=True)
class Window:
    """Spans selected by ``select_spans``, and their files.

    Attributes:
      base: the data's directory or address.
      files: oldest span first; in a span by split, then by name.
      spans: oldest first; none where the patterns have no placeholders.
      skipped: newest first.
      manifests: the ``manifest.json`` files beside the files.
      patterns: of the files, by split.
    """

    base: str
    files: tuple[SourceFile, ...]
    spans: tuple[Span, ...]
    skipped: tuple[SkippedSpan, ...] = ()
    manifests: tuple[SourceFile, ...] = ()
    patterns: tuple[tuple[str | None, str], ...] = ()

    @property
    def newest(self) -> Span | None:
        """The newest span; None where the patterns have no placeholders."""
        return self.spans[-1] if self.spans else None

    @property
    def skipped_lines(self) -> list[str]:
        """A line for each span that was skipped: which, and why."""
        return [f"{span.name} was not taken: {span.why}" for span in self.skipped]

    def relative(self, file: SourceFile) -> str:
        """Returns a file's path below the base."""
        return file.path[len(self.base.rstrip("/")) + 1 :]

    def spans_json(self) -> str:
        """Returns the spans in the form that pins a later selection to them."""
        return json.dumps([[span.number, span.version] for span in self.spans])

    def pinned_json(self) -> str:
        """Returns the spans, and the state of their files, which is pinned too.

        Its size does not depend on the number of files; see ``changes_since``.
        """
        pinned = {
            "spans": json.loads(self.spans_json()),
            "listing": self.listing_fingerprint(),
            "files": len(self.files),
            "written_s": max((f.modified_s or 0.0 for f in self._all_files), default=0),
        }
        return json.dumps(pinned)

    def changes_since(self, pinned: str) -> list[str]:
        """Returns a line per difference from the files of ``pinned_json``.

        Args:
          pinned: also ``spans_json`` or "", from which no file differs.
        """
        before = json.loads(pinned) if pinned else None
        if (
            not isinstance(before, dict)
            or before["listing"] == self.listing_fingerprint()
        ):
            return []
        lines = []
        if before["files"] != len(self.files):
            lines.append(f"{before['files']:,} files, now {len(self.files):,}")
        lines += [
            f"{file.path}: written since"
            for file in self._all_files
            if (file.modified_s or 0.0) > before["written_s"]
        ]
        return lines or ["sizes or generations of files are others"]

    @property
    def _all_files(self) -> tuple[SourceFile, ...]:
        return (*self.files, *self.manifests)

    def fingerprint(self, content_of: Callable[[SourceFile], str]) -> str:
        """Returns a digest of relative paths, splits and contents, manifests included.

        Args:
          content_of: returns a file's digest, or another stand-in for its content.
        """
        lines = [
            [file.split, self.relative(file), content_of(file)]
            for file in self._all_files
        ]
        return "sha256:" + digest.of_bytes(json.dumps(lines).encode())

    def listing_fingerprint(self) -> str:
        """Returns ``listing`` and a digest over all files, of sizes and generations."""
        return LISTING + self.fingerprint(lambda file: file.state)


def read_spans(text: str) -> Sequence[Span] | None:
    """Reads ``Window.spans_json`` or ``pinned_json``, without dates; None for ""."""
    if not text:
        return None
    document = json.loads(text)
    spans = document["spans"] if isinstance(document, dict) else document
    # Data without spans has none to be pinned to.
    return [Span(number, version) for number, version in spans] or None
