"""The callbacks of a training, in the order in which Keras calls them.

1. ``StopOnNonFiniteLoss``, before anything is saved; ``AverageReplicas``.
2. ``LearningRateLog``, and the user's own, which may add metrics.
3. ``CheckWatched``, early stopping and reduce-on-plateau, which watch metrics.
4. TensorBoard.

After them come the progress, and those of ``fit_model``: the history and the
checkpoint.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from pipeline.config.train import Callback, Train, Watching
from pipeline.training.build import load_function
from pipeline.training.input.training_input import TrainingInput
from pipeline.training.keras_of import as_tf
from sluice.errors import NodeError, did_you_mean
from sluice.metrics import direction_of

# The first steps are slower, as they trace and compile.
_FIRST_PROFILED_STEP = 10
# Executions after which the loss is read.
_LOSS_EVERY = 16


def make_callbacks(
    train: Train, tensorboard_dir: str, keras: Any = tf.keras
) -> list[Any]:
    """Returns the callbacks, in order.

    Args:
      train: the section of the config.
      tensorboard_dir: path or address of TensorBoard's logs, which has the metrics of
        each epoch. Of several workers Keras keeps those of the first.
      keras: the model's. Keras 3 calls callbacks of ``tf.keras`` as well, as ours are.
    """
    early_stopping, plateau = train.early_stopping, train.reduce_on_plateau
    tensorboard = train.tensorboard
    last_profiled_step = _FIRST_PROFILED_STEP + tensorboard.profile - 1
    is_legacy = keras is tf.keras
    callbacks = [
        StopOnNonFiniteLoss(),
        AverageReplicas(),
        LearningRateLog(),
        *(_own(spec, number, keras) for number, spec in enumerate(train.callbacks)),
        CheckWatched(train),
    ]
    if early_stopping:
        unfrozen = train.fine_tune and train.fine_tune.unfreeze_after
        callbacks.append(
            keras.callbacks.EarlyStopping(
                **_watch(early_stopping),
                patience=early_stopping.patience,
                min_delta=early_stopping.min_delta,
                restore_best_weights=True,
                start_from_epoch=unfrozen or 0,
            )
        )
    if plateau:
        reduce = ReduceOnPlateau if is_legacy else keras.callbacks.ReduceLROnPlateau
        callbacks.append(
            reduce(
                **_watch(plateau),
                patience=plateau.patience,
                min_delta=plateau.min_delta,
                factor=plateau.factor,
                cooldown=plateau.cooldown,
                min_lr=plateau.min_learning_rate,
            )
        )
    log = TensorBoard if is_legacy else keras.callbacks.TensorBoard
    callbacks.append(
        log(
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


def _own(spec: Callback, number: int, keras: Any) -> Any:
    """Returns a callback of the user's own."""
    callback, kind = load_function(spec.function)(**spec.params), keras.callbacks
    if not isinstance(callback, kind.Callback):
        package = kind.Callback.__module__.partition(".")[0]
        what = f"{spec.function} does not return a {package}.callbacks.Callback"
        raise NodeError(
            f"{what}: the model is made with {package}",
            where=f"train.callbacks[{number}]",
        )
    return callback


def _watch(watching: Watching) -> dict[str, Any]:
    mode, metric = watching.mode, watching.metric
    # ``Watching`` has refused a metric whose direction is not known.
    return {"monitor": metric, "mode": direction_of(metric) if mode == "auto" else mode}


class StepCallback(tf.keras.callbacks.Callback):
    """Keras callback whose logs of batches are tensors.

    After each batch Keras waits for the device and fetches all metrics, unless a
    callback says that it takes tensors; with parameter servers it refuses one that does
    not. There is no public way to say so, and on the class the attribute has no effect
    (tf_keras 2.16 and 2.21).
    """

    def __init__(self) -> None:
        super().__init__()
        self._supports_tf_logs = True


class AverageReplicas(StepCallback):
    """Averages what each replica of one process keeps by itself, before a validation.

    These are the statistics of batch normalization. Without it, each replica would
    validate with its own, and Keras 3 would save those of the first.
    """

    def on_test_begin(self, logs: Any = None) -> None:
        strategy = self.model.distribute_strategy
        if not isinstance(strategy, tf.distribute.MirroredStrategy):
            return
        weights = self.model.non_trainable_weights
        kept = [x for x in as_tf(weights) if x.dtype.is_floating]
        for weight, values in zip(
            kept, strategy.run(lambda: [tf.identity(x) for x in kept]), strict=True
        ):
            weight.assign(strategy.reduce("MEAN", values, axis=None))


class LearningRateLog(tf.keras.callbacks.Callback):
    """Adds ``learning_rate`` to the metrics of each epoch.

    It is that of the last step, with Keras 3 that of the next one.
    """

    def on_epoch_end(self, epoch: int, logs: dict[str, Any]) -> None:
        logs["learning_rate"] = float(self.model.optimizer.learning_rate.numpy())


class CheckWatched(tf.keras.callbacks.Callback):
    """Raises a ``NodeError`` if a metric that is watched does not exist.

    Keras only warns of it, so that training would never stop early.
    """

    def __init__(self, train: Train) -> None:
        super().__init__()
        self._watched = {
            f"train.{key}.metric": watching.metric
            for key in ("early_stopping", "reduce_on_plateau")
            if (watching := getattr(train, key))
        }

    def on_epoch_end(self, epoch: int, logs: dict[str, Any]) -> None:
        for key, name in self._watched.items():
            if name not in logs:
                raise NodeError(
                    f"there is no metric {name!r} among {', '.join(sorted(logs))}",
                    where=key,
                    hint=did_you_mean(name, logs),
                )


class TensorBoard(tf.keras.callbacks.TensorBoard):
    """Keras' callback without the scalars of each step.

    It makes them from ``logs``, which takes 0.8 ms, and does not write them.
    """

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        super().on_train_batch_end(batch)


class ReduceOnPlateau(tf.keras.callbacks.ReduceLROnPlateau):
    """Keras' callback without its metric ``lr``: there is ``learning_rate``."""

    def on_epoch_end(self, epoch: int, logs: dict[str, Any]) -> None:
        super().on_epoch_end(epoch, logs)
        del logs["lr"]


class StopOnNonFiniteLoss(StepCallback):
    """Raises a ``NodeError`` when the loss is NaN or infinite.

    Must come before all callbacks that save weights. All workers see the same loss.

    Keras' ``TerminateOnNaN`` ends the training as if it were complete, and waits for
    the device after each batch. The loss in Keras' logs is the mean over the epoch so
    far, which stays NaN or infinite from the first such batch on, so it is read now and
    then.
    """

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self._epoch, self._executions = epoch + 1, 0

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self._executions += 1
        if self._executions % _LOSS_EVERY == 0:
            self._check(f"epoch {self._epoch}, up to batch {batch + 1}", logs)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self._check(f"epoch {self._epoch}", logs)

    def _check(self, place: str, logs: Any) -> None:
        # With parameter servers the logs of a batch are still to come.
        known = logs if isinstance(logs, Mapping) else {}
        for name in ("loss", "val_loss"):
            loss = float(known.get(name, 0.0))
            if not np.isfinite(loss):
                rate = float(self.model.optimizer.learning_rate.numpy())
                raise NodeError(
                    f"the {name} is {loss}, so training has stopped",
                    where=f"{place}, learning rate {rate:g}",
                    hint="a lower train.learning_rate, a warm-up or "
                    "train.clip_gradients; tf.debugging.enable_check_numerics() in the "
                    "model's code finds the operation",
                )
