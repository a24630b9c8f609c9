"""Checks what a config names by making it: objects of Keras and TFMA, the user's code.

A preprocessing function of the user's own is traced and a model is built, so that a
forgotten label or another output shape is refused before Transform reads all data.

It is what the nodes will do hours later, so the libraries themselves say what is wrong.
A loss or metric is also computed for right and for wrong predictions: one that does not
fit the number of classes gives a number all the same, but the same one for both.
"""

from __future__ import annotations

import inspect
import os
import sys
import warnings
from collections.abc import Callable
from contextlib import redirect_stdout, suppress
from functools import partial
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow_model_analysis.metrics import metric_specs, metric_types

from components import regression_metrics
from pipeline.checks.traced_preprocessing import TracedPreprocessing
from pipeline.config.config import BUNDLED_MODELS, Config
from pipeline.config.label import Label
from pipeline.config.problems import KeyPath, Problems
from pipeline.config.train import KerasObject, Train
from pipeline.graph.eval_config import eval_config
from pipeline.training.build import build_model, load_function, model_inputs
from pipeline.training.compile import make_loss, make_metrics, make_optimizer
from pipeline.training.keras_of import keras_of
from pipeline.training.strategy.distribution import Distribution
from schemas.loader import load
from sluice.errors import ConfigError, SluiceError, did_you_mean
from sluice.metrics import FOR_NUMBERS
from sluice.patches.tensorflow import exclude_keras_from_autograph
from sluice.secrets import are_known, redact_output, resolve

_TWO_CLASSES = Label(feature="label", classes=(0, 1))
_TFMAS_OWN = _TWO_CLASSES.model_copy(update={"task": "multi_label"})


def check_objects(config: Config) -> None:
    """Makes optimizer, loss and metrics, and imports the user's callbacks.

    Preprocessing of the user's own is traced, and a model of their own is built of it.
    This process sees no GPU any more, whose memory is for the Trainer's.

    Raises:
      ConfigError: lists every problem with file, line and key path.
    """
    exclude_keras_from_autograph()
    with suppress(RuntimeError):  # TensorFlow has started.
        tf.config.set_visible_devices([], "GPU")
    problems, train = Problems(config.origin), config.train
    attempt, label = partial(_attempt, problems), config.label
    transformed = None
    if config.preprocessing or config.has_own_model:
        transformed = attempt(("preprocessing",), _trace_preprocessing, config)
    keras = attempt(("model",), _check_model, config, transformed) or tf.keras
    for index, export in enumerate(config.export):
        if export.format == "tfjs" and keras is not tf.keras:
            problems.add(("export", index), "TF.js does not read models of Keras 3")
    attempt(("model_params", "weights"), _check_weights, config)
    attempt(("train", "optimizer"), _try_optimizer, train, keras)
    attempt(("train", "loss"), _try_loss, train.loss, label, keras)
    for index, spec in enumerate(train.metrics or ()):
        attempt(("train", "metrics", index), _try_trained, spec, label, keras)
    for index, callback in enumerate(train.callbacks):
        takes = partial(_check_takes, callback.function, **callback.params)
        attempt(("train", "callbacks", index), takes)
    for index, metric in enumerate(config.evaluate.metrics):
        of_any = metric.model_copy(update={"target": None})
        only = config.evaluate.model_copy(update={"metrics": (of_any,)})
        # As TFMA has it, also where ours counts the predicted class.
        made_for = label if label.task == "regression" else _TFMAS_OWN
        evaluated = eval_config(only, made_for).metrics_specs[0].metrics[0]
        # An average is of two classes at a time.
        of = _TWO_CLASSES if metric.average else label
        is_of_target = metric.target in (label.targets or ())
        path = ("evaluate", "metrics", index)
        attempt(path, _try_evaluated, evaluated, of, is_of_target)
    problems.raise_if_any()
    _check_watched(config, problems)
    problems.raise_if_any()


def _attempt(
    problems: Problems, path: KeyPath, check: Callable[..., Any], *args: Any
) -> Any:
    """Returns the result of a check, or adds what it raises as a problem of a key."""
    try:
        # The user's code may print; stdout is for the answer of a verb.
        with warnings.catch_warnings(), redirect_stdout(sys.stderr):
            warnings.simplefilter("ignore")  # Keras warns of what is refused here.
            return check(*args)
    except SluiceError as error:
        problems.add_error(path, error)
    except Exception as error:  # A class, or a user's module, may raise anything.
        # Keras names the layer, and gives the reason below.
        lines, hint = [line for line in str(error).split("\n") if line], None
        first = " ".join(lines[: 2 if "when calling layer" in str(error) else 1])
        if isinstance(error, AttributeError) and inspect.ismodule(error.obj):
            hint = did_you_mean(error.name, dir(error.obj))
        problem = problems.add(path, f"{type(error).__name__}: {first}", hint=hint)
        problem.__cause__ = error
    return None


