"""Checkpoints of a training: Keras' ``BackupAndRestore``, and what it leaves out.

Keras saves the weights, the optimizer and the position. Beside them this keeps the
history, and what early stopping and plateaus have seen, which Keras resets when ``fit``
begins. A checkpoint is saved at the end of each epoch, and within long ones; a resumed
training repeats what came after it. Each phase of a fine-tuning has a folder of its
own, since its optimizer has other variables.
"""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from pipeline.training.models.published_weights import refresh_normalization
from pipeline.training.progress import ReportProgress
from sluice.errors import NodeError
from sluice.patches.keras import save_checkpoint, take_any_strategy

# Executions, each of one step or several, between two checkpoints within an epoch.
SAVE_EVERY = 1000
_PHASES = 2
# The state's name in a checkpoint.
_STATE = "model/training_state/.ATTRIBUTES/py_state"
# What callbacks change from epoch to epoch.
_ATTRIBUTES = {
    tf.keras.callbacks.History: ("history",),
    tf.keras.callbacks.EarlyStopping: ("wait", "best", "best_epoch", "stopped_epoch"),
    tf.keras.callbacks.ReduceLROnPlateau: ("wait", "best", "cooldown_counter"),
    ReportProgress: ("epoch_facts", "time_to_first_step_s"),
}


@dataclass(frozen=True)
class Position:
    """Where a training begins.

    Attributes:
      phase: number of the phase of ``fit_model``.
      epoch: number of completed epochs; all, if training has stopped early.
      batch: number of completed batches of the next epoch.
    """

    phase: int = 0
    epoch: int = 0
    batch: int = 0

    def describe(self, epochs: int) -> str:
        """Returns it in words."""
        if self.epoch == epochs:
            return "no epoch is left, only the export"
        place = f"training resumes with epoch {self.epoch + 1} of {epochs}"
        return f"{place}, after batch {self.batch}" if self.batch else place


def read_position(directory: str) -> Position | None:
    """Returns where a training resumes; None without a checkpoint. Uses no device.

    Raises:
      NodeError: the checkpoint is damaged.
    """
    for phase in reversed(range(_PHASES)):
        path = tf.train.latest_checkpoint(f"{directory}/{phase}/chief")
        if path:
            state = TrainingState()
            with _restoring(path):
                state.deserialize(tf.train.load_checkpoint(path).get_tensor(_STATE))
            return Position(phase, state.epoch, state.batch)
    return None


class TrainingState(tf.train.experimental.PythonState):
    """What ``BackupAndRestore`` leaves out.

    Attributes:
      epoch: see ``Position``.
      batch: see ``Position``.
      callbacks: attributes of each callback that has a state.
      best_weights: those that early stopping keeps.
    """

    def __init__(self) -> None:
        self.epoch = 0
        self.batch = 0
        self.callbacks: list[dict[str, Any]] = []
        self.best_weights: list[np.ndarray] = []

    def serialize(self) -> bytes:
        facts = {
            "epoch": self.epoch,
            "batch": self.batch,
            "callbacks": self.callbacks,
        }
        buffer = io.BytesIO()
        np.savez(buffer, np.array(json.dumps(facts, default=float)), *self.best_weights)
        return buffer.getvalue()

    def deserialize(self, string_value: bytes) -> None:
        facts, *self.best_weights = np.load(io.BytesIO(string_value)).values()
        for name, value in json.loads(facts.item()).items():
            setattr(self, name, value)


class Checkpoint(tf.keras.callbacks.BackupAndRestore):
    """Keras callback that restores and saves checkpoints of a phase.

    Must be the last of the callbacks: it saves the state that the others have after an
    epoch. Any strategy will do, also those that Keras does not list.

    Args:
      directory: of the phase, a path or ``gs://`` address; created if missing.
      epochs: completed epochs at the end of the training.
      callbacks: the others.
    """

    def __init__(
        self,
        directory: str,
        epochs: int,
        callbacks: Sequence[tf.keras.callbacks.Callback],
    ) -> None:
        super().__init__(directory, save_freq=SAVE_EVERY, delete_checkpoint=False)
        take_any_strategy(self)
        self._epochs, self._callbacks = epochs, callbacks
        self._state = TrainingState()

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        model = self.model
        if isinstance(model.distribute_strategy, tf.distribute.ParameterServerStrategy):
            self.save_freq = "epoch"  # Their steps may still run when they are counted.
        model.training_state = self._state  # A model's attributes are saved with it.
        with model.distribute_strategy.scope():
            model.optimizer.build(model.trainable_variables)
        with _restoring(self.backup_dir):
            super().on_train_begin()
        refresh_normalization(model)
        pairs = zip(_stateful(self._callbacks), self._state.callbacks, strict=False)
        for (callback, _), values in pairs:  # Without a checkpoint there are none.
            vars(callback).update(values)
            if isinstance(callback, tf.keras.callbacks.EarlyStopping):
                callback.best_weights = self._state.best_weights or None
        self._keep_callbacks()

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        super().on_epoch_begin(epoch)
        self._state.epoch = int(epoch)  # NumPy's, after a restore.

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        if batch + 1 == self.params["steps"]:
            return  # The end of the epoch saves.
        self._state.batch = int(batch) + 1
        # Keras notes the first step of an execution, also when it saves after the last.
        super().on_train_batch_begin(batch)
        super().on_train_batch_end(batch)

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        stopped = self.model.stop_training
        self._state.epoch = self._epochs if stopped else int(epoch) + 1
        self._state.batch = 0
        self._keep_callbacks()
        # From this ``fit`` takes its first epoch: after a stop there is none.
        last = self.params["epochs"] - 1 if stopped else epoch
        super().on_epoch_begin(last)
        super().on_train_batch_begin(self.params["steps"] - 1)
        save_checkpoint(self, last)

    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:
        super().on_train_end(logs)
        del self.model.training_state  # Otherwise it would be exported.

    def _keep_callbacks(self) -> None:
        self._state.callbacks = [
            {name: getattr(callback, name) for name in names}
            for callback, names in _stateful(self._callbacks)
        ]
        for callback in self._callbacks:
            if isinstance(callback, tf.keras.callbacks.EarlyStopping):
                self._state.best_weights = callback.best_weights or []


@contextlib.contextmanager
def _restoring(path: str) -> Iterator[None]:
    """Explains errors of reading a checkpoint.

    Raises:
      NodeError: it cannot be read, or is of another model.
    """
    try:
        yield
    except Exception as error:  # Its type depends on the damaged part.
        reason = str(error).partition("\n")[0]
        raise NodeError(
            f"the checkpoint cannot be restored: {reason}",
            where=path,
            hint="sluice run NAME --force Trainer trains from scratch",
        ) from error


def _stateful(callbacks: Sequence[Any]) -> list[tuple[Any, tuple[str, ...]]]:
    return [
        (callback, names)
        for callback in callbacks
        for kind, names in _ATTRIBUTES.items()
        if isinstance(callback, kind)
    ]
