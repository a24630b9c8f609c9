"""TFRecord shards of a split: how many records they hold, and in what order to read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import tensorflow as tf

from sluice.errors import NodeError

# Files that are read at the same time; fixed, since it determines the order.
_FILES_AT_A_TIME = 8
_RECORDS_AT_A_TIME = 1024


@dataclass(frozen=True)
class Shards:
    """Gzip TFRecord files, and what each holds.

    Attributes:
      files: paths, in the order of their names.
      records: number of records by file.
      bytes: their total size by file, uncompressed.
    """

    files: list[str]
    records: list[int]
    bytes: list[int]

    @property
    def record_bytes(self) -> int:
        """The mean size of a record, at least 1."""
        return max(1, sum(self.bytes) // max(1, sum(self.records)))


def count_records(patterns: Sequence[str]) -> Shards:
    """Returns the files that match the patterns, with their counts.

    Reads every record once, several files at a time.

    Raises:
      NodeError: no file matches, or the files have no records.
    """
    files = sorted({file for item in patterns for file in tf.io.gfile.glob(item)})
    counts = (
        tf.data.Dataset.from_tensor_slices(tf.constant(files, tf.string))
        .map(_count, num_parallel_calls=tf.data.AUTOTUNE)
        .as_numpy_iterator()
    )
    records, sizes = np.array(list(counts), np.int64).reshape(-1, 2).T.tolist()
    if not sum(records):
        raise NodeError(
            "there are no transformed examples",
            where=", ".join(patterns),
            actual=f"{len(files)} files without records",
        )
    return Shards(files, records, sizes)


def read(shards: Shards, order: tf.Tensor | None = None) -> tf.data.Dataset:
    """Returns the records, interleaved from several files at a time.

    Args:
      shards: the files.
      order: seed, int64 scalar, that shuffles the files; None keeps their order.
    """
    files = tf.data.Dataset.from_tensor_slices(shards.files)
    if order is not None:
        files = files.shuffle(
            len(shards.files), seed=order, reshuffle_each_iteration=False
        )
    return files.interleave(
        _records,
        cycle_length=min(_FILES_AT_A_TIME, len(shards.files)),
        num_parallel_calls=tf.data.AUTOTUNE,
        deterministic=True,
    )


def _records(file: tf.Tensor) -> tf.data.Dataset:
    return tf.data.TFRecordDataset(file, compression_type="GZIP")


def _count(file: tf.Tensor) -> tf.Tensor:
    def add(total: tf.Tensor, batch: tf.Tensor) -> tf.Tensor:
        size = tf.reduce_sum(tf.strings.length(batch))
        return total + tf.cast([tf.size(batch), size], tf.int64)

    batches = _records(file).batch(_RECORDS_AT_A_TIME)
    return batches.reduce(tf.zeros([2], tf.int64), add)