def _try_optimizer(train: Train, keras: Any) -> None:
    optimizer = make_optimizer(train, 0.001, keras)
    variable = getattr(keras, "Variable", tf.Variable)([1.0])
    # Keras finds some values in their first use.
    optimizer.build([variable])
    optimizer.apply_gradients([(tf.constant([1.0]), variable)])


def _try_loss(spec: KerasObject | None, label: Label, keras: Any) -> None:
    if spec and spec.params.get("from_logits"):
        raise ValueError("models return probabilities: remove from_logits")
    loss = make_loss(spec, label, keras)
    labels, right = _right_predictions(label)
    if label.task == "regression":  # Of z-scores, half of which are below 0.
        labels, right = labels / 100 - 3, right / 100 - 3
    for i, wrong in enumerate(right[::-1]):
        if not loss(labels[[i]], right[[i]]) < loss(labels[[i]], wrong[None]):
            raise ValueError(
                f"{type(loss).__name__} of a right prediction is not less than of a "
                f"wrong one: it is not for {_described(label)}"
            )
    is_own = spec is not None and ":" in spec.class_name
    if label.task == "regression" and not is_own:
        shifted = loss(labels + 5, right[::-1] + 5)
        if not np.isclose(loss(labels, right[::-1]), shifted, rtol=1e-3):
            raise ValueError(
                f"{type(loss).__name__} depends on where zero is, and a loss is of "
                "z-scores: train with MeanAbsoluteError, and evaluate RelativeError"
            )


def _try_trained(spec: KerasObject, label: Label, keras: Any) -> None:
    (metric,) = make_metrics([spec], label, keras)
    if ":" in spec.class_name:
        _value_of(metric, *_examples(label))
    else:
        _try_metric(metric, label)


def _try_evaluated(metric: Any, label: Label, is_of_target: bool = False) -> None:
    """Makes a metric as the Evaluator does; TFMA gives Keras's the ids of classes.

    One of the user's own TFMA makes by ``get_config``, and adds the weights of batches.
    """
    name, module = metric.class_name, metric.module
    is_own = module not in ("", regression_metrics.__name__)
    registered = metric_types.registered_metrics()
    is_regression = label.task == "regression"
    if is_own and name in registered:
        what = f"TFMA has a {name} too, and would compute that instead"
        raise ConfigError(what, hint="give your class another name")
    known = {*dir(tf.keras.metrics), *(() if is_of_target else registered)}
    if not module and name not in known:
        what = f"neither TFMA nor tf_keras.metrics has a class {name!r}"
        if is_of_target:
            what = f"tf_keras.metrics has no class {name!r} to compute of one target"
        raise ConfigError(what, hint=did_you_mean(name, known))
    made = metric_specs.metric_instance(metric)
    is_keras = isinstance(made, tf.keras.metrics.Metric)
    if is_keras and not is_own:
        _try_metric(made, label)
    if is_own or (is_regression and is_keras):
        _try_sums(made, label)
    elif is_regression and name not in FOR_NUMBERS:
        hint = "take RootMeanSquaredError, MeanAbsoluteError, RelativeError or R2Score"
        raise ConfigError(f"{name} is not for a regression", hint=hint)


def _try_sums(made: Any, label: Label) -> None:
    """Computes a Keras metric as a whole, and as TFMA adds that of batches."""
    if not isinstance(made, tf.keras.metrics.Metric):
        raise TypeError(f"{type(made).__name__} is not a tf.keras.metrics.Metric")
    examples, weights = _examples(label), []
    whole = _value_of(made, *examples)
    copy = type(made).from_config(made.get_config())
    for batch in (slice(2), slice(2, 3)):
        _value_of(copy, *(values[batch] for values in examples))
        weights.append(copy.get_weights())
    # TFMA sets those of a new one, which some metrics do not have yet.
    copy = type(made).from_config(made.get_config())
    copy.set_weights([first + second for first, second in zip(*weights, strict=True)])
    added = float(copy.result())
    if not np.isclose(whole, added, rtol=1e-4, equal_nan=True):
        raise ConfigError(
            f"{type(made).__name__} is {whole:g} of all examples, but {added:g} where "
            "TFMA makes it by get_config and adds the weights of two batches",
            hint="keep sums, such as of errors and of examples, divide in result(), "
            "and return all parameters in get_config()",
        )


