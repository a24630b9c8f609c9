"""Searches the ingested files for example records of the verdict's failed rows.

TFDV validates statistics and names no record. So the source files are read once more,
until each row has its examples.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from tensorflow_metadata.proto.v0 import schema_pb2

from components.data_verdict.record_check import RecordCheck, record_check
from components.tfrecord_gen.checking.scan import valid_records
from components.tfrecord_gen.report import FileReport
from sluice.errors import MAX_EXAMPLES
from sluice.printable import printable
from sluice.record.verdict import Verdict
from sluice.splits import SERVING
from sluice.tfrecords.frame_encoding import MAX_RECORD_BYTES
from sluice.tfrecords.frame_reader import Record
from sluice.tfrecords.parse_tf_example import parse

MAX_RECORDS = 2_000_000
MAX_SECONDS = 60.0


def add_examples(
    verdict: Verdict,
    source: Source,
    schema: schema_pb2.Schema,
    *,
    sensitive: Collection[str] = (),
    max_records: int = MAX_RECORDS,
    max_seconds: float = MAX_SECONDS,
) -> Verdict:
    """Returns the verdict with example records in its rows, as far as any are found.

    Args:
      verdict: its rows about a feature that fail or warn get examples.
      source: the files of the verdict's data.
      schema: to check records against.
      sensitive: features whose values are withheld.
      max_records: limit of records to read.
      max_seconds: limit of the search.
    """
    searches = dict(_searches(verdict, schema, sensitive))
    search_records([*searches.values()], source, max_records, max_seconds)
    rows = [
        replace(row, examples=tuple(searches[index].found))
        if index in searches and searches[index].found
        else row
        for index, row in enumerate(verdict.rows)
    ]
    return replace(verdict, rows=tuple(rows))


def _searches(
    verdict: Verdict, schema: schema_pb2.Schema, sensitive: Collection[str]
) -> Iterator[tuple[int, Search]]:
    """Yields the search for each row, with the row's index."""
    alike: dict[tuple[str, str], list[int]] = defaultdict(list)
    for index, row in enumerate(verdict.rows):
        if row.severity in ("fail", "warn") and row.feature and row.kind:
            alike[row.kind, row.feature].append(index)
    for (kind, feature), indices in alike.items():
        breaks = record_check(kind, feature, schema)
        if breaks is None:
            continue
        for place, index in enumerate(indices):
            # MAX_EXAMPLES is divided among the rows, larger shares first.
            most = (MAX_EXAMPLES + len(indices) - 1 - place) // len(indices)
            split = verdict.rows[index].slice
            search = Search(split, feature, breaks, feature in sensitive, most)
            yield index, search


@dataclass
class Search:
    """Search for records of one split that violate a check of one feature.

    Attributes:
      split: to search; ``serving`` has files of its own.
      feature: its name.
      breaks: the check; returns the violation.
      is_sensitive: whether the value is withheld.
      most: number of records to find.
      found: the violations, each with file, record number and value.
      read: number of records of the split that were checked.
    """

    split: str
    feature: str
    breaks: RecordCheck
    is_sensitive: bool = False
    most: int = MAX_EXAMPLES
    found: list[str] = field(default_factory=list)
    read: int = 0

    @property
    def is_done(self) -> bool:
        return len(self.found) >= self.most

    def may_be_in(self, split: str | None) -> bool:
        """Whether a split is searched; None (hashed records) is any but serving."""
        return split == self.split or (split is None and self.split != SERVING)

    def look(self, features: Mapping[str, Any], place: str) -> None:
        self.read += 1
        if (value := self.breaks(features.get(self.feature))) is not None:
            shown = (
                place
                if self.is_sensitive
                else f"{place}: {printable(self.feature)} {value}"
            )
            self.found.append(shown)


@dataclass(frozen=True)
class Source:
    """The files of an ingestion, and how their records are read.

    Attributes:
      files: with their splits, serving examples included.
      split_of: returns the split of a hashed record; None searches hashed records for
        every split.
      max_record_bytes: longer records are skipped, as in the ingestion.
    """

    files: Sequence[FileReport]
    split_of: Callable[[bytes], str] | None = None
    max_record_bytes: int = MAX_RECORD_BYTES


def search_records(
    searches: Sequence[Search],
    source: Source,
    max_records: int | None = None,
    max_seconds: float = math.inf,
) -> None:
    """Reads records until all searches are done, and fills in their results.

    Args:
      searches: to run.
      source: files to read.
      max_records: limit of records to read.
      max_seconds: limit of the search.
    """
    end = time.monotonic() + max_seconds
    for file, record in islice(_records(searches, source), max_records):
        _look(file, record, searches, source.split_of)
        if time.monotonic() > end:
            break


def _records(
    searches: Sequence[Search], source: Source
) -> Iterator[tuple[FileReport, Record]]:
    """Yields the records of the files that a search needs."""
    for file in source.files:
        wanted = [item for item in searches if item.may_be_in(file.split)]
        if all(item.is_done for item in wanted):
            continue
        for record in valid_records(file.path, source.max_record_bytes):
            yield file, record
            if all(item.is_done for item in wanted):
                break


def _look(
    file: FileReport,
    record: Record,
    searches: Sequence[Search],
    split_of: Callable[[bytes], str] | None,
) -> None:
    split = file.split
    if split is None and split_of is not None:
        try:
            split = split_of(record.data)
        except LookupError:
            return  # The record is in quarantine.
    features = parse(record.data).features.feature
    place = f"{file.path}, record {record.number:,}"
    for item in searches:
        if not item.is_done and item.may_be_in(split):
            item.look(features, place)
