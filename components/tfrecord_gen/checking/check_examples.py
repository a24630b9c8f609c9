"""Checks that records are tf.Examples, as all that read them later take them."""

from __future__ import annotations

from collections.abc import Iterator

from components.tfrecord_gen.checking.filter_records import filter_records
from sluice.errors import DataError
from sluice.records.frame_reader import Batch, Record
from sluice.records.record_error import RecordError
from sluice.records.tf_example_proto import is_sequence_example
from sluice.records.tf_example_wire import check_wire_format


def check_examples(path: str, batch: Batch) -> Iterator[Batch | RecordError]:
    """Yields the tf.Examples of a batch, and an error for each other record, in order.

    Raises:
      DataError: a record is a tf.SequenceExample.
    """
    try:
        for data in batch.records:
            check_wire_format(data)
    except ValueError:
        yield from filter_records(
            path, batch, "not_example", lambda item: _reason(path, item)
        )
    else:
        yield batch


def _reason(path: str, record: Record) -> str | None:
    try:
        check_wire_format(record.data)
    except ValueError as error:
        if is_sequence_example(record.data):
            raise _sequence_example(path, record.number) from error
        return str(error)
    return None


def _sequence_example(path: str, number: int) -> DataError:
    return DataError(
        "This file holds tf.SequenceExamples, which the pipeline does not take.",
        where=f"{path}, record {number:,}",
        expected="tf.Example records",
        actual="a tf.SequenceExample (it has feature_lists)",
        hint="Write each sequence as a tf.Example whose features are lists of values.",
    )