def _examples(label: Label) -> tuple[Any, Any, Any]:
    """Returns labels, predictions and weights of three examples."""
    labels, right = _right_predictions(label)
    return labels[[0, 1, 1]], right[[0, 1, 0]], np.ones((3, 1), np.float32)


def _value_of(metric: Any, *examples: Any) -> float:
    metric.reset_state()
    metric.update_state(*examples)
    return float(metric.result())


def _try_metric(metric: Any, label: Label) -> None:
    labels, right = _right_predictions(label)
    values = [_value_of(metric, labels, x) for x in (right, right[::-1])]
    if np.isclose(values[0], values[1], rtol=1e-5, equal_nan=True):
        raise ValueError(
            f"{type(metric).__name__} is {values[0]:g} for right and for wrong "
            f"predictions: it is not for {_described(label)}"
        )


def _described(label: Label) -> str:
    if label.task == "classification":
        return f"{len(label.class_names)} classes"
    return f"a {label.task}" if label.task == "regression" else "several labels"


def _right_predictions(label: Label) -> tuple[Any, Any]:
    """Returns labels and predictions of two examples, of class 0 and of class 1.

    In reverse order they are wrong, with the least probability for the label.
    """
    classes = len(label.class_names)
    if label.task == "regression":
        return np.array([[100.0], [200.0]]), np.array([[110.0], [190.0]])
    if label.task == "classification" and classes == 2:
        return np.array([[0], [1]]), np.array([[0.1], [0.9]], np.float32)
    rows = np.full((2, classes), 0.1 / max(1, classes - 2), np.float32)
    rows[:, :2] = [[0.9, 1e-6], [1e-6, 0.9]]
    ids = np.array([[0], [1]])
    if label.task == "multi_label":
        return np.eye(classes, dtype=np.float32)[:2], rows
    return ids, rows


def _check_takes(reference: str, /, *args: Any, **kwargs: Any) -> None:
    """Imports ``package.module:name``, and refuses one that does not take arguments."""
    found = load_function(reference)
    try:
        inspect.signature(found).bind(*args, **kwargs)
    except TypeError as error:
        raise TypeError(f"{reference} cannot be called: {error}") from error


def _trace_preprocessing(config: Config) -> TracedPreprocessing:
    """Traces the preprocessing, and checks what it returns."""
    schema = load(config.schema_path)
    function, features = config.preprocessing_path, config.feature_set
    transformed = TracedPreprocessing(function, schema, features)
    transformed.check()
    return transformed


def _check_watched(config: Config, problems: Problems) -> None:
    """Adds metrics that are watched and do not exist.

    A model or callback of the user's own may add others: then the first epoch decides.
    """
    train = config.train
    if config.has_own_model or train.callbacks:
        return
    made = make_metrics(train.metrics, config.label)
    names = ["loss", *(metric.name for metric in made)]
    known = [*names, "learning_rate", *(f"val_{name}" for name in names)]
    watching: dict[KeyPath, Any] = {
        ("train", "early_stopping", "metric"): train.early_stopping,
        ("train", "reduce_on_plateau", "metric"): train.reduce_on_plateau,
        ("tune", "objective", "metric"): config.tune and config.tune.objective,
    }
    for path, section in watching.items():
        if section and section.metric not in known:
            what = f"there is no metric {section.metric!r}"
            problems.unknown(path, what, section.metric, known)


def _check_model(config: Config, transformed: TracedPreprocessing | None) -> Any:
    """Checks the model's name or function; one of the user's own is built.

    Returns the Keras of one that is built.
    """
    known = [name for name in vars(tf.keras.applications) if name[:1].isupper()]
    params = config.model_params
    if config.is_application and config.model not in known:
        what = f"neither Sluice nor tf.keras.applications has a model {config.model!r}"
        hint = did_you_mean(config.model, [*BUNDLED_MODELS, *known])
        raise ConfigError(what, hint=hint)
    _check_takes(config.model_path, "the inputs", "the parameters")
    if config.has_own_model and transformed:
        kind = "multi_worker" if config.train.processes else "one_device"
        if config.train.strategy != "auto":
            kind = config.train.strategy
        here = Distribution(tf.distribute.get_strategy(), kind, "", 1, 1)
        inputs = model_inputs(config.feature_set, transformed)
        params = resolve(params)
        if are_known():
            redact_output()
        return keras_of(build_model(config.model_path, params, inputs, here))
    return None


def _check_weights(config: Config) -> None:
    file = config.weights_file
    if file and not os.path.isfile(file):
        what = f"there is no file {file}; nothing is downloaded by itself"
        make = f"import tf_keras; tf_keras.applications.{config.model}"
        hint = f'python -c "{make}(include_top=False)" downloads one to ~/.keras/models'
        raise ConfigError(what, hint=hint)
