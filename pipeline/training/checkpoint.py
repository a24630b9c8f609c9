"""Checkpoints of a training, from which it resumes after a stop or a kill.

A checkpoint has the weights, the optimizer, the states of the random generators, the
training metrics, and ``TrainingState``: one ``tf.train.Checkpoint``, of which the last
two are kept. It is saved at the end of an epoch, during long epochs, and when a stop is
requested. A restore first reads every byte and compares checksums. If a file is
damaged, the checkpoint before it is used, or training starts from scratch.

After a kill, everything since the last checkpoint is repeated; after a stop, nothing
is. A resumed training continues as if it had not been interrupted: with ``train.
deterministic`` on one device its history and weights are equal. Replicas resume with
the mean of their moving averages. Random numbers of operations like
``tf.random.uniform`` are not restored, those of Keras layers and of the
``tf.random.Generator`` of a layer are.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from pipeline.training.callbacks.non_finite_loss import StopOnNonFiniteLoss
from pipeline.training.callbacks.step_callback import StepCallback
from pipeline.training.models.published_weights import refresh_normalization
from pipeline.training.strategy.agreement import Agreement
from pipeline.training.strategy.task_process import beat
from pipeline.training.training_state import TrainingState, read_metrics, write_metrics
from sluice import interrupt, progress
from sluice.errors import NodeError

# Maximum share of the time spent on saving at the end of short epochs.
SHARE_OF_TIME = 0.02
# Maximum time between checkpoints during an epoch.
LONG_EPOCH_S = 600.0
_KEPT = 2
# The state's name in a checkpoint.
_STATE = "state/.ATTRIBUTES/py_state"


@dataclass(frozen=True)
class CheckpointSettings:
    """Settings of ``Checkpoint``.

    Attributes:
      directory: path or ``gs://`` address, used by this training only; created if
        missing. None: no checkpoints are written.
      saved_to: where they are written instead, by other workers than the chief: all
        must save, since they read the variables together.
    """

    directory: str | None
    epochs: int
    steps_per_epoch: int
    saved_to: str | None = None


class Checkpoint(StepCallback):
    """Keras callback that saves checkpoints, and stops ``fit`` on request.

    Must be the last of the callbacks: it saves the state that the others have after an
    epoch. With several workers, all save at the same steps.

    Args:
      model: built and compiled; may be compiled again between two calls of ``fit``.
      callbacks: the others, one of them a ``History``.
    """

    def __init__(
        self,
        settings: CheckpointSettings,
        model: tf.keras.Model,
        callbacks: Sequence[tf.keras.callbacks.Callback],
    ) -> None:
        super().__init__()
        self.set_model(model)
        self._settings = settings
        self._callbacks = callbacks
        self._agreement = Agreement(model.distribute_strategy)
        self._state = TrainingState()
        self._random = _random_generators(model)
        self._checkpoint = tf.train.Checkpoint(
            model=model, state=self._state, random=self._random
        )
        self._manager = settings.directory and tf.train.CheckpointManager(
            self._checkpoint, settings.saved_to or settings.directory, max_to_keep=_KEPT
        )
        self._found: str | None = None
        self._is_restored = False
        self._repeats_batch = False
        self._saved_at_s = time.monotonic()
        self._cost_s = 0.0

    @property
    def phase(self) -> int:
        """Number of the phase of ``fit_model``."""
        return self._state.phase

    @property
    def is_complete(self) -> bool:
        """Whether no epoch is left, or training has stopped early."""
        return self._state.epoch == self._settings.epochs

    @property
    def position(self) -> tuple[int, int]:
        """Numbers of completed epochs, and of batches of the next one to skip."""
        # Keras needs a batch in each epoch: the last one is repeated and its effect
        # undone if a stop came later, in the validation.
        return self._state.epoch, min(
            self._state.batch, self._settings.steps_per_epoch - 1
        )

    def find(self) -> bool:
        """Reads the position of the newest intact checkpoint; True if there is one."""
        for path in _newest_first(self._settings.directory):
            damage = _damage(path)
            if damage is None:
                reader = tf.train.Checkpoint(state=self._state)
                reader.restore(path).expect_partial()
                self._found = path
                return True
            name = path.rpartition("/")[2]
            line = f"checkpoint {name} is damaged and not used: {damage}"
            progress.report(event="checkpoint_damaged", line=line)
        return False

    def begin_phase(self, number: int) -> None:
        """Notes the phase of the following checkpoints, and restores one of this phase.

        The model must be compiled as in this phase. Callbacks and metrics are restored
        when ``fit`` begins.

        Raises:
          NodeError: the checkpoint is of another model.
        """
        if self._found is not None and not self._is_restored and number == self.phase:
            self._restore(self._found)
            self._is_restored = True
            epoch, epochs = self._state.epoch, self._settings.epochs
            line = f"restored: {_describe(self._state, epochs)}"
            progress.report(event="restored", line=line, epoch=epoch, epochs=epochs)
        self._state.phase = number

    def maybe_load_initial_counters_from_ckpt(
        self, steps_per_epoch: int, initial_epoch: int, mode: Any = None
    ) -> tuple[int, int]:
        """Returns where ``fit`` begins; called by Keras.

        Keras has no public way to begin within an epoch (tf_keras 2.16 and 2.21). Its
        BackupAndRestore uses this one, the model's ``_training_state``.
        """
        return self.position

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        self.model._training_state = self
        self._repeats_batch = self._state.batch > self.position[1]
        self._state.write_callbacks(self._callbacks)

    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:
        self.model._training_state = None
        # The next phase continues with it.
        self._state.read_callbacks(self._callbacks)

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        if self._state.metrics:
            write_metrics(self.model, self._state.metrics)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        if self._repeats_batch:
            self._repeats_batch = False
            self._checkpoint.restore(self._found)
            write_metrics(self.model, self._state.metrics)
        self._state.batch = batch + 1
        age_s = time.monotonic() - self._saved_at_s
        stop, save = self._agreement.any_at_step(
            interrupt.requested(), age_s >= LONG_EPOCH_S
        )
        if stop or save:
            self._state.metrics = self._read_metrics()
            self._save()
        if stop:
            self._stop()

    def on_test_begin(self, logs: dict[str, Any] | None = None) -> None:
        # The validation uses the same variables.
        self._state.metrics = self._read_metrics()

    def on_test_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        stop, _ = self._agreement.any_at_step(interrupt.requested(), False)
        if stop:
            self._save()
            self._stop()

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        done = self.model.stop_training or epoch + 1 == self._settings.epochs
        self._state.epoch = self._settings.epochs if done else epoch + 1
        self._state.batch, self._state.metrics = 0, []
        for generator in self._random:
            # Replicas with fewer examples in the last batch have drawn fewer numbers;
            # the state of one replica is saved for all.
            generator.reset(generator.state.numpy())
        age_s = time.monotonic() - self._saved_at_s
        stop, save = self._agreement.any(
            interrupt.requested(), done or age_s * SHARE_OF_TIME >= self._cost_s
        )
        if stop or save:
            self._save()
        if stop:
            self._stop()

    def _stop(self) -> None:
        epoch, epochs = self._state.epoch, self._settings.epochs
        line = f"stopped: {_describe(self._state, epochs)}"
        progress.report(event="stopped", line=line, epoch=epoch, epochs=epochs)
        raise interrupt.Interrupted

    def _read_metrics(self) -> list[Any]:
        strategy = self.model.distribute_strategy
        if isinstance(strategy, tf.distribute.ParameterServerStrategy):
            # Steps that were scheduled may still be running.
            tf.distribute.coordinator.ClusterCoordinator(strategy).join()
        return read_metrics(self.model)

    def _save(self) -> None:
        """Writes a checkpoint; a failure is reported.

        Raises:
          NodeError: the loss is not finite, so the weights are of no use.
        """
        if not self._manager:
            return
        for callback in self._callbacks:
            if isinstance(callback, StopOnNonFiniteLoss):
                callback.check()
        started_s = time.monotonic()
        self._state.shapes = _shapes(self.model)
        self._state.read_callbacks(self._callbacks)
        try:
            self._manager.save()
        except (tf.errors.OpError, OSError) as error:
            reason = str(error).partition("\n")[0]
            progress.report(
                event="checkpoint_not_saved", line=f"checkpoint not saved: {reason}"
            )
        self._saved_at_s = time.monotonic()
        self._cost_s = self._saved_at_s - started_s

    def _restore(self, path: str) -> None:
        try:
            with self.model.distribute_strategy.scope():
                self.model.optimizer.build(self.model.trainable_variables)
            self._checkpoint.restore(path).assert_existing_objects_matched()
            refresh_normalization(self.model)
            if self._state.shapes != _shapes(self.model):
                raise ValueError("the number of weights differs")
        except (ValueError, AssertionError) as error:
            raise NodeError(
                "the checkpoint is of another model",
                where=path,
                actual=str(error).partition("\n")[0],
                hint="sluice run --no-cache, which trains from scratch",
            ) from error


def describe_position(directory: str, epochs: int) -> str | None:
    """Returns where a training would resume; None if there is no intact checkpoint.

    Uses no device.
    """
    for path in _newest_first(directory):
        if _damage(path) is None:
            state = TrainingState()
            reader = tf.train.load_checkpoint(path)
            state.deserialize(reader.get_tensor(_STATE))
            return _describe(state, epochs)
    return None


def _describe(state: TrainingState, epochs: int) -> str:
    if state.epoch == epochs:
        return "no epoch is left, only the export"
    place = f"training resumes with epoch {state.epoch + 1} of {epochs}"
    return f"{place}, after batch {state.batch}" if state.batch else place


def _newest_first(directory: str | None) -> list[str]:
    # The manager's own list is empty after the clock has gone backwards.
    if directory is None:
        return []
    indexes = tf.io.gfile.glob(f"{directory}/ckpt-*.index")
    paths = [path.removesuffix(".index") for path in indexes]
    return sorted(paths, key=lambda path: int(path.rpartition("-")[2]), reverse=True)


def _damage(path: str) -> str | None:
    """Reads a whole checkpoint; returns the error if a checksum is wrong, or None."""
    try:
        reader = tf.train.load_checkpoint(path)
        for name in reader.get_variable_to_shape_map():
            beat()
            reader.get_tensor(name)
    except Exception as error:  # Its type depends on the damaged part.
        return str(error).partition("\n")[0]
    return None


def _random_generators(model: tf.keras.Model) -> list[tf.random.Generator]:
    """Returns the random generators of Keras' layers.

    Keras leaves them out of a model's checkpoint on purpose, and has no public way to
    them (tf_keras 2.16 and 2.21). Other ``rng_type`` have none.
    """
    random = [getattr(layer, "_random_generator", None) for layer in model.submodules]
    found = [getattr(item, "_generator", None) for item in random]
    return [generator for generator in found if generator is not None]


def _shapes(model: tf.keras.Model) -> list[list[int]]:
    return [list(weight.shape) for weight in model.weights]
