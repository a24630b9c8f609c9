"""Checks what a config names by making it: objects of Keras and TFMA, the user's code.

It is what the nodes will do hours later, so the libraries themselves say what is wrong.
A loss or metric is also computed for right and for wrong predictions: one that does not
fit the number of classes gives a number all the same, but the same one for both.
"""

from __future__ import annotations

import inspect
import json
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow_model_analysis.metrics import metric_specs, metric_types
from tensorflow_model_analysis.proto import config_pb2

from pipeline.config.config import BUNDLED_MODELS, Config
from pipeline.config.evaluate import Metric
from pipeline.config.problems import KeyPath, Problems
from pipeline.config.train import KerasObject, Train
from pipeline.training.build import load_function
from pipeline.training.compile import (
    CompileSettings,
    make_loss,
    make_metrics,
    make_optimizer,
)
from pipeline.training.models.published_weights import find_published
from pipeline.training.strategy.devices import choose_gpus
from sluice.compat import exclude_keras_from_autograph
from sluice.errors import SluiceError
from sluice.metric_names import direction_of

# Arguments of Keras's classes that the Trainer gives, and the key that says them.
_GIVEN = {
    "learning_rate": "write train.learning_rate",
    "lr": "write train.learning_rate",
    "weight_decay": "write train.weight_decay",
    "clipnorm": "write train.clip_gradients.norm",
    "global_clipnorm": "write train.clip_gradients.global_norm",
    "clipvalue": "write train.clip_gradients.value",
    "from_logits": "models return probabilities",
}


# Of as many labels as metrics are computed.
_ROWS = 100


def check_objects(config: Config, *, trains_here: bool = False) -> None:
    """Makes optimizer, loss and metrics, and imports the user's model and callbacks.

    Functions of the user are not called. This process sees no GPU any more, whose
    memory is for the Trainer's.

    Args:
      config: a validated config.
      trains_here: whether this machine has to have the GPUs of ``train.devices``.

    Raises:
      ConfigError: lists every problem with file, line and key path.
    """
    exclude_keras_from_autograph()
    problems = Problems(config.origin)
    classes = len(config.label.classes or ())
    train = config.train
    if trains_here:
        with _refusals_at(("train", "devices", "visible"), problems):
            choose_gpus(train.devices.visible)
    with suppress(RuntimeError):  # TensorFlow has started.
        tf.config.set_visible_devices([], "GPU")
    _check_model(config, problems)
    if _is_known(train.optimizer, "optimizers", "Optimizer", problems, "optimizer"):
        with _refusals_at(("train", "optimizer"), problems):
            _try_optimizer(train)
    if train.loss and _is_known(train.loss, "losses", "Loss", problems, "loss"):
        with _refusals_at(("train", "loss"), problems):
            _try_loss(train, classes)
    names = _check_train_metrics(train, classes, problems)
    _check_callbacks(train, problems)
    is_own = config.model not in BUNDLED_MODELS or train.callbacks
    _check_watched(train, [] if is_own else ["loss", *names], problems)
    for index, metric in enumerate(config.evaluate.metrics):
        path: KeyPath = ("evaluate", "metrics", index)
        _check_evaluated(metric, path, classes, problems)
    problems.raise_if_any()


