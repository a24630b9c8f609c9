"""Decisions that all workers of a training must make alike.

Each worker has its own clock and receives a request to stop at its own time, but a
checkpoint is written by all workers or by none, after the same step.
"""

from __future__ import annotations

import time

import tensorflow as tf

# Wall time between two exchanges of flags at the ends of steps.
EVERY_S = 1.0


class Agreement:
    """Exchanges flags with the other workers of a ``MultiWorkerMirroredStrategy``.

    All workers must call the same methods in the same order. With any other strategy
    there is one worker to decide, and flags are returned as they are.
    """

    def __init__(self, strategy: tf.distribute.Strategy) -> None:
        kind = tf.distribute.MultiWorkerMirroredStrategy
        self._strategy = strategy if isinstance(strategy, kind) else None
        self._sum = tf.function(self._sum_over_replicas)
        self._steps = 0
        self._interval = 1
        self._flags: tuple[bool, ...] = ()
        self._at_s = time.monotonic()

    def any(self, *flags: bool) -> tuple[bool, ...]:
        """Returns for each flag whether it is set on any worker."""
        if self._strategy is None:
            return flags
        return tuple(total > 0 for total in self._exchange(*flags))

    def any_at_step(self, *flags: bool) -> tuple[bool, ...]:
        """Returns the same as ``any``, at steps about a second apart.

        At the steps between them, all flags are returned as False, and kept. The steps
        are counted from the mean of the workers' clocks, hence the same on all.
        """
        if self._strategy is None:
            return flags
        before = self._flags or flags
        self._flags = tuple(map(max, before, flags))
        self._steps += 1
        if self._steps < self._interval:
            return tuple(False for _ in flags)
        now_s = time.monotonic()
        *totals, elapsed_s = self._exchange(*self._flags, now_s - self._at_s)
        elapsed_s /= self._strategy.num_replicas_in_sync
        fitting = int(self._steps * EVERY_S / elapsed_s) if elapsed_s else 1
        # Steps may become slower: those after an evaluation, or with other shapes.
        self._interval = max(1, min(fitting, 2 * self._interval))
        self._steps, self._flags, self._at_s = 0, (), now_s
        return tuple(total > 0 for total in totals)

    def _exchange(self, *values: float) -> list[float]:
        return self._sum(tf.constant(values, tf.float32)).numpy().tolist()

    def _sum_over_replicas(self, values: tf.Tensor) -> tf.Tensor:
        assert self._strategy is not None
        return self._strategy.reduce(tf.distribute.ReduceOp.SUM, values, axis=None)
