"""Optimizers, losses and metrics of Keras that ``train`` may name.

With it ``sluice validate`` checks them without TensorFlow. Arguments that have a key of
their own in the config, or that contradict how a model is built here (``from_logits``:
models return probabilities), are left out. A test compares the lists with tf.keras.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from pipeline.config.metrics import Task, result_name

# Arguments of optimizers that are keys of ``train``.
TRAIN_KEYS = {
    "learning_rate": "train.learning_rate",
    "lr": "train.learning_rate",
    "weight_decay": "train.weight_decay",
    "clipnorm": "train.clip_gradients.norm",
    "global_clipnorm": "train.clip_gradients.global_norm",
    "clipvalue": "train.clip_gradients.value",
}
# Arguments of optimizers that are rates of decay; Keras takes any number.
BELOW_ONE = ("beta_1", "beta_2", "rho", "momentum", "ema_momentum")
_BETAS = "beta_1 beta_2 epsilon"
_ALL_OPTIMIZERS = "use_ema ema_momentum ema_overwrite_frequency jit_compile"
_OPTIMIZERS = {
    "Adadelta": "rho epsilon",
    "Adafactor": "beta_2_decay epsilon_1 epsilon_2 clip_threshold relative_step",
    "Adagrad": "initial_accumulator_value epsilon",
    "Adam": f"{_BETAS} amsgrad",
    "AdamW": f"{_BETAS} amsgrad",
    "Adamax": _BETAS,
    "Ftrl": "learning_rate_power initial_accumulator_value l1_regularization_strength "
    "l2_regularization_strength l2_shrinkage_regularization_strength beta",
    "Lion": "beta_1 beta_2",
    "Nadam": _BETAS,
    "RMSprop": "rho momentum epsilon centered",
    "SGD": "momentum nesterov",
}
OPTIMIZERS = {
    name: tuple(f"{params} {_ALL_OPTIMIZERS}".split())
    for name, params in _OPTIMIZERS.items()
}


@dataclass(frozen=True)
class KerasClass:
    """A loss or metric: tasks that it fits, names of its arguments, required ones."""

    tasks: tuple[Task, ...]
    params: tuple[str, ...] = ()
    required: tuple[str, ...] = ()


def _any(*params: str, required: tuple[str, ...] = ()) -> KerasClass:
    return KerasClass(("binary", "multiclass"), params, required)


def _multiclass(*params: str) -> KerasClass:
    return KerasClass(("multiclass",), params)


LOSSES = {
    "BinaryCrossentropy": _any("label_smoothing"),
    "BinaryFocalCrossentropy": _any(
        "apply_class_balancing", "alpha", "gamma", "label_smoothing"
    ),
    "CategoricalCrossentropy": _multiclass("label_smoothing"),
    "CategoricalFocalCrossentropy": _multiclass("alpha", "gamma", "label_smoothing"),
    "CategoricalHinge": _multiclass(),
    "CosineSimilarity": _multiclass(),
    "Hinge": _any(),
    "Huber": _any("delta"),
    "KLDivergence": _multiclass(),
    "LogCosh": _any(),
    "MeanAbsoluteError": _any(),
    "MeanSquaredError": _any(),
    "MeanSquaredLogarithmicError": _any(),
    "Poisson": _any(),
    "SparseCategoricalCrossentropy": _multiclass("ignore_class"),
    "SquaredHinge": _any(),
}


def _at(fixed: str) -> KerasClass:
    """Returns a metric at the threshold where another one has a value."""
    return _any(fixed, "num_thresholds", "class_id", required=(fixed,))


METRICS = {
    "AUC": _any(
        *("num_thresholds", "curve", "summation_method", "thresholds"),
        *("multi_label", "num_labels", "label_weights"),
    ),
    "BinaryAccuracy": KerasClass(("binary",), ("threshold",)),
    "BinaryCrossentropy": _any("label_smoothing"),
    "CategoricalAccuracy": _multiclass(),
    "CategoricalCrossentropy": _multiclass("label_smoothing"),
    "CategoricalHinge": _multiclass(),
    "CosineSimilarity": _multiclass(),
    # Without an average their result is not one number.
    "F1Score": _any("average", "threshold", required=("average",)),
    "FBetaScore": _any("average", "beta", "threshold", required=("average",)),
    "FalseNegatives": _any("thresholds"),
    "FalsePositives": _any("thresholds"),
    "Hinge": _any(),
    "KLDivergence": _multiclass(),
    "LogCoshError": _any(),
    "MeanAbsoluteError": _any(),
    "MeanSquaredError": _any(),
    "MeanSquaredLogarithmicError": _any(),
    "Poisson": _any(),
    "Precision": _any("thresholds", "top_k", "class_id"),
    "PrecisionAtRecall": _at("recall"),
    "Recall": _any("thresholds", "top_k", "class_id"),
    "RecallAtPrecision": _at("precision"),
    "RootMeanSquaredError": _any(),
    "SensitivityAtSpecificity": _at("specificity"),
    "SparseCategoricalAccuracy": _multiclass(),
    "SparseCategoricalCrossentropy": _multiclass("ignore_class"),
    "SparseTopKCategoricalAccuracy": _multiclass("k"),
    "SpecificityAtSensitivity": _at("sensitivity"),
    "SquaredHinge": _any(),
    "TopKCategoricalAccuracy": _multiclass("k"),
    "TrueNegatives": _any("thresholds"),
    "TruePositives": _any("thresholds"),
}
# Metrics where ``train.metrics`` is null.
DEFAULT_METRICS: dict[Task, tuple[str, ...]] = {
    "binary": ("BinaryAccuracy", "AUC"),
    "multiclass": ("SparseCategoricalAccuracy",),
}
_OTHER_NAMES = {
    "FBetaScore": "fbeta_score",
    "KLDivergence": "kullback_leibler_divergence",
    "LogCoshError": "logcosh",
}
_MORE_IS_BETTER = "acc|auc|precision|recall|f1|fbeta|sensitivity|specificity|true_|cos"
_LESS_IS_BETTER = "loss|error|entropy|hinge|divergence|poisson|logcosh|false_"


def metric_name(class_name: str) -> str:
    """Returns the name of a metric class in the history, unless it is given one."""
    return _OTHER_NAMES.get(class_name) or result_name(class_name)


def mode_of(metric: str) -> Literal["min", "max"] | None:
    """Returns whether less or more of a metric is better, None if its name is unknown.

    Keras would take the minimum of any other name, such as ``val_auc`` on a plateau.
    """
    if re.search(_LESS_IS_BETTER, metric):
        return "min"
    return "max" if re.search(_MORE_IS_BETTER, metric) else None
