"""Training step 3, compile: optimizer, loss and metrics by their Keras names.

The learning rate per step is one of Keras' schedules in epochs, with warm-up.
Labels of a classification are class ids ``[batch, 1]``; models return probabilities,
``[batch, 1]`` for two classes. Losses and metrics that need one-hot labels get them.
The loss of a regression is that of z-scores, its metrics have the label's unit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from pipeline.config.label import Label
from pipeline.config.learning_rate import Cosine, Exponential, LearningRate, Piecewise
from pipeline.config.train import ClipGradients, KerasObject, Train
from pipeline.training.build import load_function, target_scale
from pipeline.training.keras_of import is_keras_3, keras_of
from pipeline.training.strategy.distribution import Distribution
from sluice.errors import NodeError
from sluice.metrics import LOG_ODDS, OF_EVERY_THRESHOLD, THRESHOLD, result_name

_LOSSES = {"regression": "MeanSquaredError", "multi_label": "BinaryCrossentropy"}
_METRICS = {
    "regression": ("MeanAbsoluteError", "RootMeanSquaredError"),
    "multi_label": ("BinaryAccuracy", "AUC"),
}
# With these the thresholds are the user's, or predictions are no probabilities.
_OWN_THRESHOLDS = {"from_logits", "num_thresholds", "thresholds"}
_THRESHOLDS = 2001
_KINDS = {"optimizers": "Optimizer", "losses": "Loss", "metrics": "Metric"}
# As `exclude_from_weight_decay` matches them in the names of variables.
NOT_DECAYED = r"\b(bias|gamma|beta)(_\d+)?\b"


def compile_model(
    model: Any,
    train: Train,
    label: Label,
    *,
    steps_per_epoch: int,
    distribution: Distribution,
) -> None:
    """Compiles a model. Must be called before its optimizer is built.

    Raises:
      NodeError: Keras refuses a parameter.
    """
    keras = keras_of(model)
    loss = make_loss(train.loss, label, keras)
    if scale := target_scale(model):
        _let_take(loss, "call", _z_scores(*scale.get_weights()))
    with model.distribute_strategy.scope():
        learning_rate = make_learning_rate(
            train.learning_rate,
            epochs=train.epochs,
            steps_per_epoch=steps_per_epoch,
            scale=scale_of(train.learning_rate_scaling, distribution.replicas),
            keras=keras,
        )
        steps_per_execution = distribution.steps_per_execution
        if is_keras_3(model):  # It would go on beyond the end of the epoch.
            steps_per_execution = _divisor(steps_per_epoch, steps_per_execution)
        model.compile(
            optimizer=make_optimizer(
                train, learning_rate, keras, distribution.replicas
            ),
            loss=loss,
            # They respect the weights of the examples, if there are any.
            weighted_metrics=make_metrics(train.metrics, label, keras),
            steps_per_execution=steps_per_execution,
        )


def _divisor(number: int, most: int) -> int:
    """Returns the largest divisor that is at most so large."""
    return next(x for x in range(min(number, most), 0, -1) if number % x == 0)


def make_optimizer(
    train: Train, learning_rate: Any, keras: Any = tf.keras, replicas: int = 1
) -> Any:
    """Returns the optimizer; it decays neither biases nor normalization.

    Args:
      train: the section of the config.
      learning_rate: as ``make_learning_rate`` returns it.
      keras: the model's, see ``keras_of``.
      replicas: those whose gradients are added.

    Raises:
      NodeError: Keras refuses a parameter.
    """
    clip = train.clip_gradients or ClipGradients.model_construct()
    limits = {
        "clipnorm": clip.norm,
        "global_clipnorm": clip.global_norm,
        "clipvalue": clip.value,
    }
    # Keras 3 clips those of each replica, and adds them then.
    each = 1 if keras is tf.keras else replicas
    params = {key: limit and limit / each for key, limit in limits.items()}
    params["learning_rate"] = learning_rate
    if train.weight_decay:
        params["weight_decay"] = train.weight_decay
    spec = train.optimizer
    optimizer = _create(keras, "optimizers", spec, params, "train.optimizer")
    optimizer.exclude_from_weight_decay(var_names=[NOT_DECAYED])
    return optimizer


def make_loss(spec: KerasObject | None, label: Label, keras: Any = tf.keras) -> Any:
    """Returns a loss; None: mean squared error, or the cross-entropy that fits.

    ``keras`` is the model's.

    Raises:
      NodeError: Keras refuses a parameter.
    """
    if spec is None:
        is_binary = len(label.class_names) == 2
        name = "BinaryCrossentropy" if is_binary else "SparseCategoricalCrossentropy"
        name = _LOSSES.get(label.task, name)
        spec = KerasObject.model_validate({"class": name})
    return _with_ids(_create(keras, "losses", spec, {}, "train.loss"), "call", label)


def make_metrics(
    specs: Sequence[KerasObject] | None, label: Label, keras: Any = tf.keras
) -> list[Any]:
    """Returns metrics of ``keras``, the model's; None: the defaults.

    Raises:
      NodeError: Keras refuses a parameter.
    """
    is_binary = len(label.class_names) == 2
    if specs is None:
        many = ("SparseCategoricalAccuracy",)
        names = ("BinaryAccuracy", "AUC") if is_binary else many
        names = _METRICS.get(label.task, names)
        specs = [KerasObject.model_validate({"class": name}) for name in names]
    metrics = []
    for index, spec in enumerate(specs):
        # Without a name Keras numbers them: auc_1 when a model is compiled again.
        params: dict[str, Any] = {"name": result_name(spec.class_name), **spec.params}
        is_each = is_binary or label.task == "multi_label"
        if is_each and spec.class_name in ("F1Score", "FBetaScore"):
            # Otherwise the class with the largest output, of one always the same.
            params.setdefault("threshold", THRESHOLD)
        is_spread = spec.class_name in OF_EVERY_THRESHOLD
        if is_spread := is_spread and not _OWN_THRESHOLDS & params.keys():
            params["num_thresholds"] = _THRESHOLDS
        named = spec.model_copy(update={"params": params})
        metric = _create(keras, "metrics", named, {}, f"train.metrics[{index}]")
        if is_spread:
            _let_take(metric, "update_state", _log_odds)
        own = ":" in spec.class_name
        metrics.append(metric if own else _with_ids(metric, "update_state", label))
    return metrics


def make_learning_rate(
    schedule: LearningRate,
    *,
    epochs: int,
    steps_per_epoch: int,
    scale: float = 1.0,
    keras: Any = tf.keras,
) -> Any:
    """Returns what an optimizer takes as its learning rate.

    Args:
      schedule: a number, or a schedule in epochs.
      epochs: of the whole training; where a cosine without ``epochs`` ends.
      steps_per_epoch: converts epochs to steps.
      scale: factor of all learning rates; see ``scale_of``.
      keras: the model's.

    Returns:
      A number if it is constant, so that a callback may set it; else a schedule of
      Keras.
    """
    if isinstance(schedule, float):
        return schedule * scale
    warmup_steps = schedule.warmup_epochs * steps_per_epoch
    initial = schedule.initial * scale
    if schedule.kind == "constant" and not warmup_steps:
        return initial
    rest = epochs - schedule.warmup_epochs
    schedules = keras.optimizers.schedules
    after = _after_warmup(schedules, schedule, scale, rest, steps_per_epoch)
    if not warmup_steps:
        return after
    return _warm_up(schedules, initial, warmup_steps, after)


def scale_of(scaling: str, replicas: int) -> float:
    """Returns the factor of the learning rate for so many replicas."""
    return {"none": 1.0, "linear": float(replicas), "sqrt": math.sqrt(replicas)}[
        scaling
    ]


def _warm_up(
    schedules: Any, initial: float, steps: float, after: Callable[[Any], Any]
) -> Any:
    """Returns a linear warm-up from 0 to ``initial``, then another schedule."""

    class WarmUp(schedules.LearningRateSchedule):
        def __call__(self, step: Any) -> tf.Tensor:
            step = tf.cast(step, tf.float32)
            rest = after(tf.maximum(step - steps, 0.0))
            return tf.where(step < steps, initial * step / steps, rest)

    return WarmUp()


def _after_warmup(
    schedules: Any, schedule: Any, scale: float, rest: float, steps_per_epoch: int
) -> Callable[[Any], Any]:
    """Returns the learning rate by the step after the warm-up, ``rest`` epochs long."""
    initial = schedule.initial * scale
    match schedule:
        case Cosine():
            steps = max(1.0, (schedule.epochs or rest) * steps_per_epoch)
            return schedules.CosineDecay(initial, steps, alpha=schedule.final_fraction)
        case Exponential():
            steps = schedule.epochs * steps_per_epoch
            return schedules.ExponentialDecay(
                initial, steps, schedule.rate, staircase=schedule.staircase
            )
        case Piecewise():
            # Keras uses a value up to and including its boundary.
            boundaries = [
                epoch * steps_per_epoch - 0.5 for epoch in schedule.boundaries
            ]
            values = [value * scale for value in schedule.values]
            return schedules.PiecewiseConstantDecay(boundaries, [initial, *values])
    return lambda step: tf.constant(initial)


def _with_ids(made: Any, method: str, label: Label) -> Any:
    """Lets a loss or metric take class ids where it wants 0.0 and 1.0, or one-hot."""
    classes = len(label.class_names)

    def convert(ids: Any, y_pred: Any) -> tuple[Any, Any]:
        if classes == 2:
            return tf.cast(ids, tf.float32), y_pred
        flat = tf.cast(tf.reshape(ids, [-1]), tf.int64)
        return tf.one_hot(flat, classes), y_pred

    has_ids = label.task == "classification"
    if has_ids and not type(made).__name__.startswith("Sparse"):
        _let_take(made, method, convert)
    return made


def _log_odds(y_true: Any, y_pred: Any) -> tuple[Any, Any]:
    """Scales the log-odds of predictions to 0..1, which keeps their order.

    Keras' thresholds have equal distances, by default 0.005: rare positives, with all
    probabilities below it, would have an AUC of 0.5 whatever the model does.
    """
    share = tf.cast(y_pred, tf.float32)
    odds = tf.math.log(share) - tf.math.log1p(-share)
    return y_true, tf.clip_by_value(odds / (2 * LOG_ODDS) + 0.5, 0.0, 1.0)


def _z_scores(scale: Any, mean: Any) -> Callable[[Any, Any], tuple[Any, Any]]:
    """Returns a function that scales labels and predictions of a regression."""
    deviation = np.diag(scale)

    def convert(y_true: Any, y_pred: Any) -> tuple[Any, Any]:
        return (y_true - mean) / deviation, (y_pred - mean) / deviation

    return convert


def _let_take(
    made: Any, method: str, convert: Callable[[Any, Any], tuple[Any, Any]]
) -> None:
    """Lets a method of a loss or metric take labels and predictions as converted."""
    original = getattr(made, method)

    def converted(y_true: Any, y_pred: Any, *args: Any, **kwargs: Any) -> Any:
        return original(*convert(y_true, y_pred), *args, **kwargs)

    setattr(made, method, converted)


def _create(
    keras: Any, module: str, spec: KerasObject, params: dict[str, Any], key: str
) -> Any:
    """Returns an optimizer, loss or metric, of a module of Keras or the user's own."""
    name, known = spec.class_name, getattr(keras, module)
    make = load_function(name) if ":" in name else getattr(known, name)
    try:
        # Python refuses a parameter that is given twice, such as the learning rate.
        made = make(**spec.params, **params)
    except (TypeError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise NodeError(f"{name}: {reason}", where=key) from error
    # One of the other Keras would weigh examples differently, or not at all.
    if not isinstance(made, kind := getattr(known, _KINDS[module])):
        package = kind.__module__.partition(".")[0]
        what = f"{name} is not a {package}.{module}.{kind.__name__}"
        raise NodeError(f"{what}: the model is made with {package}", where=key)
    return made
