"""Checkpoints of a training, from which it resumes after a stop or a kill.

A checkpoint has the weights, the optimizer, the history, and the state of early
stopping with its best weights: one ``tf.train.Checkpoint``, of which the last two are
kept. It is saved at the end of an epoch, during long epochs, and when a stop is
requested. A restore first reads every byte and compares checksums. If a file is
damaged, the checkpoint before it is used, or training starts from scratch.

After a kill, everything since the last checkpoint is repeated. After a stop request,
nothing is, except the last batch of an epoch whose batches were all done, because Keras
cannot run an epoch without batches.

The order of the examples is reproduced (it is a function of seed and epoch), and so are
the weights, if the model uses no random numbers and the machine computes
deterministically. Dropout masks are not: their state
is in TensorFlow's kernels. Replicas resume with the mean of their moving averages. In
the history, the training metrics of an interrupted epoch cover only the batches after
the interruption; its validation metrics are complete.
"""

from __future__ import annotations

import io
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from pipeline.training.strategy.agreement import Agreement
from sluice import interrupt, progress
from sluice.errors import NodeError

# Maximum share of the time spent on saving at the end of short epochs.
SHARE_OF_TIME = 0.02
# Maximum time between checkpoints during an epoch.
LONG_EPOCH_S = 600.0
_KEPT = 2
_FACTS = ("epoch", "batch", "history", "remembered", "shapes")
_REMEMBERED = ("wait", "best", "best_epoch", "stopped_epoch")


class Checkpoint(tf.keras.callbacks.Callback):
    """Keras callback that saves checkpoints, and stops ``fit`` on request.

    Must be the last of the callbacks: it saves the state that ``history`` and
    ``early_stopping`` have after an epoch.

    Attributes:
      epoch: number of completed epochs.
      batch: number of completed batches of the next epoch.

    Args:
      directory: used by this training only; created if missing.
      model: a compiled model.
      epochs: maximum number of epochs.
      history: restored when training resumes.
      early_stopping: restored too; None if it is not used.
      saved_to: where this worker saves, if it is not the chief: all must save, since
        replicas' values are gathered, but only one file is of use.
    """

    def __init__(
        self,
        directory: Path,
        model: tf.keras.Model,
        epochs: int,
        history: tf.keras.callbacks.History,
        early_stopping: tf.keras.callbacks.EarlyStopping | None = None,
        *,
        saved_to: Path | None = None,
    ) -> None:
        super().__init__()
        # Otherwise Keras waits for the device and fetches metrics after each batch, and
        # refuses this callback with parameter servers.
        self._supports_tf_logs = True
        self.set_model(model)
        self._directory = directory
        self._epochs = epochs
        self._history = history
        self._early_stopping = early_stopping
        self._state = _State()
        self._checkpoint = tf.train.Checkpoint(model=model, state=self._state)
        self._manager = tf.train.CheckpointManager(
            self._checkpoint, str(saved_to or directory), max_to_keep=_KEPT
        )
        self._agreement = Agreement(model.distribute_strategy)
        self._cut = False
        self._saved_at_s = time.monotonic()
        self._cost_s = 0.0

    @property
    def epoch(self) -> int:
        return self._state.epoch

    @property
    def batch(self) -> int:
        return self._state.batch

    def restore(self) -> bool:
        """Restores model and optimizer; the callbacks follow when ``fit`` begins.

        Returns:
          Whether there was an intact checkpoint. If not, nothing is changed.

        Raises:
          NodeError: the checkpoint is of another model.
        """
        for path in _newest_first(self._directory):
            damage = _damage(path)
            if damage is None:
                self._restore(path)
                return True
            line = f"checkpoint {Path(path).name} is damaged and not used: {damage}"
            _report("checkpoint_damaged", line)
        return False

    def report_restored(self) -> None:
        """Reports and logs where training resumes."""
        line = f"restored: {self._position()}"
        _report("restored", line, epoch=self.epoch, epochs=self._epochs)

    def position(self, steps_per_epoch: int) -> tuple[int, int]:
        """Returns the epoch and the batch to go on with, both from 0."""
        # Keras cannot run an epoch without batches: the last one is repeated.
        self._state.batch = min(self.batch, steps_per_epoch - 1)
        return self.epoch, self.batch

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        self._running_epoch, self._cut = self.epoch, self.batch > 0
        self._batches_before = self._batches = self.batch
        self._history.history = {
            name: list(values) for name, values in self._state.history.items()
        }
        if self._early_stopping is not None and self._state.remembered:
            for name, value in self._state.remembered.items():
                setattr(self._early_stopping, name, value)
            self._early_stopping.best_weights = self._state.best_weights or None

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        self._running_epoch = epoch

    def on_train_batch_end(
        self, batch: int, logs: dict[str, Any] | None = None
    ) -> None:
        self._batches = self._batches_before + batch + 1
        is_due = time.monotonic() - self._saved_at_s >= LONG_EPOCH_S
        stop, save = self._agreement.any_at_step(interrupt.requested(), is_due)
        if stop:
            self._stop(self._running_epoch, self._batches)
        if save:
            self._save(self._running_epoch, self._batches)

    def on_test_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        stop, _ = self._agreement.any_at_step(interrupt.requested(), False)
        if stop:
            self._stop(self._running_epoch, self._batches)

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        done = self.model.stop_training or epoch + 1 == self._epochs
        self._batches_before = 0
        next_epoch = self._epochs if done else epoch + 1
        age_s = time.monotonic() - self._saved_at_s
        is_due = age_s * SHARE_OF_TIME >= self._cost_s
        stop, save = self._agreement.any(interrupt.requested(), is_due)
        if stop:
            self._stop(next_epoch, 0)
        elif done or self._cut or save:
            self._save(next_epoch, 0, required=self._cut)

    def _stop(self, epoch: int, batch: int) -> None:
        self._save(epoch, batch)
        line = f"stopped: {self._position()}"
        _report("stopped", line, epoch=epoch, epochs=self._epochs)
        # Another worker may have been asked to.
        raise interrupt.Interrupted

    def _position(self) -> str:
        if self.epoch == self._epochs:
            return "training is complete"
        place = f"training resumes with epoch {self.epoch + 1} of {self._epochs}"
        return f"{place}, after batch {self.batch}" if self.batch else place

    def _save(self, epoch: int, batch: int, *, required: bool = False) -> None:
        """Writes a checkpoint; a failure is reported, and raised if ``required``."""
        started_s = time.monotonic()
        self._state.copy_from(self.model, self._history, self._early_stopping)
        self._state.epoch, self._state.batch = epoch, batch
        try:
            self._manager.save()
        except (tf.errors.OpError, OSError) as error:
            if required:
                raise
            reason = str(error).partition("\n")[0]
            _report("checkpoint_not_saved", f"checkpoint not saved: {reason}")
        self._saved_at_s = time.monotonic()
        self._cost_s = self._saved_at_s - started_s

    def _restore(self, path: str) -> None:
        try:
            if self.model.built:
                with self.model.distribute_strategy.scope():
                    self.model.optimizer.build(self.model.trainable_variables)
            status = self._checkpoint.restore(path)
            status.assert_existing_objects_matched()
            if self.model.built and self._state.shapes != _shapes(self.model):
                raise ValueError("the number of weights differs")
        except (ValueError, AssertionError) as error:
            raise NodeError(
                "the checkpoint is of another model",
                where=path,
                actual=str(error).partition("\n")[0],
                hint="sluice run, which trains from scratch",
            ) from error


