"""Checks metrics that are not in ``METRICS``, by creating them with TFMA."""

from __future__ import annotations

import inspect
import json
from typing import Any

from pipeline.config.config import Config
from pipeline.config.metrics import METRICS
from pipeline.config.origin import KeyPath
from pipeline.config.problems import Problems
from sluice.errors import did_you_mean


def check_metrics(config: Config) -> None:
    """Creates each metric as the Evaluator will, before anything runs.

    Imports TensorFlow where a metric is not one of ``METRICS``.

    Raises:
      ConfigError: TFMA and Keras have no such class, or it rejects the params.
    """
    problems = Problems(config.origin)
    for index, metric in enumerate(config.evaluate.metrics):
        if metric.class_name in METRICS:
            continue
        path: KeyPath = ("evaluate", "metrics", index)
        classes = metric_classes()
        if metric.class_name not in classes:
            problems.add(
                path,
                f"there is no metric {metric.class_name!r}",
                expected="a metric class of TFMA or tf_keras.metrics",
                hint=did_you_mean(metric.class_name, classes),
            )
            continue
        try:
            make_metric(metric.class_name, {"name": metric.name, **metric.params})
        except Exception as error:  # A class may raise anything.
            signature = inspect.signature(classes[metric.class_name])
            problems.add(
                path,
                f"the metric {metric.class_name!r} cannot be created",
                expected=f"{metric.class_name}{signature}",
                actual=str(error).partition("\n")[0],
            )
    problems.raise_if_any()


def metric_classes() -> dict[str, type]:
    """Returns all metric classes that TFMA finds, by name."""
    import tf_keras
    from tensorflow_model_analysis.metrics import metric_types

    keras = {
        name: kind
        for name, kind in vars(tf_keras.metrics).items()
        if inspect.isclass(kind) and issubclass(kind, tf_keras.metrics.Metric)
    }
    return {**keras, **metric_types.registered_metrics()}


def make_metric(class_name: str, arguments: dict[str, Any]) -> Any:
    """Returns an instance of a metric class, created by TFMA."""
    from tensorflow_model_analysis.metrics import metric_specs
    from tensorflow_model_analysis.proto import config_pb2

    return metric_specs.metric_instance(
        config_pb2.MetricConfig(
            class_name=class_name,
            config=json.dumps(arguments) if arguments else "",
        )
    )
