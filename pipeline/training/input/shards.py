"""TFRecord shards of a split: what they hold, and which of them a worker reads."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

import tensorflow as tf

from pipeline.config.feature_set import SAMPLE_WEIGHT_KEY
from pipeline.training.input.examples import ExampleFormat, traced
from sluice.errors import NodeError

# Files that are read at the same time; fixed, since it determines the order.
_FILES_AT_A_TIME = 8
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
      part: of all records, numbered in the order of the files, those whose number has
        this remainder; the divisor and the remainder. ``(1, 0)``: all.
      kept: the serialized records, where ``count_records`` has kept them, in chunks
        ``[records]``; ``parts`` takes them out.
    """

    files: list[str]
    records: list[int]
    bytes: int
    class_counts: list[int] | None = None
    part: tuple[int, int] = (1, 0)
    kept: list[tf.Tensor] = field(default_factory=list)

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
        if workers == 1:
            return [self]
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
        begins = tf.constant(self._begins(), tf.int64)
        files = tf.data.Dataset.from_tensor_slices((self.files, begins))
        if order is not None:
            files = files.shuffle(
                len(self.files), seed=order, reshuffle_each_iteration=False
            )
        return files.interleave(
            tf.autograph.experimental.do_not_convert(self._read_file),
            cycle_length=min(_FILES_AT_A_TIME, len(self.files)),
            num_parallel_calls=tf.data.AUTOTUNE,
            deterministic=True,
        )

    def parts(self, chunk_size: int) -> Iterator[tuple[int, Iterable[tf.Tensor]]]:
        """Yields all records in parts that may be read in parallel.

        Args:
          chunk_size: maximum number of records in a chunk.

        Returns:
          The number of a part's first record, in the order of the files, and the
          records in chunks ``[records]``. What was kept is given up.
        """
        begin = 0
        if not self.kept:
            for file, first in zip(self.files, self._begins(), strict=True):
                divisor, remainder = self.part
                begin = len(range(remainder, first, divisor))
                yield begin, self._read_file(file, first).batch(chunk_size)
        while self.kept:
            chunk = self.kept.pop(0)
            yield begin, [chunk]
            begin += len(chunk)

    def _begins(self) -> list[int]:
        """Returns the number of each file's first record."""
        return [0, *accumulate(self.records[:-1])]

    def _read_file(self, file: Any, begin: Any) -> tf.data.Dataset:
        records = tf.data.TFRecordDataset(file, compression_type="GZIP")
        divisor, remainder = self.part
        if divisor == 1:
            return records
        return records.shard(divisor, (remainder - begin) % divisor)


def count_records(
    splits: Sequence[Sequence[str]],
    example_format: ExampleFormat,
    *,
    by_class: bool = False,
    keep_bytes: int = 0,
) -> list[Shards]:
    """Returns the files of each split, with their counts.

    Reads every record once, several files at a time.

    Args:
      splits: patterns of gzip TFRecord files.
      example_format: has the label, and the weights to check.
      by_class: whether to count the records of each class.
      keep_bytes: limit of the records' size up to which they are kept.

    Raises:
      NodeError: no file matches, a split has no records, or a weight is negative or not
        finite.
    """
    files = [
        sorted({file for item in patterns for file in tf.io.gfile.glob(item)})
        for patterns in splits
    ]
    facts_of = traced(functools.partial(_facts, example_format, by_class))
    nothing = facts_of(tf.zeros([0], tf.string))
    size = 0

    def read(file: str) -> tuple[dict[str, Any], list[tf.Tensor]]:
        nonlocal size
        records, kept = tf.data.TFRecordDataset(file, compression_type="GZIP"), []
        with tf.device("CPU:0"):
            found = [nothing]
            for chunk in records.batch(example_format.chunk_size):
                found.append(facts_of(chunk))
                size += int(found[-1]["bytes"])
                if size <= keep_bytes:
                    kept.append(chunk)
        totals = {key: sum(item[key].numpy() for item in found) for key in found[0]}
        return totals, kept

    with ThreadPoolExecutor() as threads:
        read_files = [list(threads.map(read, paths)) for paths in files]
    for paths, patterns, contents in zip(files, splits, read_files, strict=True):
        _check(paths, patterns, [facts for facts, _ in contents])
    return [
        Shards(
            paths,
            [int(facts["records"]) for facts, _ in contents],
            bytes=sum(int(facts["bytes"]) for facts, _ in contents),
            class_counts=sum(facts["classes"] for facts, _ in contents).tolist()
            if by_class
            else None,
            kept=[chunk for _, kept in contents for chunk in kept]
            if size <= keep_bytes
            else [],
        )
        for paths, contents in zip(files, read_files, strict=True)
    ]


def _facts(
    example_format: ExampleFormat, by_class: bool, records: tf.Tensor
) -> dict[str, tf.Tensor]:
    """Returns number and size of records, those of each class, and of bad weights."""
    label, spec = example_format.feature_set.label, example_format.spec
    facts = {
        "records": tf.size(records, tf.int64),
        "bytes": tf.reduce_sum(tf.cast(tf.strings.length(records), tf.int64)),
    }
    if by_class:
        ids = tf.io.parse_example(records, {label.key: spec[label.key]})[label.key]
        classes = tf.one_hot(ids[:, 0], len(label.classes), dtype=tf.int64)
        facts["classes"] = tf.reduce_sum(classes, axis=0)
    if SAMPLE_WEIGHT_KEY in spec:
        only = {SAMPLE_WEIGHT_KEY: spec[SAMPLE_WEIGHT_KEY]}
        weights = tf.io.parse_example(records, only)[SAMPLE_WEIGHT_KEY]
        good = tf.math.is_finite(weights) & (weights >= 0)
        facts["bad"] = tf.reduce_sum(tf.cast(~good, tf.int64))
    return facts


def _check(
    files: Sequence[str], patterns: Sequence[str], facts: Sequence[dict[str, Any]]
) -> None:
    if not sum(item["records"] for item in facts):
        raise NodeError(
            "there are no transformed examples",
            where=", ".join(patterns),
            actual=f"{len(files)} files without records",
        )
    for file, item in zip(files, facts, strict=True):
        if item.get("bad"):
            raise NodeError(
                f"{item['bad']} of {item['records']} sample weights cannot be used",
                where=file,
                expected="finite numbers, at least 0",
                hint="correct the feature that train.sample_weight names",
            )
