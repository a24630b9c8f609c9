"""Checkpoints of a training: weights, optimizer, position and the state of callbacks.

Keras' ``BackupAndRestore`` leaves out the history, and what early stopping and plateaus
have seen, which are reset when ``fit`` begins. A checkpoint is saved at the end of each
epoch, and within long ones; a resumed training repeats what came after it. Each phase
of a fine-tuning has a folder of its own, since its optimizer has other variables.
"""

from __future__ import annotations

import contextlib
import io
import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from pipeline.training.callbacks import StepCallback
from pipeline.training.keras_of import as_tf, is_keras_3, keras_of
from pipeline.training.models.published_weights import refresh_normalization
from pipeline.training.progress import ReportProgress
from sluice.errors import NodeError

# Executions, each of one step or several, between two checkpoints within an epoch.
SAVE_EVERY = 1000
_PHASES = 2
# The state's name in a checkpoint.
_STATE = "state/.ATTRIBUTES/py_state"
# What Keras' callbacks change from epoch to epoch.
_ATTRIBUTES = {
    "History": ("history",),
    "EarlyStopping": ("wait", "best", "best_epoch", "stopped_epoch"),
    "ReduceLROnPlateau": ("wait", "best", "cooldown_counter"),
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
    """What a checkpoint has beside the variables.

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


class Checkpoint(StepCallback):
    """Keras callback that restores and saves checkpoints of a phase.

    Must be the last of the callbacks: it saves the state that the others have after an
    epoch. All workers restore that of the first, and all must save, since a variable
    may have a part in each of them.

    Args:
      directory: of the phase, a path or ``gs://`` address; created if missing.
      epochs: completed epochs at the end of the training.
      callbacks: the others.
    """

    def __init__(self, directory: str, epochs: int, callbacks: Sequence[Any]) -> None:
        super().__init__()
        self._directory, self._epochs = directory, epochs
        self._callbacks = callbacks
        self._state = TrainingState()

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        model = self.model
        strategy = model.distribute_strategy
        self._save_every = SAVE_EVERY
        if isinstance(strategy, tf.distribute.ParameterServerStrategy):
            self._save_every = 0  # Their steps may still run when they are counted.
        with strategy.scope():
            model.optimizer.build(model.trainable_variables)
        saved: dict[str, Any] = {"model": model, "optimizer": model.optimizer}
        if is_keras_3(model):
            saved = {"variables": as_tf([*model.variables, *model.optimizer.variables])}
        self._checkpoint = tf.train.Checkpoint(**saved, state=self._state)
        chief = f"{self._directory}/chief"
        with _restoring(self._directory):
            self._checkpoint.restore(tf.train.latest_checkpoint(chief))
        if not strategy.extended.should_checkpoint:
            self._not_kept = tempfile.TemporaryDirectory()
            chief = self._not_kept.name
        self._manager = tf.train.CheckpointManager(
            self._checkpoint, chief, max_to_keep=1
        )
        refresh_normalization(model)
        pairs = zip(self._stateful(), self._state.callbacks, strict=False)
        for (callback, _), values in pairs:  # Without a checkpoint there are none.
            vars(callback).update(values)
            if hasattr(callback, "best_weights"):
                callback.best_weights = self._state.best_weights or None
        self._keep_callbacks()

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        self._state.epoch, self._executions = epoch, 0
        # A resumed epoch begins with a later batch.
        self._first_batch = self._state.batch
        self._state.batch = 0

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self._executions += 1
        if batch + 1 == self.params["steps"]:
            return  # The end of the epoch saves.
        if self._save_every and self._executions % self._save_every == 0:
            self._state.batch = self._first_batch + int(batch) + 1
            self._manager.save()

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        stopped = self.model.stop_training
        self._state.epoch = self._epochs if stopped else int(epoch) + 1
        self._state.batch = 0
        self._keep_callbacks()
        self._manager.save()

    def _stateful(self) -> list[tuple[Any, tuple[str, ...]]]:
        """Returns the callbacks that have a state, with its attributes."""
        callbacks = keras_of(self.model).callbacks
        kinds = {getattr(callbacks, name): names for name, names in _ATTRIBUTES.items()}
        kinds[ReportProgress] = ("epoch_facts", "time_to_first_step_s")
        return [
            (callback, names)
            for callback in self._callbacks
            for kind, names in kinds.items()
            if isinstance(callback, kind)
        ]

    def _keep_callbacks(self) -> None:
        stateful = self._stateful()
        self._state.callbacks = [
            {name: getattr(callback, name) for name in names}
            for callback, names in stateful
        ]
        for callback, _ in stateful:
            if hasattr(callback, "best_weights"):
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
