"""TFRecord files of a split: how many records they hold, and which a worker reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

import numpy as np
import tensorflow as tf

from pipeline.config.features import SAMPLE_WEIGHT_KEY
from pipeline.training.input.examples import ExampleFormat, not_converted
from pipeline.training.strategy.distribution import Distribution
from sluice.errors import NodeError

# Files that are read at the same time; fixed, since it determines the order.
_FILES_AT_A_TIME = 8
# By how much sharding by file may lengthen an epoch; otherwise it is by record.
_UNEVENNESS = 1.05


@dataclass(frozen=True)
class Records:
    """Gzip TFRecord files, and what they hold.

    Attributes:
      files: paths, in the order of their names.
      counts: number of records by file.
      bytes: the mean size of a record, uncompressed.
      class_counts: number of records by class id; empty where it was not asked for.
      part: of all records, numbered in the order of the files, those whose number has
        this remainder; the divisor and the remainder. ``(1, 0)``: all.
    """

    files: list[str]
    counts: list[int]
    bytes: int
    class_counts: list[int]
    part: tuple[int, int] = (1, 0)

    @property
    def count(self) -> int:
        """The number of records."""
        divisor, remainder = self.part
        return len(range(remainder, sum(self.counts), divisor))

    def shares(self, workers: int) -> list[Records]:
        """Returns what each worker reads: files of its own, if they are even enough.

        Otherwise every worker reads all files and takes every so-many-th record.
        """
        by_record = [replace(self, part=(workers, i)) for i in range(workers)]
        by_file = [
            replace(self, files=self.files[i::workers], counts=self.counts[i::workers])
            for i in range(workers)
        ]
        longest = _UNEVENNESS * by_record[0].count
        if all(0 < share.count <= longest for share in by_file):
            return by_file
        return by_record

    def read(self, order: tf.Tensor | None = None) -> tf.data.Dataset:
        """Returns the records, interleaved from several files at a time.

        Args:
          order: seed, int64 scalar, that shuffles the files; None keeps their order.
        """
        divisor, remainder = self.part

        @not_converted
        def read_file(file: Any, begin: Any) -> tf.data.Dataset:
            records = tf.data.TFRecordDataset(file, compression_type="GZIP")
            return records.shard(divisor, (remainder - begin) % divisor)

        begins = [0, *accumulate(self.counts[:-1])]
        files = tf.data.Dataset.from_tensor_slices(
            (self.files, tf.constant(begins, tf.int64))
        )
        if order is not None:
            files = files.shuffle(
                len(self.files), seed=order, reshuffle_each_iteration=False
            )
        return files.interleave(
            read_file,
            cycle_length=_FILES_AT_A_TIME,
            num_parallel_calls=tf.data.AUTOTUNE,
            deterministic=True,
        )


def count_records(
    patterns: Sequence[str],
    example_format: ExampleFormat,
    distribution: Distribution,
    *,
    by_class: bool = False,
) -> Records:
    """Returns the files that match, with their counts.

    Reads every record once; of several workers each reads a part of the files.

    Raises:
      NodeError: no file matches, there are no records, preprocessing does not return
        one row per record, a weight is negative, not finite or not that of the record,
        or an example has no class, or of several labels another number than 0 or 1, or
        of a regression one that is not finite.
    """
    files = sorted({file for glob in patterns for file in tf.io.gfile.glob(glob)})
    label = example_format.feature_set.label
    weight = example_format.feature_set.sample_weight
    classes = len(label.class_names) if by_class else 0
    chunk_size = example_format.chunk_size
    has_classes = label.task != "regression"

    def bad_weights(records: tf.Tensor, examples: Any) -> tf.Tensor:
        if weight is None:
            return tf.zeros([0])
        given = tf.io.parse_example(records, {weight: example_format.raw_spec[weight]})
        weights, raw = examples[SAMPLE_WEIGHT_KEY], tf.cast(given[weight], tf.float32)
        return ~tf.math.is_finite(weights) | (weights < 0) | (weights != raw)

    @not_converted
    def facts_of(records: tf.Tensor) -> tf.Tensor:
        """Returns numbers of records, bytes, features with other numbers of rows.

        Also of bad weights, examples without a label, and those of each class.
        """
        examples = example_format.transformed(records)
        rows = tf.stack([tf.shape(value)[0] for value in examples.values()])
        labels = examples[label.key]
        is_none = labels < 0 if has_classes else ~tf.math.is_finite(labels)
        facts = [
            tf.size(records, tf.int64),
            tf.reduce_sum(tf.cast(tf.strings.length(records), tf.int64)),
            tf.math.count_nonzero(rows != tf.size(records)),
            tf.math.count_nonzero(bad_weights(records, examples)),
            tf.math.count_nonzero(tf.reduce_any(is_none, axis=-1)),
        ]
        if by_class:
            ids = tf.one_hot(labels[:, 0], classes, dtype=tf.int64)
            facts += tf.unstack(tf.reduce_sum(ids, axis=0))
        return tf.stack(facts)

    @not_converted
    def read_file(number: tf.Tensor, file: tf.Tensor) -> tf.data.Dataset:
        records = tf.data.TFRecordDataset(file, compression_type="GZIP")
        return records.batch(chunk_size).map(
            not_converted(lambda chunk: (number, facts_of(chunk)))
        )

    totals = np.zeros([len(files), 5 + classes], np.int64)
    # One dataset for all, since making its iterator takes 20 ms of CPU.
    numbered = tf.data.Dataset.from_tensor_slices(tf.constant(files, tf.string))
    own = numbered.enumerate().shard(distribution.workers, distribution.worker)
    chunks = own.interleave(
        read_file, cycle_length=_FILES_AT_A_TIME, num_parallel_calls=tf.data.AUTOTUNE
    )
    for number, facts in chunks.as_numpy_iterator():
        totals[number] += facts
    totals = _sum_over_workers(totals, distribution)
    counts, sizes, uneven, bad, without, *of_classes = totals.T
    if not counts.sum():
        raise NodeError(
            f"there are no examples in {len(files)} files",
            where=", ".join(patterns),
        )
    if uneven.any():
        raise NodeError(
            "preprocessing does not return one row per record",
            where=files[int(uneven.argmax())],
        )
    if bad.any():
        first = int(bad.argmax())
        raise NodeError(
            f"{bad[first]} of {counts[first]} sample weights are negative, not finite "
            f"or not those of the records: correct {weight!r}, or your preprocessing",
            where=files[first],
        )
    if without.any():
        must = "one of the classes, or 0 or 1 for each (one-hot: a single 1)"
        kind, must = ("class", must) if has_classes else ("number", "finite")
        raise NodeError(
            f"{without.sum():,} of {counts.sum():,} examples have no {kind}: the label "
            f"{label.feature!r} must be {must}",
            where=", ".join(patterns),
        )
    return Records(
        files,
        counts.tolist(),
        max(1, int(sizes.sum() // counts.sum())),
        [int(count.sum()) for count in of_classes],
    )


def _sum_over_workers(values: np.ndarray, distribution: Distribution) -> np.ndarray:
    strategy = distribution.strategy
    if distribution.workers == 1:
        return values

    @tf.function(autograph=False)
    def sum_over_replicas() -> tf.Tensor:
        return strategy.reduce(tf.distribute.ReduceOp.SUM, values, axis=None)

    return sum_over_replicas().numpy() // (
        distribution.replicas // distribution.workers
    )
