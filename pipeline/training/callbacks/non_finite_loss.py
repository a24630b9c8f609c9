"""Stops training when the loss is NaN or infinite, and names the examples.

The loss in Keras' logs is the mean over the epoch so far, which stays NaN or infinite
from the first such batch on. So it need not be read, which waits for the device, after
each batch: with an accelerator it is read once a second, and the batch found later.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import tensorflow as tf

from pipeline.config.feature_set import FeatureSet
from pipeline.training.callbacks.step_callback import StepCallback
from pipeline.training.input.training_input import Split, TrainingInput
from pipeline.training.strategy.agreement import Agreement
from pipeline.training.strategy.distribution import Distribution
from sluice.errors import MAX_EXAMPLES, NodeError

ACCELERATOR_INTERVAL_S = 1.0
_MAX_LOGGED = 10_000
_MAX_LINE = 300  # characters of an example in the error
_MAX_BATCHES = 100
# In the message of metrics such as AUC.
_NOT_A_PROBABILITY = "predictions must be"


@dataclass(frozen=True)
class Step:
    """What one execution did.

    Attributes:
      split: of the examples.
      epoch: from 0.
      first: number of its first batch, from 0.
      last: number of its last batch.
    """

    split: Split
    epoch: int
    first: int
    last: int

    def __str__(self) -> str:
        batches = f"batch {self.first + 1}"
        if self.last > self.first:
            batches = f"one of the batches {self.first + 1} to {self.last + 1}"
        validation = "validation of " if self.split == "eval" else ""
        return f"{validation}epoch {self.epoch + 1}, {batches}"


class StopOnNonFiniteLoss(StepCallback):
    """Raises a ``NodeError`` when the loss is NaN or infinite.

    Must come before all callbacks that save weights. Several workers raise it after the
    same step, each with the examples that are not finite of those it reads itself.

    Args:
      sensitive: raw names of features of which no values are shown.
      own_preprocessing: whether the user's code made the features, so that any may
        contain a sensitive one.
      interval_s: time between two looks at the loss.
    """

    def __init__(
        self,
        training_input: TrainingInput,
        feature_set: FeatureSet,
        sensitive: Sequence[str] = (),
        *,
        distribution: Distribution,
        own_preprocessing: bool = False,
        interval_s: float = 0.0,
    ) -> None:
        super().__init__()
        self._input = training_input
        names = {item.key: item.name for item in feature_set.features}
        names["label"] = feature_set.label.name
        hidden = {key for key, name in names.items() if name in sensitive}
        derived = own_preprocessing and bool(sensitive)
        self._shows = lambda name: not derived and name not in hidden
        self._interval_s, self._distribution = interval_s, distribution
        self._agreement = Agreement(distribution.strategy)
        self._checked_at_s = 0.0
        self._step = Step("train", 0, 0, 0)
        self._losses: list[tuple[Step, Any]] = []

    def explain(self, error: tf.errors.InvalidArgumentError) -> None:
        """Raises a ``NodeError`` if an error of ``fit`` is due to such a prediction.

        AUC and its kind refuse predictions that are not finite, before the loss is in
        the logs; not with several workers, who read weights together only.
        """
        if (
            _NOT_A_PROBABILITY in str(error)
            and self._distribution.workers == 1
            and self._is_diverged()
        ):
            raise self._error(self._step, "not finite, as are predictions") from error

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self._step = Step("train", epoch, 0, 0)

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        self._step = Step("train", self._step.epoch, batch, batch)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self._add(batch, logs)

    def on_test_begin(self, logs: Any = None) -> None:
        self.check()

    def on_test_batch_begin(self, batch: int, logs: Any = None) -> None:
        self._step = Step("eval", self._step.epoch, batch, batch)

    def on_test_batch_end(self, batch: int, logs: Any = None) -> None:
        self._add(batch, logs)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.check()
        # With parameter servers there are no losses of batches.
        loss = float((logs or {}).get("loss", 0.0))
        if not np.isfinite(loss):
            last = self._input.steps_per_epoch - 1
            raise self._error(Step("train", epoch, 0, last), str(loss))

    def _add(self, last: int, logs: Any) -> None:
        # With parameter servers the logs are still to come.
        if not isinstance(logs, Mapping) or "loss" not in logs:
            return
        self._losses.append((replace(self._step, last=last), logs["loss"]))
        is_due = time.monotonic() - self._checked_at_s >= self._interval_s
        if self._agreement.any_at_step(is_due)[0]:
            self.check()

    def check(self) -> None:
        """Reads the last loss, which waits for the device.

        To be called before weights are saved.

        Raises:
          NodeError: it is not finite.
        """
        if self._losses and not np.isfinite(float(self._losses[-1][1])):
            losses = [(step, float(loss)) for step, loss in self._losses]
            step, loss = next(item for item in losses if not np.isfinite(item[1]))
            raise self._error(step, str(loss))
        self._checked_at_s = time.monotonic()
        self._losses.clear()

    def _is_diverged(self) -> bool:
        if not all(np.isfinite(weight).all() for weight in self.model.get_weights()):
            return True
        return not all(
            np.isfinite(self.model(features, training=False)).all()
            for features, *_ in self._batches(self._step)
        )

    def _error(self, step: Step, loss: str) -> NodeError:
        rate = float(self.model.optimizer.learning_rate.numpy())
        what = f"the loss is {loss}, so training has stopped"
        where = f"{step} of {self._steps(step.split)}, learning rate {rate:g}"
        hint = "a lower train.learning_rate, a warm-up, or train.clip_gradients"
        examples = [
            Example(number, index, batch)
            for number, batch in enumerate(self._batches(step), start=step.first + 1)
            for index in range(len(batch[1]))
        ]
        causes = [item for item in examples if item.not_finite]
        lines = [item.line(self._shows) for item in (causes or examples)[:_MAX_LOGGED]]
        print(f"{step}: the loss is {loss}", *lines, sep="\n", file=sys.stderr)
        workers, place = self._distribution.workers, "examples"
        if workers > 1:
            place += f" of worker {self._distribution.worker}"
        details = f"all features of these {len(examples)} {place} are finite"
        if causes:
            names = sorted({name for item in causes for name in item.not_finite})
            details = (
                f"not finite in {len(causes)} of {len(examples)} {place}: "
                f"{', '.join(names)}"
            )
            hint = "correct these examples, or the preprocessing that made them"
        elif workers > 1:
            # So that the supervisor prefers the error of a worker that has causes.
            lines = []
            details += "; the node's log has what the other workers found"
        more = (
            "; more of them are in the node's log" if len(lines) > MAX_EXAMPLES else ""
        )
        return NodeError(
            what,
            where=where,
            details=[details + more],
            examples=[line[:_MAX_LINE] for line in lines],
            hint=hint,
        )

    def _steps(self, split: str) -> int:
        steps = self._input.steps_per_epoch
        return steps if split == "train" else self._input.eval_steps

    def _batches(self, step: Step) -> Iterator[Any]:
        """Yields the batches of a step, as NumPy arrays."""
        batches = self._input.read(step.split, step.epoch, step.first)
        return itertools.islice(batches, min(step.last - step.first + 1, _MAX_BATCHES))


@contextlib.contextmanager
def explaining(callbacks: Sequence[tf.keras.callbacks.Callback]) -> Iterator[None]:
    """Explains an error of ``fit`` by the ``StopOnNonFiniteLoss`` among the callbacks.

    Raises:
      NodeError: the cause is a prediction that is not finite.
    """
    try:
        yield
    except tf.errors.InvalidArgumentError as error:
        for callback in callbacks:
            if isinstance(callback, StopOnNonFiniteLoss):
                callback.explain(error)
        raise


@dataclass(frozen=True)
class Example:
    """An example of a batch.

    Attributes:
      number: of the batch, from 1.
      index: of the example in the batch, from 0.
      batch: features, labels and, if they are used, weights.
    """

    number: int
    index: int
    batch: Any

    @property
    def values(self) -> dict[str, Any]:
        """Its features and its label by name."""
        features, label, *_ = self.batch
        named = {**features, "label": label}
        return {name: value[self.index] for name, value in named.items()}

    @functools.cached_property
    def not_finite(self) -> list[str]:
        """Names of those that are NaN or infinite."""
        return [
            name
            for name, value in self.values.items()
            if np.issubdtype(value.dtype, np.floating) and not np.isfinite(value).all()
        ]

    def line(self, shows: Callable[[str], bool]) -> str:
        """Returns it in one line, with the values of the features that it ``shows``."""
        values = self.values
        first = dict.fromkeys((*self.not_finite, "label", *values))
        items = [
            f"{name}={_short(values[name])}" if shows(name) else f"{name}=(not shown)"
            for name in first
        ]
        return f"batch {self.number}, example {self.index + 1}: {', '.join(items)}"


def _short(value: np.ndarray) -> str:
    if value.size == 1:
        item = value.item()
        return f"{item:.4g}" if isinstance(item, float) else str(item)
    shape = "x".join(map(str, value.shape))
    if not np.issubdtype(value.dtype, np.number):
        return f"({shape} values)"
    return f"({shape} values from {value.min():.4g} to {value.max():.4g})"
