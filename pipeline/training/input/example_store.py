"""Decoded examples in memory, from which a batch is gathered by index."""

from __future__ import annotations

from collections.abc import Mapping

import tensorflow as tf

from pipeline.training.input.examples import Examples


class ExampleStore:
    """All examples of a split, one tensor per feature.

    Unlike ``tf.data``'s cache, it hands out whole batches in any order: the shuffle is
    complete, has no buffer, and a resumed epoch skips nothing.

    Args:
      examples: batches, which are read to the end.
      count: number of examples.
    """

    def __init__(self, examples: tf.data.Dataset, count: int) -> None:
        # Variables, since tf.data copies constants when it optimizes a dataset.
        with tf.device("CPU:0"):
            self._features = {
                name: tf.Variable(tf.zeros([count, *spec.shape[1:]], spec.dtype))
                for name, spec in examples.element_spec.items()
            }
            filled = 0
            for batch in examples:
                indices = tf.range(filled, filled + len(next(iter(batch.values()))))
                for name, values in batch.items():
                    # A slice of a variable would copy all of it first.
                    self._features[name].scatter_update(
                        tf.IndexedSlices(values, indices)
                    )
                filled += len(indices)

    def gather(self, indices: tf.Tensor) -> Examples:
        """Returns the examples with these numbers, in this order."""
        return {
            name: tf.gather(values, indices) for name, values in self._features.items()
        }


def example_bytes(spec: Mapping[str, tf.TensorSpec], string_bytes: int = 64) -> int:
    """Returns the size of an example in memory.

    Args:
      spec: of one example.
      string_bytes: assumed size of each string.
    """
    sizes = (
        string_bytes if item.dtype == tf.string else item.dtype.size
        for item in spec.values()
    )
    counts = (item.shape.num_elements() for item in spec.values())
    return sum(size * count for size, count in zip(sizes, counts, strict=True))
