"""Training step 4, fit: epochs with early stopping and checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from pipeline.training.callbacks.step_callback import StepCallback
from pipeline.training.checkpoint import Checkpoint, CheckpointSettings
from pipeline.training.input.training_input import TrainingInput
from pipeline.training.strategy.task_process import beat, set_fitting
from sluice import interrupt


@dataclass(frozen=True)
class Phase:
    """Epochs that are trained with the model as it is compiled at their beginning.

    Attributes:
      until_epoch: number of completed epochs at its end.
      prepare: called before it; may change which layers are trained, and must compile
        the model then. A resumed training calls those of the earlier phases too.
    """

    until_epoch: int
    prepare: Callable[[], None] = lambda: None


def fit_model(
    model: tf.keras.Model,
    training_input: TrainingInput,
    epochs: int,
    callbacks: Sequence[tf.keras.callbacks.Callback] = (),
    phases: Sequence[Phase] | None = None,
    *,
    checkpoint_dir: str | None = None,
    saved_to: str | None = None,
) -> dict[str, list[float]]:
    """Trains a compiled model, or resumes its training.

    Early stopping ends the training in any phase. Where it restores the best weights,
    each phase begins with the best so far.

    Args:
      model: the compiled model.
      training_input: what it is trained on.
      epochs: completed epochs at the end of the last phase.
      callbacks: called in this order, before the history and the checkpoint.
      phases: None: only one.
      checkpoint_dir: path or ``gs://`` address for checkpoints, from which the next
        call resumes; None writes none. See ``pipeline.training.checkpoint``.
      saved_to: where checkpoints are written instead, by other workers than the chief.

    Returns:
      The values of each metric by epoch, including epochs before a resumption.

    Raises:
      Interrupted: a stop was requested; the checkpoint is written.
      NodeError: the checkpoint is of another model.
    """
    history = tf.keras.callbacks.History()
    callbacks = [Heartbeat(), *callbacks, history]
    settings = CheckpointSettings(
        checkpoint_dir, epochs, training_input.steps_per_epoch, saved_to
    )
    checkpoint = Checkpoint(settings, model, callbacks)
    evaluation = training_input.eval()
    with interrupt.cooperative():
        checkpoint.find()
        for number, phase in enumerate(phases or [Phase(epochs)]):
            phase.prepare()
            if number < checkpoint.phase:
                continue
            checkpoint.begin_phase(number)
            epoch, batch = checkpoint.position
            if batch:
                # Keras creates the metrics, to be restored, with the first batch.
                model.evaluate(evaluation, steps=1, verbose=0)
            model.fit(
                training_input.train(epoch, batch),
                steps_per_epoch=training_input.steps_per_epoch,
                initial_epoch=epoch,
                epochs=phase.until_epoch,
                validation_data=evaluation,
                validation_steps=training_input.eval_steps,
                callbacks=[*callbacks, checkpoint],
                verbose=0,
            )
            if checkpoint.is_complete:
                break
    return history.history


class Heartbeat(StepCallback):
    """Tells the supervisor of steps, and when ``fit`` polls for requests to stop."""

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        set_fitting(True)

    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:
        set_fitting(False)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        beat()

    def on_test_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        beat()
