"""Training step 3, compile: optimizer, loss and metrics by their Keras names.

Labels are class ids ``[batch, 1]``; models return probabilities, ``[batch, 1]`` for two
classes. Losses and metrics that need one-hot labels get them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from pipeline.config.features import Label
from pipeline.config.train import ClipGradients, KerasObject, Train
from pipeline.training.build import load_function
from pipeline.training.learning_rate import make_learning_rate, scale_of
from pipeline.training.strategy.distribution import Distribution
from sluice.errors import NodeError
from sluice.metric_names import result_name

# As `exclude_from_weight_decay` matches them in the names of variables.
NOT_DECAYED = r"\b(bias|gamma|beta)(_\d+)?\b"


def compile_model(
    model: tf.keras.Model,
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
    classes = len(label.class_names)
    with model.distribute_strategy.scope():
        learning_rate = make_learning_rate(
            train.learning_rate,
            epochs=train.epochs,
            steps_per_epoch=steps_per_epoch,
            scale=scale_of(train.learning_rate_scaling, distribution.replicas),
        )
        model.compile(
            optimizer=make_optimizer(train, learning_rate),
            loss=make_loss(train.loss, classes),
            # They respect the weights of the examples, if there are any.
            weighted_metrics=make_metrics(train.metrics, classes),
            steps_per_execution=distribution.steps_per_execution,
        )


def make_optimizer(train: Train, learning_rate: Any) -> tf.keras.optimizers.Optimizer:
    """Returns the optimizer; it decays neither biases nor normalization.

    Raises:
      NodeError: Keras refuses a parameter.
    """
    clip = train.clip_gradients or ClipGradients.model_construct()
    params = {
        "learning_rate": learning_rate,
        "clipnorm": clip.norm,
        "global_clipnorm": clip.global_norm,
        "clipvalue": clip.value,
    }
    if train.weight_decay:
        params["weight_decay"] = train.weight_decay
    optimizer = _create(tf.keras.optimizers, train.optimizer, params, "train.optimizer")
    optimizer.exclude_from_weight_decay(var_names=[NOT_DECAYED])
    return optimizer


def make_loss(spec: KerasObject | None, classes: int) -> tf.keras.losses.Loss:
    """Returns a loss of class ids; None: the cross-entropy that fits.

    Raises:
      NodeError: Keras refuses a parameter.
    """
    if spec is None:
        name = "BinaryCrossentropy" if classes == 2 else "SparseCategoricalCrossentropy"
        spec = KerasObject.model_validate({"class": name})
    return _of_ids(_create(tf.keras.losses, spec, {}, "train.loss"), "call", classes)


def make_metrics(
    specs: Sequence[KerasObject] | None, classes: int
) -> list[tf.keras.metrics.Metric]:
    """Returns metrics of class ids; None: the defaults.

    Raises:
      NodeError: Keras refuses a parameter.
    """
    if specs is None:
        many = ("SparseCategoricalAccuracy",)
        names = ("BinaryAccuracy", "AUC") if classes == 2 else many
        specs = [KerasObject.model_validate({"class": name}) for name in names]
    metrics = []
    for index, spec in enumerate(specs):
        # Without a name Keras numbers them: auc_1 when a model is compiled again.
        params: dict[str, Any] = {"name": result_name(spec.class_name), **spec.params}
        if classes == 2 and spec.class_name in ("F1Score", "FBetaScore"):
            # Otherwise the argmax over one output: always the same class.
            params.setdefault("threshold", 0.5)
        named = spec.model_copy(update={"params": params})
        metric = _create(tf.keras.metrics, named, {}, f"train.metrics[{index}]")
        own = ":" in spec.class_name
        metrics.append(metric if own else _of_ids(metric, "update_state", classes))
    return metrics


def _of_ids(made: Any, method: str, classes: int) -> Any:
    """Lets a loss or metric take class ids where it wants 0.0 and 1.0, or one-hot."""
    original = getattr(made, method)

    def with_ids(ids: Any, y_pred: Any, *args: Any, **kwargs: Any) -> Any:
        if classes == 2:
            labels = tf.cast(ids, tf.float32)
        else:
            labels = tf.one_hot(tf.cast(tf.reshape(ids, [-1]), tf.int64), classes)
        return original(labels, y_pred, *args, **kwargs)

    if not type(made).__name__.startswith("Sparse"):
        setattr(made, method, with_ids)
    return made


def _create(module: Any, spec: KerasObject, params: dict[str, Any], key: str) -> Any:
    name, own = spec.class_name, ":" in spec.class_name
    make = load_function(name) if own else getattr(module, name)
    try:
        # Python refuses a parameter that is given twice, such as the learning rate.
        return make(**spec.params, **params)
    except (TypeError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise NodeError(f"{name}: {reason}", where=key) from error
