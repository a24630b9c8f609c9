"""One input file of an ingestion."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SourceFile:
    """A TFRecord file, and where its records belong.

    Attributes:
        path: local path, or an address with "://".
        split: the split of all its records; None: each record is hashed to its split.
        span: number of the span it belongs to, None without spans.
        version: version of that span, None without versions.
    """

    path: str
    split: str | None
    span: int | None = None
    version: int | None = None
