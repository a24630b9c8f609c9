"""Training step 3, compile: optimizer, loss and metrics by their Keras names.

Labels are class ids ``[batch, 1]``; models return probabilities, ``[batch, 1]`` for two
classes. Losses and metrics that need one-hot labels get them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import tensorflow as tf

from pipeline.config.feature_set import Label
from pipeline.training.learning_rate import Schedule, make_learning_rate, scale_of
from pipeline.training.strategy.distribution import Distribution
from sluice.errors import NodeError
from sluice.metric_names import result_name

# As `exclude_from_weight_decay` matches them in the names of variables.
NOT_DECAYED = r"\b(bias|gamma|beta)(_\d+)?\b"


@dataclass(frozen=True)
class CompileSettings:
    """Settings of ``compile_model``: keys of section ``train`` with the same names."""

    epochs: int
    optimizer: Mapping[str, Any] = field(default_factory=lambda: _named("Adam"))
    learning_rate: float | Mapping[str, Any] = 0.001
    learning_rate_scaling: str = "none"
    clip_gradients: Mapping[str, float | None] | None = None
    weight_decay: float = 0.0
    loss: Mapping[str, Any] | None = None
    metrics: Sequence[Mapping[str, Any]] | None = None

    @classmethod
    def from_config(cls, train: Mapping[str, Any]) -> CompileSettings:
        """Reads section ``train`` of a config."""
        return cls(**{item.name: train[item.name] for item in fields(cls)})


def compile_model(
    model: tf.keras.Model,
    settings: CompileSettings,
    label: Label,
    *,
    steps_per_epoch: int,
    distribution: Distribution,
) -> None:
    """Compiles a model. Must be called before its optimizer is built.

    Raises:
      NodeError: Keras refuses a parameter.
    """
    classes = len(label.classes)
    with model.distribute_strategy.scope():
        learning_rate = make_learning_rate(
            settings.learning_rate,
            epochs=settings.epochs,
            steps_per_epoch=steps_per_epoch,
            scale=scale_of(settings.learning_rate_scaling, distribution.replicas),
        )
        model.compile(
            optimizer=make_optimizer(settings, learning_rate),
            loss=make_loss(settings.loss, classes),
            # They respect the weights of the examples, if there are any.
            weighted_metrics=make_metrics(settings.metrics, classes),
            steps_per_execution=distribution.steps_per_execution,
        )


def make_optimizer(
    settings: CompileSettings, learning_rate: float | Schedule
) -> tf.keras.optimizers.Optimizer:
    """Returns the optimizer; it decays neither biases nor normalization.

    Raises:
      NodeError: Keras refuses a parameter.
    """
    clip = settings.clip_gradients or {}
    params = {
        **settings.optimizer["params"],
        "learning_rate": learning_rate,
        "clipnorm": clip.get("norm"),
        "global_clipnorm": clip.get("global_norm"),
        "clipvalue": clip.get("value"),
    }
    if settings.weight_decay:
        params["weight_decay"] = settings.weight_decay
    name = settings.optimizer["class_name"]
    optimizer = _create(getattr(tf.keras.optimizers, name), params, "train.optimizer")
    optimizer.exclude_from_weight_decay(var_names=[NOT_DECAYED])
    if isinstance(learning_rate, Schedule):
        optimizer.schedule = learning_rate  # For ``ReduceOnPlateau``.
    return optimizer


def make_loss(spec: Mapping[str, Any] | None, classes: int) -> tf.keras.losses.Loss:
    """Returns a loss of class ids; None: the cross-entropy that fits.

    Raises:
      NodeError: Keras refuses a parameter.
    """
    if spec is None:
        binary = classes == 2
        spec = _named(
            "BinaryCrossentropy" if binary else "SparseCategoricalCrossentropy"
        )
    loss = getattr(tf.keras.losses, spec["class_name"])
    loss = _without_padding(_of_ids(loss, "call", classes), "__call__")
    return _create(loss, spec["params"], "train.loss")


def make_metrics(
    specs: Sequence[Mapping[str, Any]] | None, classes: int
) -> list[tf.keras.metrics.Metric]:
    """Returns metrics of class ids; None: the defaults.

    Raises:
      NodeError: Keras refuses a parameter.
    """
    if specs is None:
        many = ("SparseCategoricalAccuracy",)
        names = ("BinaryAccuracy", "AUC") if classes == 2 else many
        specs = [_named(name) for name in names]
    metrics = []
    for index, spec in enumerate(specs):
        # Without a name Keras numbers them: auc_1 when a model is compiled again.
        params = {"name": result_name(spec["class_name"]), **spec["params"]}
        if classes == 2 and spec["class_name"] in ("F1Score", "FBetaScore"):
            # Otherwise the argmax over one output: always the same class.
            params.setdefault("threshold", 0.5)
        metric = getattr(tf.keras.metrics, spec["class_name"])
        metric = _of_ids(metric, "update_state", classes)
        metric = _without_padding(metric, "update_state")
        metrics.append(_create(metric, params, f"train.metrics[{index}]"))
    return metrics


def _named(class_name: str) -> dict[str, Any]:
    return {"class_name": class_name, "params": {}}


def _of_ids(base: Any, method: str, classes: int) -> Any:
    """Returns a loss or metric whose method for labels takes class ids."""
    original = getattr(base, method)

    def with_ids(self: Any, ids: Any, y_pred: Any, *args: Any, **kwargs: Any) -> Any:
        if classes == 2:
            labels = tf.cast(ids, tf.float32)
        else:
            labels = tf.one_hot(tf.cast(tf.reshape(ids, [-1]), tf.int64), classes)
        return original(self, labels, y_pred, *args, **kwargs)

    is_sparse = base.__name__.startswith("Sparse")
    return type(base.__name__, (base,), {} if is_sparse else {method: with_ids})


def _without_padding(base: Any, method: str) -> Any:
    """Returns a loss or metric that takes the weights of padded training batches.

    They are ``[batch, 2]``: the weight, and the scale of the step's gradient. Keras
    divides losses by the size of the batch, in which padding counts; the scale undoes
    this for gradients. The value of the loss is left as it is, see ``LossPerExample``.
    """
    original = getattr(base, method)

    def unpadded(self: Any, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        if sample_weight is None or sample_weight.shape[1:] != [2]:
            return original(self, y_true, y_pred, sample_weight)
        value = original(self, y_true, y_pred, sample_weight[:, :1])
        if method == "update_state":
            return value
        scale = sample_weight[0, 1]
        return tf.stop_gradient(value) + scale * (value - tf.stop_gradient(value))

    return type(base.__name__, (base,), {method: unpadded})


def _create(make: Any, params: Mapping[str, Any], key: str) -> Any:
    try:
        return make(**params)
    except (TypeError, ValueError) as error:
        raise NodeError(
            f"{make.__name__} cannot be created",
            where=key,
            actual=str(error).partition("\n")[0],
        ) from error
