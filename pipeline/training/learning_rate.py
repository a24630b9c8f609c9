"""Learning rate per step: Keras' schedules in epochs, with warm-up and scaling."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from pipeline.config.learning_rate import Cosine, Exponential, LearningRate, Piecewise

_schedules: Any = tf.keras.optimizers.schedules


def make_learning_rate(
    given: LearningRate,
    *,
    epochs: int,
    steps_per_epoch: int,
    scale: float = 1.0,
) -> Any:
    """Returns what an optimizer takes as its learning rate.

    Args:
      given: a number, or a schedule in epochs.
      epochs: of the whole training; where a cosine without ``epochs`` ends.
      steps_per_epoch: converts epochs to steps.
      scale: factor of all learning rates; see ``scale_of``.

    Returns:
      A number if it is constant, so that a callback may set it; else a schedule of
      Keras.
    """
    if isinstance(given, float):
        return given * scale
    warmup_steps = given.warmup_epochs * steps_per_epoch
    initial = given.initial * scale
    if given.kind == "constant" and not warmup_steps:
        return initial
    rest = epochs - given.warmup_epochs
    after = _after_warmup(given, scale, rest, steps_per_epoch)
    return WarmUp(initial, warmup_steps, after) if warmup_steps else after


def scale_of(scaling: str, replicas: int) -> float:
    """Returns the factor of the learning rate for so many replicas."""
    return {"none": 1.0, "linear": float(replicas), "sqrt": math.sqrt(replicas)}[
        scaling
    ]


class WarmUp(tf.keras.optimizers.schedules.LearningRateSchedule):
    """Linear warm-up from 0 to ``initial``, then another schedule."""

    def __init__(
        self, initial: float, warmup_steps: float, after: Callable[[Any], Any]
    ) -> None:
        self._initial, self._steps, self._after = initial, warmup_steps, after

    def __call__(self, step: Any) -> tf.Tensor:
        step = tf.cast(step, tf.float32)
        after = self._after(tf.maximum(step - self._steps, 0.0))
        return tf.where(step < self._steps, self._initial * step / self._steps, after)


def _after_warmup(
    given: Any, scale: float, rest: float, steps_per_epoch: int
) -> Callable[[Any], Any]:
    """Returns the learning rate by the step after the warm-up, ``rest`` epochs long."""
    initial = given.initial * scale
    match given:
        case Cosine():
            steps = max(1.0, (given.epochs or rest) * steps_per_epoch)
            return _schedules.CosineDecay(initial, steps, alpha=given.final_fraction)
        case Exponential():
            steps = given.epochs * steps_per_epoch
            return _schedules.ExponentialDecay(
                initial, steps, given.rate, staircase=given.staircase
            )
        case Piecewise():
            # Keras uses a value up to and including its boundary.
            boundaries = [item * steps_per_epoch - 0.5 for item in given.boundaries]
            values = [value * scale for value in given.values]
            return _schedules.PiecewiseConstantDecay(boundaries, [initial, *values])
    return lambda step: tf.constant(initial)
