"""The batches of a split by epoch and step: from memory, from disk, or read anew."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tensorflow as tf

from pipeline.training.input.examples import (
    ExampleFormat,
    Examples,
    example_bytes,
    not_converted,
)
from pipeline.training.input.shards import Shards
from pipeline.training.strategy.task_process import beat


@dataclass(frozen=True)
class BatchSettings:
    """How the batches of one worker are made.

    Attributes:
      batch_size: examples per batch; the last one of an epoch may be smaller.
      total: examples per epoch. If there are more, the last ones are left out; if there
        are fewer, the first ones are repeated.
      cache: ``memory``, ``none``, or an empty folder for decoded examples.
      seed: of the order; None keeps the order of the files.
      shuffle_bytes: size of the shuffle buffer, where not all is in memory.
    """

    batch_size: int
    total: int
    cache: str | Path
    seed: int | None = None
    shuffle_bytes: int = 0

    @property
    def steps(self) -> int:
        """Batches per epoch."""
        return math.ceil(self.total / self.batch_size)


class Batches:
    """The batches that one worker reads of a split."""

    def __init__(
        self, shards: Shards, example_format: ExampleFormat, settings: BatchSettings
    ) -> None:
        self._shards, self._settings = shards, settings
        self._parse = example_format.parse
        self._store: ExampleStore | None = None
        self._decoded: tf.data.Dataset | None = None
        if settings.cache == "memory":
            self._store = ExampleStore(shards, example_format)
        elif isinstance(settings.cache, Path):
            records = shards.read().batch(example_format.chunk_size)
            self._decoded = _parallel(records, self._parse).unbatch()

    def dataset(
        self,
        finish: Callable[[tf.Tensor, tf.Tensor, Examples], Any],
        *,
        epoch: int = 0,
        skip: int = 0,
        endless: bool = False,
        cached: bool = True,
    ) -> tf.data.Dataset:
        """Returns batches from a position on, a function of seed and position alone.

        Args:
          finish: makes a batch of epoch, step and examples.
          epoch: number of the first epoch.
          skip: number of its batches to leave out.
          endless: whether all epochs follow; else it is the only one.
          cached: whether to use the cache on disk, which only one iterator can fill.
        """

        @not_converted
        def one_epoch(number: tf.Tensor) -> tf.data.Dataset:
            first = tf.where(number == epoch, tf.constant(skip, tf.int64), 0)
            steps = tf.data.Dataset.range(first, self._settings.steps)
            same = tf.data.Dataset.from_tensors(number).repeat()
            if self._store is not None:
                return tf.data.Dataset.zip((same, steps, steps))
            batches = self._read(number, cached)
            return tf.data.Dataset.zip((same, steps, batches.skip(first)))

        def load(number: tf.Tensor, step: tf.Tensor, batch: Any) -> Any:
            if self._store is not None:
                batch = self._store.gather(self._indices(number, step))
            elif self._decoded is None:
                batch = self._parse(batch)
            if self._settings.total % self._settings.batch_size == 0:
                batch = {
                    name: tf.ensure_shape(
                        value, [self._settings.batch_size, *value.shape[1:]]
                    )
                    for name, value in batch.items()
                }
            return finish(number, step, batch)

        numbers = tf.data.Dataset.counter(epoch)
        if not endless:
            numbers = numbers.take(1)
        return _parallel(numbers.flat_map(one_epoch), load)

    def _indices(self, number: tf.Tensor, step: tf.Tensor) -> tf.Tensor:
        settings, count = self._settings, self._shards.count
        start = step * settings.batch_size
        end = tf.minimum(start + settings.batch_size, settings.total)
        indices = tf.range(start, end) % count
        if settings.seed is None:
            return indices
        return tf.random.experimental.index_shuffle(
            indices, seed=[settings.seed, number], max_index=count - 1
        )

    def _read(self, number: tf.Tensor, cached: bool) -> tf.data.Dataset:
        settings, count = self._settings, self._shards.count
        shuffled = settings.seed is not None
        if settings.seed is not None:
            # Operations combine their seed with this one, whatever it is elsewhere.
            # TensorFlow takes it modulo 2**31 - 1; 0 fails beside a tensor.
            tf.random.set_seed(settings.seed % (2**31 - 2) + 1)
        if self._decoded is not None:
            records, size = self._decoded, example_bytes(self._decoded.element_spec)
            if cached:
                records = records.cache(str(Path(settings.cache, "examples")))
        else:
            records = self._shards.read(number if shuffled else None)
            size = self._shards.record_bytes
        if shuffled:
            buffer = max(1, min(count, settings.shuffle_bytes // size))
            records = records.shuffle(
                buffer, seed=number, reshuffle_each_iteration=False
            )
        if settings.total > count:
            records = records.repeat().take(settings.total)
        # Reads to the end, so that the cache on disk is complete.
        batches = records.batch(
            settings.batch_size, drop_remainder=settings.total < count
        )
        more = count // settings.batch_size > settings.steps
        return batches.take(settings.steps) if more else batches


class ExampleStore:
    """All examples of a split, one tensor per feature, in the order of the files.

    Unlike ``tf.data``'s cache, it hands out whole batches in any order: the shuffle is
    complete, has no buffer, and a resumed epoch skips nothing.
    """

    def __init__(self, shards: Shards, example_format: ExampleFormat) -> None:
        self._parse = example_format.parse
        # Variables, since tf.data copies constants when it optimizes a dataset.
        with tf.device("CPU:0"):
            self._features = {
                name: tf.Variable(
                    tf.raw_ops.Empty(
                        shape=[shards.count, *spec.shape], dtype=spec.dtype
                    )
                )
                for name, spec in example_format.parsed_spec.items()
            }
        # Not by tf.data, which takes more than half as much time again for this.
        with ThreadPoolExecutor() as threads:
            for _ in threads.map(self._fill, shards.parts(example_format.chunk_size)):
                pass

    def _fill(self, part: tuple[int, Iterable[tf.Tensor]]) -> None:
        begin, chunks = part
        with tf.device("CPU:0"):
            for chunk in chunks:
                beat()
                indices = tf.range(begin, begin + len(chunk))
                for name, values in self._parse(chunk).items():
                    # A slice of a variable would copy all of it first.
                    self._features[name].scatter_update(
                        tf.IndexedSlices(values, indices)
                    )
                begin += len(chunk)

    def gather(self, indices: tf.Tensor) -> Examples:
        """Returns the examples with these numbers, in this order."""
        return {
            name: tf.gather(values, indices) for name, values in self._features.items()
        }


def _parallel(dataset: tf.data.Dataset, function: Callable[..., Any]) -> Any:
    return dataset.map(
        not_converted(function), num_parallel_calls=tf.data.AUTOTUNE, deterministic=True
    )
