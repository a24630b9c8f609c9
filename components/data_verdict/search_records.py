"""Searches ingested files for records that violate an expectation.

TFDV judges statistics and names no record. So the source files are read once more, up
to the last file in which something is still looked for.
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
    """Returns the verdict with examples in its rows, as far as they can be found.

    Args:
      verdict: rows that fail or warn about a feature are looked for.
      source: the files that have been judged.
      schema: what a record is held against.
      sensitive: features whose values are not shown.
      max_records: how many records are read at most.
      max_seconds: how long is looked for them at most.
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
    """Yields what is looked for on behalf of a row, with the row's index."""
    alike: dict[tuple[str, str], list[int]] = defaultdict(list)
    for index, row in enumerate(verdict.rows):
        if row.severity in ("fail", "warn") and row.feature and row.kind:
            alike[row.kind, row.feature].append(index)
    for (kind, feature), indices in alike.items():
        breaks = record_check(kind, feature, schema)
        if breaks is None:
            continue
        for place, index in enumerate(indices):
            # Shares of what one finding may have, the larger ones first.
            most = (MAX_EXAMPLES + len(indices) - 1 - place) // len(indices)
            split = verdict.rows[index].slice
            search = Search(split, feature, breaks, feature in sensitive, most)
            yield index, search


@dataclass
class Search:
    """A feature of a split, what breaks its expectation, and where it was found.

    Attributes:
      split: where it is looked for; ``serving`` is in files of its own.
      feature: the feature.
      breaks: tells what is wrong with it in a record.
      is_sensitive: whether only the place is told.
      most: how many records are looked for.
      found: what has been found, with file and number.
      read: how many records of the split have been looked at.
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
        """Whether what is looked for may be in a split; None is any that is trained on.

        What clients have sent lies in files of its own, whose split is named.
        """
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
      files: with their splits; those of serving examples too.
      split_of: the split of a record of a file whose records are hashed; None takes
        records of such a file for any split's.
      max_record_bytes: longer records are not read, as in the ingestion.
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
    """Reads records until each search is done, or there are no more.

    Args:
      searches: what is found is added to them.
      source: where.
      max_records: how many records are read at most.
      max_seconds: how long they are read at most.
    """
    end = time.monotonic() + max_seconds
    for file, record in islice(_records(searches, source), max_records):
        _look(file, record, searches, source.split_of)
        if time.monotonic() > end:
            break


def _records(
    searches: Sequence[Search], source: Source
) -> Iterator[tuple[FileReport, Record]]:
    """Yields the records of each file of which some are wanted."""
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
            return  # It is in quarantine.
    features = parse(record.data).features.feature
    place = f"{file.path}, record {record.number:,}"
    for item in searches:
        if not item.is_done and item.may_be_in(split):
            item.look(features, place)
