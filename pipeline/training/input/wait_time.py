"""How long the consumer of a dataset waits for it."""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf

from pipeline.training.input.examples import not_converted

# A measurement costs about 0.1 ms.
_EVERY = 8


class WaitTime:
    """Measures the time that is spent in a dataset's ``next``.

    The first element and every eighth after it are measured; those count for the ones
    between them, since the first also waits for the reading to begin.

    Attributes:
      seconds: the sum so far, float64.
    """

    def __init__(self) -> None:
        with tf.device("CPU:0"):
            self._begin = tf.Variable(0.0, trainable=False, dtype=tf.float64)
            self.seconds = tf.Variable(0.0, trainable=False, dtype=tf.float64)

    @staticmethod
    def is_measurable() -> bool:
        """Whether TensorFlow gives the time; it does not if it is deterministic."""
        try:
            tf.timestamp()
        except tf.errors.FailedPreconditionError:
            return False
        return True

    def measured(self, dataset: tf.data.Dataset) -> tf.data.Dataset:
        """Returns the same elements, which must not be prefetched after this."""

        def begin(_: tf.Tensor) -> tf.Operation:
            return self._begin.assign(tf.timestamp())

        def end(number: tf.Tensor) -> tf.Operation:
            stands_for = tf.cast(tf.where(number == 0, 1, _EVERY), tf.float64)
            return self.seconds.assign_add(stands_for * (tf.timestamp() - self._begin))

        # Elements of a zipped dataset are taken one after the other.
        timed = tf.data.Dataset.zip((_sometimes(begin), dataset, _sometimes(end)))
        options = tf.data.Options()
        options.experimental_optimization.inject_prefetch = False
        return timed.map(not_converted(lambda _, element, __: element)).with_options(
            options
        )


def _sometimes(function: Callable[[tf.Tensor], tf.Operation]) -> tf.data.Dataset:
    """Returns an endless dataset that calls a function before every n-th element."""

    def call(number: tf.Tensor) -> tf.data.Dataset:
        with tf.control_dependencies([function(number)]):
            return tf.data.Dataset.range(_EVERY)

    return tf.data.Dataset.counter().flat_map(not_converted(call))
