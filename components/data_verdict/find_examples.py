"""Finds records that show what is wrong: at most five for each row, with their place.

TFDV's anomalies name no record. The source files are read again until each row has its
examples; how many records and seconds that may take is bounded, so a rare anomaly in
large data can stay without. Only what fails or warns is looked for. Of a sensitive
feature the place is told, never the value.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from tensorflow_metadata.proto.v0 import schema_pb2

from components.data_verdict.expectation import Expectation, expectation
from components.tfrecord_gen.checking.sound_records import sound_records
from components.tfrecord_gen.reading.record import Record
from components.tfrecord_gen.report import FileReport
from sluice.errors import MAX_EXAMPLES
from sluice.printable import printable
from sluice.records.tf_example_proto import parse
from sluice.records.tfrecord_framing import MAX_RECORD_BYTES
from sluice.splits import SERVING
from sluice.verdict import Verdict

MAX_RECORDS = 2_000_000
MAX_SECONDS = 60.0


@dataclass
class _Search:
    """What is looked for on behalf of one row."""

    row: int
    split: str
    feature: str
    breaks: Expectation
    is_sensitive: bool
    found: list[str] = field(default_factory=list)

    @property
    def is_done(self) -> bool:
        return len(self.found) >= MAX_EXAMPLES

    def may_be_in(self, split: str | None) -> bool:
        """Whether what is looked for may be in a split; None is any that is trained on.

        What clients have sent lies in files of its own, whose split is named.
        """
        return split == self.split or (split is None and self.split != SERVING)

    def look(self, features: Mapping[str, Any], place: str) -> None:
        if (value := self.breaks(features.get(self.feature))) is not None:
            shown = (
                place
                if self.is_sensitive
                else f"{place}: {printable(self.feature)} {value}"
            )
            self.found.append(shown)


def find_examples(
    verdict: Verdict,
    files: Sequence[FileReport],
    schema: schema_pb2.Schema,
    *,
    sensitive: Collection[str] = (),
    split_of: Callable[[bytes], str] | None = None,
    max_record_bytes: int = MAX_RECORD_BYTES,
    max_records: int = MAX_RECORDS,
    max_seconds: float = MAX_SECONDS,
) -> Verdict:
    """Returns the verdict with examples in its rows, as far as they can be found.

    Args:
      verdict: rows that fail or warn about a feature are looked for.
      files: the source files, with their splits; those of serving examples too.
      schema: what a record is held against.
      sensitive: features whose values are not shown.
      split_of: the split of a record of a file whose records are hashed; None shows
        records of such a file under any split.
      max_record_bytes: longer records are not read, as in the intake.
      max_records: how many records are read at most.
      max_seconds: how long is looked for them at most.
    """
    searches = list(_searches(verdict, schema, sensitive))
    end = time.monotonic() + max_seconds
    records = _records(files, searches, max_record_bytes)
    for file, record in islice(records, max_records):
        _look(file, record, searches, split_of)
        if time.monotonic() > end:
            break
    found = {item.row: tuple(item.found) for item in searches if item.found}
    rows = [
        replace(row, examples=found[index]) if index in found else row
        for index, row in enumerate(verdict.rows)
    ]
    return replace(verdict, rows=tuple(rows))


def _searches(
    verdict: Verdict, schema: schema_pb2.Schema, sensitive: Collection[str]
) -> Iterator[_Search]:
    for index, row in enumerate(verdict.rows):
        if row.severity not in ("fail", "warn") or not (row.feature and row.kind):
            continue
        if breaks := expectation(row.kind, row.feature, schema):
            is_sensitive = row.feature in sensitive
            yield _Search(index, row.slice, row.feature, breaks, is_sensitive)


def _records(
    files: Sequence[FileReport], searches: Sequence[_Search], max_record_bytes: int
) -> Iterator[tuple[FileReport, Record]]:
    """Yields the records of each file of which examples are wanted."""
    for file in files:
        wanted = [item for item in searches if item.may_be_in(file.split)]
        if all(item.is_done for item in wanted):
            continue
        for record in sound_records(file.path, max_record_bytes):
            yield file, record
            if all(item.is_done for item in wanted):
                break


def _look(
    file: FileReport,
    record: Record,
    searches: Sequence[_Search],
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
