"""Looks for records that break an expectation, in the files that an ingestion has read.

TFDV judges statistics and names no record. So the source files are read once more, up
to the last file in which something is still looked for.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from components.data_verdict.expectation import Expectation
from components.tfrecord_gen.checking.scan import sound_records
from components.tfrecord_gen.report import FileReport
from sluice.errors import MAX_EXAMPLES
from sluice.printable import printable
from sluice.records.frame_reader import Record
from sluice.records.tf_example_proto import parse
from sluice.records.tfrecord_framing import MAX_RECORD_BYTES
from sluice.splits import SERVING


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
    breaks: Expectation
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
        for record in sound_records(file.path, source.max_record_bytes):
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
