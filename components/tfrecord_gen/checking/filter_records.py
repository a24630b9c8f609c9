"""Separates the bad records of a batch from the good ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sluice.records.frame_reader import Batch, Record
from sluice.records.record_error import RecordError


def filter_records(
    path: str, batch: Batch, kind: str, reason: Callable[[Record], str | None]
) -> Iterator[Batch | RecordError]:
    """Yields the good records of a batch, and an error for each bad one, in order.

    Args:
      path: the file.
      batch: its records.
      kind: of the errors.
      reason: what is wrong with a record, None if nothing is.
    """
    first = 0
    for index, record in enumerate(batch):
        why = reason(record)
        if why is None:
            continue
        if index > first:
            yield batch.part(first, index)
        yield RecordError(path, record.number, record.offset, kind, why, record.data)
        first = index + 1
    if first == 0:
        yield batch
    elif first < len(batch.records):
        yield batch.part(first, len(batch.records))
