"""Checks of a training before its run: what only TensorFlow and the user's code know.

Creates what the config gives parameters to as the Trainer will, and imports the user's
model and callbacks without calling them. What needs no TensorFlow is checked by
``pipeline.config``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import tensorflow as tf

from pipeline.config.config import Config
from pipeline.config.origin import KeyPath
from pipeline.config.problems import Problems
from pipeline.config.train import KerasObject, Train
from pipeline.training.build import load_function
from pipeline.training.compile import (
    CompileSettings,
    make_loss,
    make_metrics,
    make_optimizer,
)
from pipeline.training.strategy.devices import choose_gpus
from sluice.errors import SluiceError

_CALLBACK = tf.keras.callbacks.Callback


def check_training(config: Config) -> None:
    """Checks devices, optimizer, loss, metrics, model and callbacks.

    Starts TensorFlow in this process, which must not be forked later.

    Raises:
      ConfigError: lists every problem with file, line and key path.
    """
    train, problems = config.train, Problems(config.origin)
    try:
        choose_gpus(train.devices.visible)
    except SluiceError as error:
        problems.add_error(("train", "devices", "visible"), error)
    _check_keras_objects(train, len(config.label.classes or ()), problems)
    if ":" in config.model:
        _check_callable(config.model, (None, {}), {}, ("model",), problems)
    for index, callback in enumerate(train.callbacks):
        path = ("train", "callbacks", index, "function")
        params = callback.params
        found = _check_callable(callback.function, (), params, path, problems)
        if isinstance(found, type) and not issubclass(found, _CALLBACK):
            problems.add(
                path,
                f"the class {callback.function} is not a callback",
                expected="a subclass of tf.keras.callbacks.Callback, or a function "
                "that returns one",
            )
    problems.raise_if_any()


def _check_keras_objects(train: Train, classes: int, problems: Problems) -> None:
    settings = CompileSettings.from_config(train.model_dump())
    made: list[tuple[KeyPath, KerasObject | None, Callable[[], Any]]] = [
        (("train", "optimizer"), train.optimizer, partial(_try_optimizer, settings)),
        (("train", "loss"), train.loss, partial(_try_loss, settings, classes)),
    ]
    for index, metric in enumerate(train.metrics or ()):
        create = partial(make_metrics, [metric.model_dump()], classes)
        made.append((("train", "metrics", index), metric, create))
    for path, given, make in made:
        if given is None or not given.params:
            continue
        try:
            make()
        except SluiceError as error:
            problems.add_error(path, error)
        except Exception as error:  # Keras finds some values in their first use.
            problems.add(
                path,
                f"{given.class_name} fails with these params",
                actual=str(error).partition("\n")[0],
            )


def _try_optimizer(settings: CompileSettings) -> None:
    optimizer = make_optimizer(settings, 0.001)
    variable = tf.Variable([1.0])
    optimizer.build([variable])
    optimizer.apply_gradients([(tf.constant([1.0]), variable)])


def _try_loss(settings: CompileSettings, classes: int) -> None:
    units = 1 if classes == 2 else classes
    probabilities = tf.fill([1, units], 1.0 / classes)
    make_loss(settings.loss, classes)(tf.zeros([1, 1], tf.int64), probabilities)


def _check_callable(
    reference: str,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    path: KeyPath,
    problems: Problems,
) -> Any:
    """Imports ``package.module:name`` and checks that it takes some arguments.

    Returns:
      What it names; None if it cannot be called so.
    """
    try:
        found = load_function(reference)
    except Exception as error:  # The user's code may raise anything.
        what = f"{reference} cannot be imported"
        problems.add(path, what, actual=f"{type(error).__name__}: {error}")
        return None
    try:
        inspect.signature(found).bind(*args, **kwargs)
    except TypeError as error:
        problems.add(path, f"{reference} cannot be called", actual=str(error))
        return None
    except ValueError:  # It is built in, without a signature.
        pass
    return found