@contextmanager
def _refusals_at(path: KeyPath, problems: Problems) -> Iterator[None]:
    """Adds what is raised inside as a problem with the value at a key path."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Keras warns of what is refused here.
            yield
    except SluiceError as error:
        problems.add_error(path, error)
    except Exception as error:  # A class, or a user's module, may raise anything.
        first = str(error).partition("\n")[0]
        problems.add(path, f"{type(error).__name__}: {first}")


def _is_known(
    item: KerasObject, module: str, base: str, problems: Problems, *key: str | int
) -> bool:
    """Whether Keras has such a class, and none of its parameters is given elsewhere."""
    path: KeyPath = ("train", *key)
    known = _classes(getattr(tf.keras, module), base)
    if item.class_name not in known:
        what = f"tf.keras.{module} has no class {item.class_name!r}"
        problems.unknown(path, what, item.class_name, known)
        return False
    given = [name for name in item.params if name in _GIVEN]
    for name in given:
        what = f"{item.class_name} takes no {name!r} here: {_GIVEN[name]}"
        problems.add((*path, "params", name), what)
    return not given


def _classes(module: Any, base: str) -> dict[str, type]:
    return {
        name: found
        for name, found in vars(module).items()
        if inspect.isclass(found)
        and issubclass(found, getattr(module, base))
        and name != base
    }


def _try_optimizer(train: Train) -> None:
    optimizer = make_optimizer(CompileSettings.from_config(train.model_dump()), 0.001)
    variable = tf.Variable([1.0])
    # Keras finds some values in their first use.
    optimizer.build([variable])
    optimizer.apply_gradients([(tf.constant([1.0]), variable)])


def _try_loss(train: Train, classes: int) -> None:
    assert train.loss is not None
    loss = make_loss(train.loss.model_dump(), classes)
    right, wrong = _predictions(classes)
    for k in (0, 1):
        label = tf.constant([[k]], tf.int64)
        values = [float(loss(label, rows[k : k + 1])) for rows in (right, wrong)]
        if not values[0] < values[1]:
            raise ValueError(
                f"{train.loss.class_name} of a right prediction is not less than of a "
                f"wrong one: it is not for {classes} classes"
            )


def _check_train_metrics(train: Train, classes: int, problems: Problems) -> list[str]:
    """Returns the names that the metrics of training have in the history."""
    names = []
    if train.metrics is None:
        return [metric.name for metric in make_metrics(None, classes)]
    for index, item in enumerate(train.metrics):
        key = ("metrics", index)
        if not _is_known(item, "metrics", "Metric", problems, *key):
            continue
        with _refusals_at(("train", *key), problems):
            (metric,) = make_metrics([item.model_dump()], classes)
            _try_metric(metric, classes)
            if metric.name in names:
                raise ValueError(f"two metrics are named {metric.name!r}")
            names.append(metric.name)
    return names


def _try_metric(metric: Any, classes: int) -> None:
    values = []
    for predictions in _predictions(classes):
        metric.reset_state()
        metric.update_state(np.arange(len(predictions))[:, np.newaxis], predictions)
        values.append(np.asarray(metric.result()))
    if values[0].shape != ():
        shape = list(values[0].shape)
        raise ValueError(f"its result has the shape {shape}: one number is needed")
    if np.isclose(values[0], values[1], rtol=1e-5):
        raise ValueError(
            f"{type(metric).__name__} is {values[0]:g} for right and for wrong "
            f"predictions: it is not for {classes} classes"
        )


def _predictions(classes: int) -> tuple[Any, Any]:
    """Returns probabilities for labels 0, 1, 2 ...: all right, and all wrong."""
    if classes == 2:
        right = np.array([[0.1], [0.9]], np.float32)
        return right, 1 - right
    rows = np.arange(min(classes, _ROWS))
    others = (rows + 1) % classes
    right = np.full((len(rows), classes), 0.1 / (classes - 2), np.float32)
    right[rows, rows], right[rows, others] = 0.9, 1e-6
    # The same numbers; the least for the label, else it would be among the best five.
    wrong = right.copy()
    wrong[rows, rows], wrong[rows, others] = 1e-6, 0.9
    return right, wrong


def _check_evaluated(
    metric: Metric, path: KeyPath, classes: int, problems: Problems
) -> None:
    """Makes a metric as the Evaluator does; TFMA gives Keras's the ids of classes."""
    import tf_keras

    name = metric.class_name
    keras = _classes(tf_keras.metrics, "Metric")
    known = {**keras, **metric_types.registered_metrics()}
    if name not in known:
        what = f"neither TFMA nor tf_keras.metrics has a class {name!r}"
        problems.unknown(path, what, name, known)
        return
    with _refusals_at(path, problems):
        arguments = json.dumps({"name": metric.name, **metric.params})
        made = metric_specs.metric_instance(
            config_pb2.MetricConfig(class_name=name, config=arguments)
        )
        if isinstance(made, tf_keras.metrics.Metric):
            _try_metric(made, classes)


def _check_watched(train: Train, names: list[str], problems: Problems) -> None:
    """Checks the metrics that training is stopped by; ``names``: [] if unknown."""
    known = [*names, *(f"val_{name}" for name in names)]
    for key in ("early_stopping", "reduce_on_plateau"):
        watching = getattr(train, key)
        if watching is None:
            continue
        metric = watching.metric
        if known and metric not in known:
            what = f"there is no metric {metric!r}"
            problems.unknown(("train", key, "metric"), what, metric, known)
        elif watching.mode == "auto" and direction_of(metric) is None:
            what = f"whether more or less of {metric!r} is better: write min or max"
            problems.add(("train", key, "mode"), what)


def _check_callbacks(train: Train, problems: Problems) -> None:
    for index, callback in enumerate(train.callbacks):
        path: KeyPath = ("train", "callbacks", index, "function")
        with _refusals_at(path, problems):
            found = _takes(callback.function, **callback.params)
            base = tf.keras.callbacks.Callback
            if isinstance(found, type) and not issubclass(found, base):
                raise TypeError(f"{callback.function} is no subclass of {base}")


def _takes(reference: str, *args: Any, **kwargs: Any) -> Callable[..., Any]:
    """Imports ``package.module:name``, and refuses one that does not take arguments."""
    found: Callable[..., Any] = load_function(reference)
    try:
        inspect.signature(found).bind(*args, **kwargs)
    except TypeError as error:
        raise TypeError(f"{reference} cannot be called: {error}") from error
    return found


def _check_model(config: Config, problems: Problems) -> None:
    """Checks the name or signature of the model, and that its weights are there."""
    with _refusals_at(("model",), problems):
        if ":" in config.model:
            inputs: Mapping[str, Any] = {}
            _takes(config.model, inputs, config.model_params)
            return
    if not config.is_application:
        return
    known = [name for name in vars(tf.keras.applications) if name[:1].isupper()]
    if config.model not in known:
        what = f"neither Sluice nor tf.keras.applications has a model {config.model!r}"
        problems.unknown(("model",), what, config.model, [*BUNDLED_MODELS, *known])
    elif config.weights_file and not config.weights_file.is_file():
        published = find_published(config.model)
        problems.add(
            ("model_params", "weights"),
            f"there is no file {config.weights_file}; nothing is downloaded by itself",
            hint=f"download {published.url}"
            + (f" (MD5 {published.md5})" if published.md5 else ""),
        )
