"""The callbacks of a training, in the order in which Keras calls them.

1. ``StopOnNonFiniteLoss``, before anything is saved.
2. ``LearningRateLog``, and the user's own, which may add metrics.
3. ``CheckWatched``, early stopping and reduce-on-plateau, which watch metrics.
4. TensorBoard.

After them come the progress, and those of ``fit_model``: the history and the
checkpoint.
"""

from __future__ import annotations

import os
from typing import Any

import tensorflow as tf

from pipeline.config.train import Callback, Train, Watching
from pipeline.training.build import load_function
from pipeline.training.callbacks.metrics import (
    CheckWatched,
    LearningRateLog,
    ReduceOnPlateau,
)
from pipeline.training.callbacks.non_finite_loss import StopOnNonFiniteLoss
from pipeline.training.input.training_input import TrainingInput
from sluice.errors import NodeError
from sluice.metric_names import direction_of

# The first steps are slower, as they trace and compile.
_FIRST_PROFILED_STEP = 10


def make_callbacks(
    train: Train, tensorboard_dir: str
) -> list[tf.keras.callbacks.Callback]:
    """Returns the callbacks, in order.

    Args:
      train: the section of the config.
      tensorboard_dir: path or address of TensorBoard's logs, which has the metrics of
        each epoch. Of several workers Keras keeps those of the first.

    Raises:
      NodeError: a function of the user returns no callback.
    """
    early_stopping, plateau = train.early_stopping, train.reduce_on_plateau
    tensorboard = train.tensorboard
    last_profiled_step = _FIRST_PROFILED_STEP + tensorboard.profile - 1
    callbacks = [
        StopOnNonFiniteLoss(),
        LearningRateLog(),
        *map(_own, train.callbacks),
        CheckWatched(train),
    ]
    if early_stopping:
        unfrozen = train.fine_tune and train.fine_tune.unfreeze_after
        callbacks.append(
            tf.keras.callbacks.EarlyStopping(
                **_watch(early_stopping),
                patience=early_stopping.patience,
                min_delta=early_stopping.min_delta,
                restore_best_weights=True,
                start_from_epoch=unfrozen or 0,
            )
        )
    if plateau:
        callbacks.append(
            ReduceOnPlateau(
                **_watch(plateau),
                patience=plateau.patience,
                min_delta=plateau.min_delta,
                factor=plateau.factor,
                cooldown=plateau.cooldown,
                min_lr=plateau.min_learning_rate,
            )
        )
    callbacks.append(
        tf.keras.callbacks.TensorBoard(
            tensorboard_dir,
            histogram_freq=tensorboard.histograms,
            write_graph=tensorboard.graph,
            profile_batch=(_FIRST_PROFILED_STEP, last_profiled_step)
            if tensorboard.profile
            else 0,
        )
    )
    return callbacks


def log_images(training_input: TrainingInput, tensorboard_dir: str, count: int) -> None:
    """Writes images of the first batch, as the model sees them: augmented."""
    writer = tf.summary.create_file_writer(os.path.join(tensorboard_dir, "images"))
    with writer.as_default(step=0):
        for name, value in training_input.first_features().items():
            if value.ndim == 4:
                tf.summary.image(name, value, max_outputs=count)
    writer.close()


def _watch(watching: Watching) -> dict[str, Any]:
    mode, metric = watching.mode, watching.metric
    if mode == "auto":
        return {"monitor": metric, "mode": direction_of(metric) or "min"}
    return {"monitor": metric, "mode": mode}


def _own(spec: Callback) -> tf.keras.callbacks.Callback:
    """Returns a callback by import path of its class or of a function that makes it."""
    callback = load_function(spec.function)(**spec.params)
    if not isinstance(callback, tf.keras.callbacks.Callback):
        raise NodeError(
            f"{spec.function} returns {type(callback).__name__}, which is no "
            "tf.keras.callbacks.Callback",
            where="train.callbacks",
        )
    return callback
