"""Division of a split's examples over workers, replicas and steps."""

from __future__ import annotations

import math
from dataclasses import dataclass

import tensorflow as tf

from pipeline.training.input.shards import Shards
from pipeline.training.strategy.distribution import Distribution
from sluice.errors import NodeError

# Kinds whose replicas each take a batch of their own from their worker's dataset.
BY_REPLICA = ("multi_worker", "tpu")


@dataclass(frozen=True)
class Plan:
    """Which examples make which batches.

    Attributes:
      shares: what each worker reads.
      steps: number of steps of an epoch, the same for all workers.
      batch_size: examples per batch of a worker's dataset.
      batches_per_step: number of batches that a worker's replicas take at a step.
      total: examples per epoch and worker. If it has more, the last ones are left out;
        if it has fewer, the first ones are repeated with the weight 0.
    """

    shares: list[Shards]
    steps: int
    batch_size: int
    batches_per_step: int
    total: int

    @property
    def is_padded(self) -> bool:
        """Whether examples are repeated by any worker."""
        return any(share.count < self.total for share in self.shares)

    def step_scale(self, batch: tf.Tensor) -> tf.Tensor:
        """Returns the examples of a step, those repeated included, by those that count.

        Args:
          batch: number of a batch of a worker's dataset in its epoch.
        """
        each = self.batch_size * self.batches_per_step
        first = batch // self.batches_per_step * each
        counts = tf.constant([share.count for share in self.shares], tf.int64)
        real = tf.reduce_sum(tf.clip_by_value(counts - first, 0, each))
        return tf.cast(each * len(self.shares) / real, tf.float32)

    @property
    def epoch_scale(self) -> float:
        """The same for all steps together."""
        return self.total * len(self.shares) / sum(item.count for item in self.shares)


def divide(shards: Shards, distribution: Distribution, *, drop: bool) -> Plan:
    """Returns how a split is divided.

    Several workers make equally many steps of full batches, so their examples are
    padded; so are those of one worker with static shapes, unless ``drop`` leaves out
    an incomplete last batch.

    Raises:
      NodeError: there are not enough examples.
    """
    workers, static = distribution.workers, distribution.static_shapes
    shares = shards.shares(workers)
    counts = [share.count for share in shares]
    each = distribution.batch_size // workers
    if static and drop:
        steps = min(counts) // each
        total = steps * each
    else:
        steps = math.ceil(max(counts) / each)
        total = steps * each if static or workers > 1 else counts[0]
    if not steps or not min(counts):
        raise NodeError(
            "there are not enough examples for a step of all workers",
            where=shards.files[0],
            expected=f"at least {distribution.batch_size if static else workers}",
            actual=str(shards.count),
            hint="reduce train.batch_size or the number of workers",
        )
    batches = 1
    if distribution.kind in BY_REPLICA:
        batches = distribution.replicas // workers
    return Plan(shares, steps, each // batches, batches, total)
