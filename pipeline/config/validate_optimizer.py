"""Validates the keys of ``train`` about optimizer, loss, metrics and callbacks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pipeline.config.config import BUNDLED_MODELS, Config
from pipeline.config.keras_classes import (
    BELOW_ONE,
    DEFAULT_METRICS,
    LOSSES,
    METRICS,
    OPTIMIZERS,
    TRAIN_KEYS,
    KerasClass,
    metric_name,
    mode_of,
)
from pipeline.config.learning_rate import Piecewise
from pipeline.config.metrics import Task
from pipeline.config.origin import KeyPath
from pipeline.config.problems import Problems
from pipeline.config.train import EarlyStopping, KerasObject, ReduceOnPlateau, Train
from pipeline.config.yaml_values import describe
from sluice.errors import ConfigError
from sluice.project import find_user_code


def check_optimizer(train: Train, classes: int, problems: Problems) -> None:
    """Checks optimizer, learning rate, clipping, loss and metrics.

    The number of ``classes`` is 0 if they are unknown.
    """
    path: KeyPath = ("train", "optimizer")
    if _check_name(train.optimizer, path, "optimizer", OPTIMIZERS, problems):
        for name in train.optimizer.params:
            _check_optimizer_param(train.optimizer, name, problems)
    _check_schedule(train, problems)
    _check_clipping(train, problems)
    if not classes:
        return
    task: Task = "binary" if classes == 2 else "multiclass"
    if train.loss is not None:
        _check_class(train.loss, ("train", "loss"), "loss", LOSSES, task, problems)
    for index, metric in enumerate(train.metrics or ()):
        path = ("train", "metrics", index)
        _check_class(metric, path, "metric", METRICS, task, problems)
    names = metric_names(train, task)
    for name in dict.fromkeys(names):
        if names.count(name) > 1:
            problems.add(
                ("train", "metrics"),
                f"two metrics are named {name!r}",
                hint="write params: {name: ...} for one of them",
            )


def check_callbacks(config: Config, classes: int, problems: Problems) -> None:
    """Checks the user's callbacks, and the metrics that early stopping watches."""
    train = config.train
    for index, callback in enumerate(train.callbacks):
        try:
            find_user_code(config.root, callback.function, "callback")
        except ConfigError as error:
            problems.add_error(("train", "callbacks", index, "function"), error)
    task: Task = "binary" if classes == 2 else "multiclass"
    names = ["loss", *metric_names(train, task)]
    known = [*names, *(f"val_{name}" for name in names)]
    # The user's code may add metrics.
    is_known = config.model in BUNDLED_MODELS and not train.callbacks and classes > 0
    for key, watching in (
        ("early_stopping", train.early_stopping),
        ("reduce_on_plateau", train.reduce_on_plateau),
    ):
        if watching is not None:
            path = ("train", key, "metric")
            _check_watched(watching, path, known if is_known else None, problems)


def metric_names(train: Train, task: Task) -> list[str]:
    """Returns the names that the metrics of training have in the history."""
    if train.metrics is None:
        return [metric_name(name) for name in DEFAULT_METRICS[task]]
    return [
        item.params.get("name") or metric_name(item.class_name)
        for item in train.metrics
    ]


def _check_watched(
    watching: EarlyStopping | ReduceOnPlateau,
    path: KeyPath,
    known: Sequence[str] | None,
    problems: Problems,
) -> None:
    metric = watching.metric
    if known is not None and metric not in known:
        problems.unknown(path, f"there is no metric {metric!r}", metric, known)
    elif watching.mode == "auto" and mode_of(metric) is None:
        problems.add(
            (*path[:-1], "mode"),
            f"whether more or less of {metric!r} is better is unknown",
            expected="min or max",
            actual="auto",
        )


def _check_optimizer_param(
    optimizer: KerasObject, name: str, problems: Problems
) -> None:
    path: KeyPath = ("train", "optimizer", "params", name)
    known = OPTIMIZERS[optimizer.class_name]
    if name in TRAIN_KEYS:
        key = TRAIN_KEYS[name]
        problems.add(path, f"{name!r} has a key of its own", expected=key)
    elif name not in known:
        problems.unknown(path, _no_param(optimizer, name), name, known)
    elif name in BELOW_ONE:
        value = optimizer.params[name]
        if type(value) not in (int, float) or not 0 <= value < 1:
            problems.add(
                path,
                f"invalid {name!r} of {optimizer.class_name}",
                expected="a number, at least 0 and below 1",
                actual=describe(value),
            )


def _check_class(
    item: KerasObject,
    path: KeyPath,
    kind: str,
    known: Mapping[str, KerasClass],
    task: Task,
    problems: Problems,
) -> None:
    if not _check_name(item, path, kind, known, problems):
        return
    row = known[item.class_name]
    if task not in row.tasks:
        fitting = [name for name, other in known.items() if task in other.tasks]
        problems.add(
            path,
            f"the {kind} {item.class_name!r} does not fit the number of classes",
            expected=", ".join(fitting),
        )
    params = (*row.params, *(("name",) if kind == "metric" else ()))
    for name in item.params:
        if name not in params:
            params_path = (*path, "params", name)
            problems.unknown(params_path, _no_param(item, name), name, params)
    for name in row.required:
        if item.params.get(name) is None:
            problems.add(
                (*path, "params"),
                f"{item.class_name} needs the parameter {name!r}",
                hint=f"write params: {{{name}: ...}}",
            )


def _check_name(
    item: KerasObject,
    path: KeyPath,
    kind: str,
    known: Iterable[str],
    problems: Problems,
) -> bool:
    name = item.class_name
    if name in known:
        return True
    problems.unknown(path, f"there is no {kind} {name!r}", name, sorted(known))
    return False


def _no_param(item: KerasObject, name: str) -> str:
    return f"{item.class_name} has no parameter {name!r} here"


def _check_schedule(train: Train, problems: Problems) -> None:
    rate: Any = train.learning_rate
    path: KeyPath = ("train", "learning_rate")
    if isinstance(rate, float):
        return
    if isinstance(rate, Piecewise):
        boundaries = rate.boundaries
        if list(boundaries) != sorted(set(boundaries)):
            problems.add(
                (*path, "boundaries"),
                "the boundaries are not in ascending order",
                actual=", ".join(f"{item:g}" for item in boundaries),
            )
        if len(boundaries) != len(rate.values):
            problems.add(
                (*path, "values"),
                "each boundary needs one value, which follows it",
                expected=f"{len(boundaries)} values",
                actual=str(len(rate.values)),
            )
    if rate.warmup_epochs >= train.epochs:
        problems.warn(
            (*path, "warmup_epochs"),
            f"training ends within the warm-up: train.epochs is {train.epochs}",
        )


def _check_clipping(train: Train, problems: Problems) -> None:
    if train.clip_gradients is None:
        return
    given = [key for key, value in train.clip_gradients if value is not None]
    if len(given) != 1:
        problems.add(
            ("train", "clip_gradients"),
            "gradients are clipped in one way",
            expected="one of norm, global_norm, value",
            actual=", ".join(given) or "none",
        )