class _State(tf.train.experimental.PythonState):
    """State in a checkpoint that is not a variable of model or optimizer."""

    def __init__(self) -> None:
        self.epoch = 0
        self.batch = 0
        self.history: dict[str, list[float]] = {}
        self.remembered: dict[str, Any] = {}
        self.shapes: list[list[int]] = []
        self.best_weights: list[np.ndarray] = []

    def copy_from(self, model: Any, history: Any, early_stopping: Any | None) -> None:
        """Copies the state of model and callbacks."""
        self.shapes = _shapes(model)
        self.history = {
            name: [float(value) for value in values]
            for name, values in history.history.items()
        }
        if early_stopping is not None:
            self.remembered = {
                name: np.asarray(getattr(early_stopping, name)).item()
                for name in _REMEMBERED
            }
            self.best_weights = early_stopping.best_weights or []

    def serialize(self) -> bytes:
        facts = {name: getattr(self, name) for name in _FACTS}
        buffer = io.BytesIO()
        np.savez(buffer, np.array(json.dumps(facts)), *self.best_weights)
        return buffer.getvalue()

    def deserialize(self, string_value: bytes) -> None:
        arrays = list(np.load(io.BytesIO(string_value), allow_pickle=False).values())
        for name, value in json.loads(arrays[0].item()).items():
            setattr(self, name, value)
        self.best_weights = arrays[1:]


def _newest_first(directory: Path) -> list[str]:
    # The manager's own list is empty after the clock has gone backwards.
    paths = [str(index.with_suffix("")) for index in directory.glob("ckpt-*.index")]
    return sorted(paths, key=lambda path: int(path.rpartition("-")[2]), reverse=True)


def _damage(path: str) -> str | None:
    """Reads a whole checkpoint; returns the error if a checksum is wrong, or None."""
    try:
        reader = tf.train.load_checkpoint(path)
        for name in reader.get_variable_to_shape_map():
            reader.get_tensor(name)
    except Exception as error:  # Its type depends on the damaged part.
        return str(error).partition("\n")[0]
    return None


def _shapes(model: tf.keras.Model) -> list[list[int]]:
    return [list(weight.shape) for weight in model.weights]


def _report(event: str, line: str, **facts: Any) -> None:
    """Reports to the terminal and to the node's log."""
    progress.report(event=event, line=line, **facts)
    print(line, file=sys.stderr, flush=True)
