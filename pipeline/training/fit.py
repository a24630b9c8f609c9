"""Training step 4, fit: epochs with early stopping and checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import tensorflow as tf

from pipeline.training.checkpoint import Checkpoint, Position, read_position
from pipeline.training.input.training_input import TrainingInput
from sluice import progress


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
) -> dict[str, list[float]]:
    """Trains a compiled model, or resumes its training.

    Early stopping ends the training in any phase. Where it restores the best weights,
    each phase begins with the best so far.

    Args:
      model: the compiled model.
      training_input: what it is trained on.
      epochs: completed epochs at the end, which phases cannot exceed.
      callbacks: called in this order, before the history and the checkpoint.
      phases: at most two; None: only one.
      checkpoint_dir: path or ``gs://`` address for checkpoints, used by this training
        only, from which the next call resumes; None writes none.

    Returns:
      The values of each metric by epoch, including epochs before a resumption.

    Raises:
      NodeError: the checkpoint cannot be restored.
    """
    history = tf.keras.callbacks.History()
    callbacks = [*callbacks, history]
    restored = read_position(checkpoint_dir) if checkpoint_dir else None
    begin = restored or Position()
    if restored:
        progress.report(
            event="restored",
            line=f"restored: {restored.describe(epochs)}",
            epoch=restored.epoch,
            epochs=epochs,
        )
    evaluation = training_input.eval()
    for number, phase in enumerate(phases or [Phase(epochs)]):
        phase.prepare()
        if number < begin.phase:
            continue
        checkpoints = []
        if checkpoint_dir:
            folder = f"{checkpoint_dir}/{number}"
            checkpoints = [Checkpoint(folder, epochs, callbacks)]
        model.fit(
            training_input.train(begin.epoch, begin.batch),
            steps_per_epoch=training_input.steps_per_epoch,
            initial_epoch=begin.epoch,
            epochs=min(phase.until_epoch, epochs),
            validation_data=evaluation,
            validation_steps=training_input.eval_steps,
            callbacks=[*callbacks, *checkpoints],
            verbose=0,
        )
        if model.stop_training or begin.epoch <= epochs <= phase.until_epoch:
            break
        begin = Position(number, phase.until_epoch)
    return history.history
