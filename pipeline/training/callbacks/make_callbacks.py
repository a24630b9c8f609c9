"""The callbacks of a training, in the order in which Keras calls them.

1. ``StopOnNonFiniteLoss``, before anything is saved.
2. ``LearningRateLog``, and the user's own, which may add metrics.
3. ``CheckLogs``, early stopping and reduce-on-plateau, which watch metrics.
4. TensorBoard.

After them come the progress, and those of ``fit_model``: the history and the
checkpoint.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from pipeline.config.train import Callback, Train, Watching
from pipeline.training.build import load_function
from pipeline.training.callbacks.metrics import (
    CheckLogs,
    LearningRateLog,
    ReduceOnPlateau,
)
from pipeline.training.callbacks.non_finite_loss import StopOnNonFiniteLoss
from pipeline.training.callbacks.tensorboard import ImageLog, make_tensorboard
from pipeline.training.input.training_input import TrainingInput
from sluice.errors import NodeError
from sluice.metric_names import direction_of


def make_callbacks(
    train: Train, training_input: TrainingInput, tensorboard_dir: str | None = None
) -> list[tf.keras.callbacks.Callback]:
    """Returns the callbacks, in order.

    Args:
      train: the section of the config.
      training_input: what is trained on.
      tensorboard_dir: path or address of TensorBoard's logs; None: no logs.

    Raises:
      NodeError: a function of the user returns no callback.
    """
    early_stopping, plateau = train.early_stopping, train.reduce_on_plateau
    callbacks = [
        StopOnNonFiniteLoss(),
        LearningRateLog(),
        *map(_own, train.callbacks),
        CheckLogs(train),
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
    if tensorboard_dir is not None:
        callbacks.append(make_tensorboard(train.tensorboard, tensorboard_dir))
        if count := train.tensorboard.images:
            callbacks.append(ImageLog(training_input, tensorboard_dir, count))
    return callbacks


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
