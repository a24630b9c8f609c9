"""A window of spans: spans, their files, and the state of each file."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sluice.storage import digest

MANIFEST_FILE = "manifest.json"
# How the fingerprint of files begins that are not read, such as those in a bucket.
LISTING = "listing "


@dataclass(frozen=True)
class SourceFile:
    """One input file of an ingestion.

    Attributes:
        path: a local path, or an address with "://".
        split: the split that its records go to; None: each record's hash decides.
        span: the span it belongs to; None where the data has no spans.
        version: the version of that span; None where spans have none.
        size_bytes: when it was chosen; None where nobody has looked.
        modified_s: when its content was written, in seconds since 1970, likewise.
    """

    path: str
    split: str | None
    span: int | None = None
    version: int | None = None
    size_bytes: int | None = None
    modified_s: float | None = None

    @property
    def state(self) -> str:
        """What stands for the content of a file that is not read."""
        return f"{self.size_bytes} {self.modified_s}"


@dataclass(frozen=True, order=True)
class Span:
    """One span of the data.

    Attributes:
      number: as the files' names have it; of a date the days since 1970-01-01.
      version: None where the names have none.
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
    """Newer than the oldest span of the window, and not in it.

    Attributes:
      span: its number; of a date that is in no calendar its digits.
      name: the span, with its version.
      why: what it lacks.
    """

    span: int
    name: str
    why: str


@dataclass(frozen=True)
class Window:
    """What ``select_spans`` has selected.

    Attributes:
      base: the data's directory or address.
      files: oldest span first; in a span by split, then by name.
      spans: oldest first; none where the patterns have no placeholders.
      skipped: newest first.
      manifests: what lies beside the files and says what they are.
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

    def fingerprint(self, content_of: Callable[[SourceFile], str]) -> str:
        """Returns a digest over all files, their paths below the base and splits.

        The manifests count as well: what they say is checked.

        Args:
          content_of: returns what stands for a file's content, as its own digest.
        """
        lines = [
            [file.split, self.relative(file), content_of(file)]
            for file in (*self.files, *self.manifests)
        ]
        return "sha256:" + digest.of_bytes(json.dumps(lines).encode())

    def listing_fingerprint(self) -> str:
        """Returns ``listing`` and a digest over all files, of sizes and times alone."""
        return LISTING + self.fingerprint(lambda file: file.state)


def read_spans(text: str) -> Sequence[Span] | None:
    """Reads what ``Window.spans_json`` has written; None for an empty string.

    Dates are not written, and not read.
    """
    if not text:
        return None
    return [Span(number, version) for number, version in json.loads(text)]
