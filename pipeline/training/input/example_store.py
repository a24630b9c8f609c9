"""Decoded examples in memory, from which a batch is gathered by index."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

import tensorflow as tf

from pipeline.training.input.examples import ExampleFormat, Examples
from pipeline.training.input.shards import Shards
from pipeline.training.strategy.task_process import beat


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
