"""How long the consumer of a dataset waits for it."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

_ENDLESS = 2**40


class WaitTime:
    """Measures the time that is spent in a dataset's ``next``.

    Attributes:
      seconds: the sum so far, float64.
    """

    def __init__(self) -> None:
        with tf.device("CPU:0"):
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
        # Nothing here runs in parallel: the clock is read before and after ``next``.
        as_it_is = tf.autograph.experimental.do_not_convert
        clock = tf.data.Dataset.range(_ENDLESS).map(as_it_is(lambda _: tf.timestamp()))
        options = tf.data.Options()
        options.experimental_optimization.inject_prefetch = False
        timed = tf.data.Dataset.zip((clock, dataset)).map(as_it_is(self._add))
        return timed.with_options(options)

    def _add(self, start: tf.Tensor, element: Any) -> Any:
        self.seconds.assign_add(tf.timestamp() - start)
        return element
