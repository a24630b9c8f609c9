"""Training step 3, fit: epochs with early stopping and checkpoints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tensorflow as tf

from pipeline.training.checkpoint import Checkpoint
from pipeline.training.input.training_input import TrainingInput
from pipeline.training.strategy.heartbeat import Heartbeat
from sluice import interrupt


@dataclass(frozen=True)
class FitSettings:
    """Settings of ``fit_model``.

    Attributes:
      epochs: maximum number.
      checkpoint_dir: for checkpoints, from which the next call resumes; None writes
        none. See ``pipeline.training.checkpoint``.
      saved_to: where checkpoints are written instead, by other workers than the chief.
    """

    epochs: int
    checkpoint_dir: Path | None = None
    saved_to: Path | None = None


def fit_model(
    model: tf.keras.Model,
    training_input: TrainingInput,
    settings: FitSettings,
    callbacks: Sequence[tf.keras.callbacks.Callback] = (),
) -> dict[str, list[float]]:
    """Trains a compiled model, or resumes its training.

    Args:
      model: the compiled model.
      training_input: the batches.
      settings: how long, and where checkpoints are.
      callbacks: those of ``pipeline.training.callbacks``.

    Returns:
      The values of each metric by epoch, including epochs before a resumption.

    Raises:
      Interrupted: a stop was requested; the checkpoint is written.
      NodeError: the checkpoint is of another model.
    """
    history = tf.keras.callbacks.History()
    callbacks = [Heartbeat(), *callbacks, history]
    stopping = tf.keras.callbacks.EarlyStopping
    early_stopping = next((c for c in callbacks if isinstance(c, stopping)), None)
    evaluation = training_input.eval()

    def fit(epoch: int, batch: int, until: int) -> None:
        model.fit(
            training_input.train(epoch, batch),
            steps_per_epoch=training_input.steps_per_epoch - batch,
            initial_epoch=epoch,
            epochs=until,
            validation_data=evaluation,
            validation_steps=training_input.eval_steps,
            callbacks=callbacks,
            verbose=0,
        )

    if settings.checkpoint_dir is None:
        fit(0, 0, until=settings.epochs)
        return history.history
    checkpoint = Checkpoint(
        settings.checkpoint_dir,
        model,
        settings.epochs,
        history,
        early_stopping,
        saved_to=settings.saved_to,
    )
    callbacks.append(checkpoint)

    with interrupt.cooperative():
        if checkpoint.restore():
            checkpoint.report_restored()
        if checkpoint.batch:
            epoch, batch = checkpoint.position(training_input.steps_per_epoch)
            fit(epoch, batch, until=epoch + 1)
            # At the end of ``fit``, early stopping has restored the best weights.
            checkpoint.restore()
        fit(checkpoint.epoch, 0, until=settings.epochs)
    return history.history
