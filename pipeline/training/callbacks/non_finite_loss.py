"""Stops training when the loss is NaN or infinite, and says where.

Keras' ``TerminateOnNaN`` ends the training as if it were complete. The loss in Keras'
logs is the mean over the epoch so far, which stays NaN or infinite from the first such
batch on. So it need not be read, which waits for the device, after each batch.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from pipeline.training.callbacks.step_callback import StepCallback
from pipeline.training.input.training_input import Split, TrainingInput
from sluice.errors import NodeError

# Executions after which their losses are read.
_EVERY = 16
# In the message of metrics such as AUC.
_NOT_A_PROBABILITY = "predictions must be"


class StopOnNonFiniteLoss(StepCallback):
    """Raises a ``NodeError`` when the loss is NaN or infinite.

    Must come before all callbacks that save weights. All workers see the same loss.
    """

    def __init__(self, training_input: TrainingInput) -> None:
        super().__init__()
        self._input = training_input
        self._epoch, self._split = 0, "train"
        self._batches = range(1)  # Of the execution.
        self._losses: list[tuple[range, Any]] = []

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self._epoch, self._split = epoch, "train"

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        self._batches = range(batch, batch + 1)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self._batches = range(self._batches.start, batch + 1)
        # With parameter servers the logs are still to come.
        if isinstance(logs, Mapping) and "loss" in logs:
            self._losses.append((self._batches, logs["loss"]))
        if len(self._losses) >= _EVERY:
            self.check()

    def on_test_begin(self, logs: Any = None) -> None:
        self.check()
        self._split = "eval"

    on_test_batch_begin = on_train_batch_begin
    on_test_batch_end = on_train_batch_end

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.check()
        # With parameter servers there are no losses of batches.
        if not np.isfinite(loss := float((logs or {}).get("loss", 0.0))):
            raise self._error(self._batches, f"the loss is {loss}")

    def check(self) -> None:
        """Reads the losses, which waits for the device; call it before a save.

        Raises:
          NodeError: one is not finite.
        """
        losses, self._losses = self._losses, []
        if losses and not np.isfinite(float(losses[-1][1])):
            values = [(batches, float(loss)) for batches, loss in losses]
            batches, loss = next(item for item in values if not np.isfinite(item[1]))
            raise self._error(batches, f"the loss is {loss}")

    def explain(self, error: tf.errors.InvalidArgumentError) -> None:
        """Raises a ``NodeError`` if an error of ``fit`` is due to such a prediction.

        AUC and its kind refuse predictions that are not finite, before the loss is in
        the logs.
        """
        weights = (weight.numpy() for weight in self.model.trainable_weights)
        if _NOT_A_PROBABILITY in str(error) and (
            self._not_finite(self._batches)
            or not all(np.isfinite(weight).all() for weight in weights)
        ):
            raise self._error(self._batches, "predictions are not finite") from error

    def _error(self, batches: range, what: str) -> NodeError:
        rate = float(self.model.optimizer.learning_rate.numpy())
        numbers = f"batch {batches.start + 1}"
        if len(batches) > 1:
            numbers = f"one of the batches {batches.start + 1} to {batches.stop}"
        validation = "validation of " if self._split == "eval" else ""
        inputs = "the features there are finite"
        hint = "a lower train.learning_rate, a warm-up, or train.clip_gradients"
        if names := self._not_finite(batches):
            inputs = f"not finite there: {', '.join(names)}"
            hint = "correct these features, or the preprocessing that made them"
        return NodeError(
            f"{what}, so training has stopped; {inputs}",
            where=f"{validation}epoch {self._epoch + 1}, {numbers}, learning rate "
            f"{rate:g}",
            hint=hint,
        )

    def _not_finite(self, batches: range) -> list[str]:
        """Returns the features that are not finite in batches of this worker."""
        split: Split = "eval" if self._split == "eval" else "train"
        found = self._input.read(split, self._epoch, batches.start)
        names = {
            name
            for features, *_ in itertools.islice(found, len(batches))
            for name, value in features.items()
            if np.issubdtype(value.dtype, np.floating) and not np.isfinite(value).all()
        }
        return sorted(names)


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
