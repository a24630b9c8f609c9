"""TFRecord shards of a split: what they hold, and which of them a worker reads."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain
from typing import Any

import tensorflow as tf

from pipeline.config.features import SAMPLE_WEIGHT_KEY
from pipeline.training.input.examples import ExampleFormat, not_converted, traced
from pipeline.training.strategy.task_process import beat
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
        even &= all(share.count for share in by_file)
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
            not_converted(self._read_file),
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
      example_format: of their records.
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
    found = {file: [nothing] for file in chain(*files)}
    kept: dict[str, list[tf.Tensor]] = {file: [] for file in found}
    size = 0
    with tf.device("CPU:0"):
        for name, chunk in _chunks(list(found), example_format.chunk_size):
            beat()
            file = name.numpy().decode()
            found[file].append(facts_of(chunk))
            size += int(found[file][-1]["bytes"])
            if size <= keep_bytes:
                kept[file].append(chunk)
    if size > keep_bytes:
        kept = {file: [] for file in found}
    totals = {
        file: {key: sum(item[key].numpy() for item in items) for key in nothing}
        for file, items in found.items()
    }
    shards = []
    for patterns, paths in zip(splits, files, strict=True):
        facts = [totals[file] for file in paths]
        _check(patterns, paths, facts)
        counts = sum(item["classes"] for item in facts).tolist() if by_class else None
        shards.append(
            Shards(
                paths,
                [int(item["records"]) for item in facts],
                bytes=sum(int(item["bytes"]) for item in facts),
                class_counts=counts,
                kept=list(chain(*(kept[file] for file in paths))),
            )
        )
    return shards


def _chunks(files: Sequence[str], size: int) -> tf.data.Dataset:
    """Returns pairs of a file's name and some of its records, in their order."""

    @not_converted
    def named(file: tf.Tensor) -> tf.data.Dataset:
        chunks = tf.data.TFRecordDataset(file, compression_type="GZIP").batch(size)
        return tf.data.Dataset.zip(
            (tf.data.Dataset.from_tensors(file).repeat(), chunks)
        )

    # One dataset for all, since making its iterator takes 20 ms of CPU.
    return tf.data.Dataset.from_tensor_slices(tf.constant(files, tf.string)).interleave(
        named, cycle_length=_FILES_AT_A_TIME, num_parallel_calls=tf.data.AUTOTUNE
    )


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
        classes = tf.one_hot(ids[:, 0], len(label.class_names), dtype=tf.int64)
        facts["classes"] = tf.reduce_sum(classes, axis=0)
    if SAMPLE_WEIGHT_KEY in spec:
        only = {SAMPLE_WEIGHT_KEY: spec[SAMPLE_WEIGHT_KEY]}
        weights = tf.io.parse_example(records, only)[SAMPLE_WEIGHT_KEY]
        good = tf.math.is_finite(weights) & (weights >= 0)
        facts["bad"] = tf.reduce_sum(tf.cast(~good, tf.int64))
    return facts


def _check(
    patterns: Sequence[str], files: Sequence[str], facts: Sequence[dict[str, Any]]
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
