"""Training step 4, fit: epochs with early stopping and checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.training.checkpoint import Checkpoint, Position, read_position
from pipeline.training.input.training_input import TrainingInput
from pipeline.training.keras_of import is_keras_3, keras_of
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
    model: Any,
    training_input: TrainingInput,
    epochs: int,
    callbacks: Sequence[Any] = (),
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
    history = keras_of(model).callbacks.History()
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
    evaluation, eval_steps = training_input.eval(), training_input.eval_steps
    for number, phase in enumerate(phases or [Phase(epochs)]):
        phase.prepare()
        if number < begin.phase:
            continue
        checkpoints = []
        if checkpoint_dir:
            folder = f"{checkpoint_dir}/{number}"
            checkpoints = [Checkpoint(folder, epochs, callbacks)]
        until = min(phase.until_epoch, epochs)
        # Keras begins with whole epochs: the rest of one is a ``fit`` of its own.
        for last in [begin.epoch + 1, until] if begin.batch else [until]:
            model.fit(
                training_input.train(begin.epoch, begin.batch),
                steps_per_epoch=training_input.steps_per_epoch - begin.batch,
                initial_epoch=begin.epoch,
                epochs=last,
                validation_data=evaluation,
                # With a number, Keras 3 looks for a batch after the last.
                validation_steps=None if is_keras_3(model) else eval_steps,
                callbacks=[*callbacks, *checkpoints],
                verbose=0,
            )
            if model.stop_training:
                break
            # One that has stopped early has completed all epochs.
            begin = Position(number, max(last, begin.epoch))
        if model.stop_training or begin.epoch >= epochs:
            break
    return history.history
