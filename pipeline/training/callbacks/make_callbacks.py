"""The callbacks of a training, in the order in which Keras calls them.

1. ``StopOnNonFiniteLoss``, before anything is saved.
2. ``LossPerExample`` and ``LearningRateLog``, which correct and complete the metrics of
   the epoch.
3. The user's own, which may add metrics, and ``CheckOwnCallbacks``.
4. ``RequireMetrics``, early stopping and reduce-on-plateau, which watch metrics.
5. TensorBoard.

After them come the progress, and those of ``fit_model``: the history and the
checkpoint.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import tensorflow as tf

from pipeline.config.feature_set import FeatureSet
from pipeline.training.build import load_function
from pipeline.training.callbacks.metrics import (
    CheckOwnCallbacks,
    LearningRateLog,
    LossPerExample,
    ReduceOnPlateau,
    RequireMetrics,
)
from pipeline.training.callbacks.non_finite_loss import (
    ACCELERATOR_INTERVAL_S,
    StopOnNonFiniteLoss,
)
from pipeline.training.callbacks.tensorboard import ImageLog, make_tensorboard
from pipeline.training.input.training_input import TrainingInput
from pipeline.training.strategy.distribution import Distribution
from sluice.errors import NodeError
from sluice.metric_names import direction_of


@dataclass(frozen=True)
class CallbackSettings:
    """Settings of ``make_callbacks``: keys of section ``train``, and these.

    Attributes:
      stopping_from: epoch, from 0, before which training does not stop early: when a
        fine-tuning has unfrozen its layers.
      tensorboard_dir: path or address of TensorBoard's logs; None: no logs.
      sensitive: raw names of features of which no error shows values.
      own_preprocessing: whether the user's code made the transformed features.
    """

    early_stopping: Mapping[str, Any] | None = None
    stopping_from: int = 0
    reduce_on_plateau: Mapping[str, Any] | None = None
    callbacks: Sequence[Mapping[str, Any]] = ()
    tensorboard: Mapping[str, Any] = field(default_factory=dict)
    tensorboard_dir: str | None = None
    sensitive: Sequence[str] = ()
    own_preprocessing: bool = False


def make_callbacks(
    settings: CallbackSettings,
    feature_set: FeatureSet,
    training_input: TrainingInput,
    distribution: Distribution,
) -> list[tf.keras.callbacks.Callback]:
    """Returns the callbacks, in order.

    Raises:
      NodeError: a callback of the user cannot be created.
    """
    early_stopping, plateau = settings.early_stopping, settings.reduce_on_plateau
    watched = [item["metric"] for item in (early_stopping, plateau) if item]
    accelerated = distribution.kind == "tpu" or tf.config.list_logical_devices("GPU")
    callbacks = [
        StopOnNonFiniteLoss(
            training_input,
            feature_set,
            settings.sensitive,
            distribution=distribution,
            own_preprocessing=settings.own_preprocessing,
            interval_s=ACCELERATOR_INTERVAL_S if accelerated else 0.0,
        ),
        LossPerExample(training_input, distribution),
        LearningRateLog(),
        *map(_own, settings.callbacks),
    ]
    if settings.callbacks:
        functions = [spec["function"] for spec in settings.callbacks]
        callbacks.append(CheckOwnCallbacks(functions))
    if watched:
        callbacks.append(RequireMetrics(watched))
    if early_stopping:
        callbacks.append(
            tf.keras.callbacks.EarlyStopping(
                **_watch(early_stopping),
                restore_best_weights=True,
                start_from_epoch=settings.stopping_from,
            )
        )
    if plateau:
        callbacks.append(
            ReduceOnPlateau(
                **_watch(plateau),
                factor=plateau["factor"],
                cooldown=plateau["cooldown"],
                min_lr=plateau["min_learning_rate"],
            )
        )
    directory = settings.tensorboard_dir
    if directory is not None:
        callbacks.append(make_tensorboard(settings.tensorboard, directory))
        if count := settings.tensorboard.get("images"):
            callbacks.append(ImageLog(training_input, directory, count))
    return callbacks


def _watch(settings: Mapping[str, Any]) -> dict[str, Any]:
    mode, metric = settings["mode"], settings["metric"]
    return {
        "monitor": metric,
        "mode": direction_of(metric) or "min" if mode == "auto" else mode,
        "patience": settings["patience"],
        "min_delta": settings["min_delta"],
    }


def _own(spec: Mapping[str, Any]) -> tf.keras.callbacks.Callback:
    """Returns a callback by import path of its class or of a function that makes it."""
    make = load_function(spec["function"])
    try:
        callback = make(**spec["params"])
    except TypeError as error:
        raise NodeError(
            f"the callback {spec['function']} cannot be created",
            where="train.callbacks",
            actual=str(error),
        ) from error
    if not isinstance(callback, tf.keras.callbacks.Callback):
        raise NodeError(
            f"{spec['function']} does not return a callback",
            where="train.callbacks",
            expected="a tf.keras.callbacks.Callback",
            actual=type(callback).__name__,
        )
    return callback
