"""Learning rate per step: Keras' schedules in epochs, with warm-up and scaling."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

_schedules: Any = tf.keras.optimizers.schedules


def make_learning_rate(
    settings: float | Mapping[str, Any],
    *,
    epochs: int,
    steps_per_epoch: int,
    scale: float = 1.0,
) -> float | Schedule:
    """Returns what an optimizer takes as its learning rate.

    Args:
      settings: section ``train.learning_rate``: a number, or a schedule in epochs.
      epochs: of the whole training; where a cosine without ``epochs`` ends.
      steps_per_epoch: converts epochs to steps.
      scale: factor of all learning rates; see ``scale_of``.

    Returns:
      A number if it is constant, so that a callback may set it; else a schedule.
    """
    if not isinstance(settings, Mapping):
        return settings * scale
    warmup_steps = settings["warmup_epochs"] * steps_per_epoch
    initial = settings["initial"] * scale
    if settings["kind"] == "constant" and not warmup_steps:
        return initial
    rest = epochs - settings["warmup_epochs"]
    after = _after_warmup(settings, scale, rest, steps_per_epoch)
    return Schedule(initial, warmup_steps, after)


def scale_of(scaling: str, replicas: int) -> float:
    """Returns the factor of the learning rate for so many replicas."""
    return {"none": 1.0, "linear": float(replicas), "sqrt": math.sqrt(replicas)}[
        scaling
    ]


class Schedule(tf.keras.optimizers.schedules.LearningRateSchedule, tf.Module):
    """Linear warm-up from 0, then another schedule, both times a factor.

    Attributes:
      factor: a variable, 1 at first, which ``ReduceOnPlateau`` reduces. As the
        optimizer tracks it, checkpoints contain it.
    """

    def __init__(
        self, initial: float, warmup_steps: float, after: Callable[[Any], Any]
    ) -> None:
        super().__init__()
        self.initial, self.warmup_steps, self.after = initial, warmup_steps, after
        self.factor = tf.Variable(1.0, trainable=False, name="learning_rate_factor")

    def __call__(self, step: Any) -> tf.Tensor:
        step = tf.cast(step, tf.float32)
        value = self.after(tf.maximum(step - self.warmup_steps, 0.0))
        if self.warmup_steps:
            rising = self.initial * step / self.warmup_steps
            value = tf.where(step < self.warmup_steps, rising, value)
        return self.factor * value

    def get_config(self) -> dict[str, Any]:
        return {
            "initial": self.initial,
            "warmup_steps": self.warmup_steps,
            "after": self.after,
        }


def _after_warmup(
    settings: Mapping[str, Any], scale: float, rest: float, steps_per_epoch: int
) -> Callable[[Any], Any]:
    """Returns the learning rate by the step after the warm-up, ``rest`` epochs long."""
    initial = settings["initial"] * scale
    match settings["kind"]:
        case "cosine":
            steps = (settings["epochs"] or rest) * steps_per_epoch
            final = settings["final_fraction"]
            return _schedules.CosineDecay(initial, max(1.0, steps), alpha=final)
        case "exponential":
            steps = settings["epochs"] * steps_per_epoch
            staircase = settings["staircase"]
            return _schedules.ExponentialDecay(
                initial, steps, settings["rate"], staircase=staircase
            )
        case "piecewise":
            # Keras uses a value up to and including its boundary.
            boundaries = [
                epochs * steps_per_epoch - 0.5 for epochs in settings["boundaries"]
            ]
            values = [value * scale for value in settings["values"]]
            return _schedules.PiecewiseConstantDecay(boundaries, [initial, *values])
    return lambda step: tf.constant(initial)
