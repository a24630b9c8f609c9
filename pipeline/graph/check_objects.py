"""Checks what a config names by making it: objects of Keras and TFMA, the user's code.

It is what the nodes will do hours later, so the libraries themselves say what is wrong.
A loss or metric is also computed for right and for wrong predictions: one that does not
fit the number of classes gives a number all the same, but the same one for both.
"""

from __future__ import annotations

import inspect
import json
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow_model_analysis.metrics import metric_specs, metric_types
from tensorflow_model_analysis.proto import config_pb2

from pipeline.config.config import BUNDLED_MODELS, Config
from pipeline.config.evaluate import Metric
from pipeline.config.problems import KeyPath, Problems
from pipeline.config.train import EarlyStopping, KerasObject, ReduceOnPlateau, Train
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
    classes = len(config.label.classes or ())
    if trains_here:
        with _refusals_at(("train", "devices", "visible"), problems):
            choose_gpus(train.devices.visible)
    with suppress(RuntimeError):  # TensorFlow has started.
        tf.config.set_visible_devices([], "GPU")
    with _refusals_at(("model",), problems):
        _check_model(config.model)
    with _refusals_at(("model_params", "weights"), problems):
        _check_weights(config)
    with _refusals_at(("train", "optimizer"), problems):
        _check_class(train.optimizer, tf.keras.optimizers, "Optimizer")
        _try_optimizer(train)
    with _refusals_at(("train", "loss"), problems):
        if train.loss:
            _check_class(train.loss, tf.keras.losses, "Loss")
            _try_loss(make_loss(train.loss, classes), classes)
    names = ["loss", *(_name_of(metric) for metric in train.metrics or ())]
    if train.metrics is None:
        names += [metric.name for metric in make_metrics(None, classes)]
    for index, metric in enumerate(train.metrics or ()):
        with _refusals_at(("train", "metrics", index), problems):
            _check_class(metric, tf.keras.metrics, "Metric")
            (made,) = make_metrics([metric], classes)
            _try_metric(made, classes)
            if _name_of(metric) in names[: index + 1]:
                raise ValueError(f"two metrics are named {_name_of(metric)!r}")
    is_own = config.model not in BUNDLED_MODELS or train.callbacks
    for key in ("early_stopping", "reduce_on_plateau"):
        with _refusals_at(("train", key, "metric"), problems):
            _check_watched(getattr(train, key), [] if is_own else names)
    for index, callback in enumerate(train.callbacks):
        with _refusals_at(("train", "callbacks", index, "function"), problems):
            _check_callback(callback.function, callback.params)
    for index, evaluated in enumerate(config.evaluate.metrics):
        with _refusals_at(("evaluate", "metrics", index), problems):
            _try_evaluated(evaluated, classes)
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


def _check_class(item: KerasObject, module: Any, base: str) -> None:
    known = _classes(module, base)
    if item.class_name not in known:
        kind = f"tf.keras.{module.__name__.rpartition('.')[2]}"
        raise _unknown(f"{kind} has no class {item.class_name!r}", item, known)
    for name in _SET_BY_TRAINER & item.params.keys():
        raise TypeError(
            f"{item.class_name} gets {name!r} from the Trainer, see 'train'"
        )


def _classes(module: Any, base: str) -> dict[str, type]:
    return {
        name: found
        for name, found in vars(module).items()
        if inspect.isclass(found)
        and issubclass(found, getattr(module, base))
        and name != base
    }


def _unknown(what: str, name: object, known: Iterable[str]) -> ConfigError:
    name = getattr(name, "class_name", name)
    return ConfigError(what, hint=did_you_mean(name, known) or ", ".join(known))


def _try_optimizer(train: Train) -> None:
    optimizer = make_optimizer(train, 0.001)
    variable = tf.Variable([1.0])
    # Keras finds some values in their first use.
    optimizer.build([variable])
    optimizer.apply_gradients([(tf.constant([1.0]), variable)])


def _try_loss(loss: Any, classes: int) -> None:
    right, wrong = _predictions(classes)
    for k in (0, 1):
        label = tf.constant([[k]], tf.int64)
        values = [float(loss(label, rows[k : k + 1])) for rows in (right, wrong)]
        if not values[0] < values[1]:
            raise ValueError(
                f"{type(loss).__name__} of a right prediction is not less than of a "
                f"wrong one: it is not for {classes} classes"
            )


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
    keras = _classes(tf.keras.metrics, "Metric")
    known = {**keras, **metric_types.registered_metrics()}
    if metric.class_name not in known:
        what = f"neither TFMA nor tf_keras.metrics has a class {metric.class_name!r}"
        raise _unknown(what, metric, known)
    arguments = json.dumps({"name": metric.name, **metric.params})
    made = metric_specs.metric_instance(
        config_pb2.MetricConfig(class_name=metric.class_name, config=arguments)
    )
    if isinstance(made, tf.keras.metrics.Metric):
        _try_metric(made, classes)


def _name_of(metric: KerasObject) -> str:
    """Returns the name that a metric of training has in the history."""
    return metric.params.get("name") or result_name(metric.class_name)


def _check_watched(
    watching: EarlyStopping | ReduceOnPlateau | None, names: Sequence[str]
) -> None:
    """Checks a metric that training is stopped by; ``names`` are empty if unknown."""
    if watching is None:
        return
    metric, known = watching.metric, [*names, *(f"val_{name}" for name in names)]
    if known and metric not in known:
        raise _unknown(f"there is no metric {metric!r}", metric, known)
    if watching.mode == "auto" and direction_of(metric) is None:
        what = f"whether more or less of {metric!r} is better is not known"
        raise ConfigError(f"{what}: write mode: min or max beside it")


def _check_callback(reference: str, params: Mapping[str, Any]) -> None:
    found = _check_takes(reference, **params)
    base = tf.keras.callbacks.Callback
    if isinstance(found, type) and not issubclass(found, base):
        raise TypeError(f"{reference} is no subclass of {base}")


def _check_takes(reference: str, *args: Any, **kwargs: Any) -> Callable[..., Any]:
    """Imports ``package.module:name``, and refuses one that does not take arguments."""
    found: Callable[..., Any] = load_function(reference)
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
        raise ConfigError(
            f"there is no file {file}; nothing is downloaded by itself",
            hint=f"download {url}" + (f" (MD5 {md5})" if md5 else ""),
        )
