"""Checks what a config names by making it: objects of Keras and TFMA, the user's code.

It is what the nodes will do hours later, so the libraries themselves say what is wrong.
A loss or metric is also computed for right and for wrong predictions: one that does not
fit the number of classes gives a number all the same, but the same one for both.
"""

from __future__ import annotations

import inspect
import json
import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow_model_analysis.metrics import metric_specs, metric_types
from tensorflow_model_analysis.proto import config_pb2

from pipeline.config.config import BUNDLED_MODELS, Config
from pipeline.config.evaluate import Metric
from pipeline.config.problems import KeyPath, Problems
from pipeline.config.train import Callback, KerasObject, Train, Watching
from pipeline.training.build import load_function
from pipeline.training.compile import make_loss, make_metrics, make_optimizer
from pipeline.training.models.published_weights import find_published
from pipeline.training.strategy.distribution import choose_gpus
from sluice.compat import exclude_keras_from_autograph
from sluice.errors import ConfigError, SluiceError, did_you_mean
from sluice.metric_names import direction_of, result_name

# Arguments of Keras's classes that are keys of ``train``, or follow from how we train.
_SET_BY_TRAINER = {
    *("learning_rate", "lr", "weight_decay", "from_logits"),
    *("clipnorm", "global_clipnorm", "clipvalue"),
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
    problems, train = Problems(config.origin), config.train
    attempt, classes = partial(_attempt, problems), len(config.label.classes or ())
    if trains_here:
        attempt(("train", "devices", "visible"), choose_gpus, train.devices.visible)
    with suppress(RuntimeError):  # TensorFlow has started.
        tf.config.set_visible_devices([], "GPU")
    attempt(("model",), _check_model, config.model)
    attempt(("model_params", "weights"), _check_weights, config)
    attempt(("train", "optimizer"), _try_optimizer, train)
    if train.loss:
        attempt(("train", "loss"), _try_loss, train.loss, classes)
    names = ["loss"]
    for index, spec in enumerate(train.metrics or ()):
        path = ("train", "metrics", index)
        attempt(path, _try_trained, spec, classes)
        name = spec.params.get("name") or result_name(spec.class_name)
        if name in names:
            problems.add(path, f"two metrics are named {name!r}")
        names.append(name)
    if train.metrics is None:
        names += [metric.name for metric in make_metrics(None, classes)]
    if config.model not in BUNDLED_MODELS or train.callbacks:
        names = []  # Own code may add others.
    for key in ("early_stopping", "reduce_on_plateau"):
        if watching := getattr(train, key):
            attempt(("train", key, "metric"), _check_watched, watching, names)
    for index, callback in enumerate(train.callbacks):
        path = ("train", "callbacks", index)
        attempt((*path, "function"), _check_callback, callback)
    for index, metric in enumerate(config.evaluate.metrics):
        attempt(("evaluate", "metrics", index), _try_evaluated, metric, classes)
    problems.raise_if_any()


def _attempt(
    problems: Problems, path: KeyPath, check: Callable[..., object], *args: Any
) -> None:
    """Adds what a check raises as a problem with the value at a key path."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Keras warns of what is refused here.
            check(*args)
    except SluiceError as error:
        problems.add_error(path, error)
    except Exception as error:  # A class, or a user's module, may raise anything.
        first, hint = str(error).partition("\n")[0], None
        if isinstance(error, AttributeError) and inspect.ismodule(error.obj):
            hint = did_you_mean(error.name, dir(error.obj))
        problems.add(path, f"{type(error).__name__}: {first}", hint=hint)


def _unknown(what: str, name: str, known: Iterable[str]) -> ConfigError:
    return ConfigError(what, hint=did_you_mean(name, known) or ", ".join(known))


def _refuse_set_by_trainer(spec: KerasObject) -> None:
    for name in _SET_BY_TRAINER & spec.params.keys():
        raise TypeError(
            f"{spec.class_name} gets {name!r} from the Trainer, see 'train'"
        )


def _try_optimizer(train: Train) -> None:
    _refuse_set_by_trainer(train.optimizer)
    optimizer = make_optimizer(train, 0.001)
    variable = tf.Variable([1.0])
    # Keras finds some values in their first use.
    optimizer.build([variable])
    optimizer.apply_gradients([(tf.constant([1.0]), variable)])


def _try_loss(spec: KerasObject, classes: int) -> None:
    _refuse_set_by_trainer(spec)
    loss = make_loss(spec, classes)
    right, wrong = _predictions(classes)
    for k in (0, 1):
        label = tf.constant([[k]], tf.int64)
        values = [float(loss(label, rows[k : k + 1])) for rows in (right, wrong)]
        if not values[0] < values[1]:
            raise ValueError(
                f"{spec.class_name} of a right prediction is not less than of a wrong "
                f"one: it is not for {classes} classes"
            )


def _try_trained(spec: KerasObject, classes: int) -> None:
    _refuse_set_by_trainer(spec)
    (metric,) = make_metrics([spec], classes)
    _try_metric(metric, classes)


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


def _try_evaluated(metric: Metric, classes: int) -> None:
    """Makes a metric as the Evaluator does; TFMA gives Keras's the ids of classes."""
    name = metric.class_name
    known = {*dir(tf.keras.metrics), *metric_types.registered_metrics()}
    if name not in known:
        what = f"neither TFMA nor tf_keras.metrics has a class {name!r}"
        raise _unknown(what, name, known)
    arguments = json.dumps({"name": metric.name, **metric.params})
    made = metric_specs.metric_instance(
        config_pb2.MetricConfig(class_name=name, config=arguments)
    )
    if isinstance(made, tf.keras.metrics.Metric):
        _try_metric(made, classes)


def _check_watched(watching: Watching, names: Sequence[str]) -> None:
    """Checks a metric that training is stopped by; ``names`` are empty if unknown."""
    metric, known = watching.metric, [*names, *(f"val_{name}" for name in names)]
    if known and metric not in known:
        raise _unknown(f"there is no metric {metric!r}", metric, known)
    if watching.mode == "auto" and direction_of(metric) is None:
        what = f"whether more or less of {metric!r} is better is not known"
        raise ConfigError(f"{what}: write mode: min or max beside it")


def _check_callback(callback: Callback) -> None:
    found = _check_takes(callback.function, **callback.params)
    base = tf.keras.callbacks.Callback
    if isinstance(found, type) and not issubclass(found, base):
        raise TypeError(f"{callback.function} is no subclass of {base}")


def _check_takes(reference: str, *args: Any, **kwargs: Any) -> object:
    """Imports ``package.module:name``, and refuses one that does not take arguments."""
    found = load_function(reference)
    try:
        inspect.signature(found).bind(*args, **kwargs)
    except TypeError as error:
        raise TypeError(f"{reference} cannot be called: {error}") from error
    return found


def _check_model(model: str) -> None:
    known = [name for name in vars(tf.keras.applications) if name[:1].isupper()]
    if ":" in model:
        _check_takes(model, "the inputs", "the parameters")
    elif model not in (*BUNDLED_MODELS, *known):
        what = f"neither Sluice nor tf.keras.applications has a model {model!r}"
        raise _unknown(what, model, [*BUNDLED_MODELS, *known])


def _check_weights(config: Config) -> None:
    file = config.weights_file
    if file and not file.is_file() and hasattr(tf.keras.applications, config.model):
        url, md5 = find_published(config.model)
        what = f"there is no file {file}; nothing is downloaded by itself"
        checked = f" (MD5 {md5})" if md5 else ""
        raise ConfigError(what, hint=f"download {url}{checked}")
