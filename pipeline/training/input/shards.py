"""TFRecord shards of a split: what they hold, and which of them a worker reads."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from pipeline.config.feature_set import SAMPLE_WEIGHT_KEY
from pipeline.training.input.examples import ExampleFormat
from sluice.errors import NodeError

# Files that are read at the same time; fixed, since it determines the order.
_FILES_AT_A_TIME = 8
_RECORDS_AT_A_TIME = 1024
# By how much sharding by file may lengthen an epoch; otherwise it is by record.
_UNEVENNESS = 1.05


@dataclass(frozen=True)
class Shards:
    """Gzip TFRecord files, and what each holds.

    Attributes:
      files: paths, in the order of their names.
      records: number of records by file.
      bytes: their total size, uncompressed.
      class_counts: number of records by class id; None where it was not asked for.
      part: of all records, numbered in the order of reading, those whose number has
        this remainder; the divisor and the remainder. ``(1, 0)``: all.
    """

    files: list[str]
    records: list[int]
    bytes: int
    class_counts: list[int] | None = None
    part: tuple[int, int] = (1, 0)

    @property
    def count(self) -> int:
        """The number of records."""
        divisor, remainder = self.part
        return len(range(remainder, sum(self.records), divisor))

    @property
    def record_bytes(self) -> int:
        """The mean size of a record, at least 1."""
        return max(1, self.bytes // max(1, sum(self.records)))

    def shares(self, workers: int) -> list[Shards]:
        """Returns what each worker reads: files of its own, if they are even enough.

        Otherwise every worker reads all files and takes every so-many-th record.
        """
        by_record = [
            dataclasses.replace(self, part=(workers, i)) for i in range(workers)
        ]
        by_file = [
            dataclasses.replace(
                self, files=self.files[i::workers], records=self.records[i::workers]
            )
            for i in range(workers)
        ]
        longest = max(share.count for share in by_file)
        even = longest <= _UNEVENNESS * max(share.count for share in by_record)
        return by_file if even else by_record

    def read(self, order: tf.Tensor | None = None) -> tf.data.Dataset:
        """Returns the records, interleaved from several files at a time.

        Args:
          order: seed, int64 scalar, that shuffles the files; None keeps their order.
        """
        files = tf.data.Dataset.from_tensor_slices(self.files)
        if order is not None:
            files = files.shuffle(
                len(self.files), seed=order, reshuffle_each_iteration=False
            )
        records = files.interleave(
            _records,
            cycle_length=min(_FILES_AT_A_TIME, len(self.files)),
            num_parallel_calls=tf.data.AUTOTUNE,
            deterministic=True,
        )
        return records.shard(*self.part) if self.part != (1, 0) else records


def count_records(
    patterns: Sequence[str], example_format: ExampleFormat, *, by_class: bool = False
) -> Shards:
    """Returns the files that match the patterns, with their counts.

    Reads every record once, several files at a time.

    Args:
      patterns: of gzip TFRecord files.
      example_format: has the label, and the weights to check.
      by_class: whether to count the records of each class.

    Raises:
      NodeError: no file matches, the files have no records, or a weight is negative or
        not finite.
    """
    files = sorted({file for item in patterns for file in tf.io.gfile.glob(item)})
    label = example_format.feature_set.label
    names = [label.key] if by_class else []
    names += [SAMPLE_WEIGHT_KEY] if SAMPLE_WEIGHT_KEY in example_format.spec else []
    spec = {name: example_format.spec[name] for name in names}
    classes = len(label.classes)

    @tf.autograph.experimental.do_not_convert
    def add(total: dict[str, Any], batch: tf.Tensor) -> dict[str, Any]:
        total = dict(total)
        total["records"] += tf.size(batch, tf.int64)
        total["bytes"] += tf.reduce_sum(tf.cast(tf.strings.length(batch), tf.int64))
        parsed = tf.io.parse_example(batch, spec) if spec else {}
        if by_class:
            ids = tf.reshape(parsed[label.key], [-1])
            ones = tf.one_hot(ids, classes, dtype=tf.int64)
            total["classes"] += tf.reduce_sum(ones, axis=0)
        if SAMPLE_WEIGHT_KEY in parsed:
            weights = parsed[SAMPLE_WEIGHT_KEY]
            good = tf.math.is_finite(weights) & (weights >= 0)
            total["bad"] += tf.reduce_sum(tf.cast(~good, tf.int64))
        return total

    @tf.autograph.experimental.do_not_convert
    def count(file: tf.Tensor) -> dict[str, tf.Tensor]:
        zero = tf.constant(0, tf.int64)
        start = {"records": zero, "bytes": zero, "bad": zero}
        start["classes"] = tf.zeros([classes], tf.int64)
        return _records(file).batch(_RECORDS_AT_A_TIME).reduce(start, add)

    counts = list(
        tf.data.Dataset.from_tensor_slices(tf.constant(files, tf.string))
        .map(count, num_parallel_calls=tf.data.AUTOTUNE)
        .as_numpy_iterator()
    )
    records = [int(item["records"]) for item in counts]
    if not sum(records):
        raise NodeError(
            "there are no transformed examples",
            where=", ".join(patterns),
            actual=f"{len(files)} files without records",
        )
    for file, item in zip(files, counts, strict=True):
        if item["bad"]:
            raise NodeError(
                f"{item['bad']} of {item['records']} sample weights cannot be used",
                where=file,
                expected="finite numbers, at least 0",
                hint="correct the feature that train.sample_weight names",
            )
    return Shards(
        files,
        records,
        bytes=int(sum(item["bytes"] for item in counts)),
        class_counts=np.sum([item["classes"] for item in counts], axis=0).tolist()
        if by_class
        else None,
    )


@tf.autograph.experimental.do_not_convert
def _records(file: tf.Tensor) -> tf.data.Dataset:
    return tf.data.TFRecordDataset(file, compression_type="GZIP")
