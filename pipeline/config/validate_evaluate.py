"""Validates a config's ``evaluate``: metrics fit the task, thresholds the metrics.

A threshold on a metric that is not computed would otherwise fail after training.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tensorflow_metadata.proto.v0 import schema_pb2

from components.model_verdict.threshold import EXAMPLES_PER_CLASS
from pipeline.config.evaluate import Evaluate, Metric, Threshold
from pipeline.config.metrics import METRICS, MetricClass, Task, result_name
from pipeline.config.origin import KeyPath
from pipeline.config.problems import Problems
from pipeline.config.yaml_values import describe
from schemas import loader
from sluice.errors import bounded, did_you_mean

_SUGGESTED_FIRST = (
    "AUC",
    "BinaryAccuracy",
    "Precision",
    "Recall",
    "SparseCategoricalAccuracy",
    "SparseCategoricalCrossentropy",
    "ExampleCount",
)


def check_evaluate(
    evaluate: Evaluate, schema: schema_pb2.Schema, classes: int, problems: Problems
) -> tuple[Metric, ...]:
    """Adds problems of metrics, slices and thresholds.

    The number of classes is less than 2 if it is not known. Returns the metrics with
    the names that TFMA will give their results.
    """
    metrics = _check_metrics(evaluate.metrics, classes, problems)
    features = {feature.name: feature for feature in schema.feature}
    _check_slices(evaluate.slices, features, problems)
    _check_thresholds(evaluate, metrics, features, schema, problems)
    return metrics


def _check_metrics(
    metrics: Sequence[Metric], classes: int, problems: Problems
) -> tuple[Metric, ...]:
    named: dict[str, Metric] = {}
    for index, metric in enumerate(metrics):
        path: KeyPath = ("evaluate", "metrics", index)
        row = METRICS.get(metric.class_name)
        if row is None:
            hint = did_you_mean(metric.class_name, METRICS)
            problems.warn(
                path,
                f"{metric.class_name!r} is looked up in TFMA when the run starts"
                + (f"; {hint}" if hint else ""),
            )
        else:
            # With class_id or top_k, a two-class metric is meaningful for more classes.
            chosen = row.pooled and metric.params.keys() & {"class_id", "top_k"}
            if classes >= 2 and not chosen:
                _check_task(path, metric.class_name, row, classes, problems)
            _check_params(path, metric, row, problems)
        if "name" in metric.params:
            problems.add(
                (*path, "params", "name"),
                "a metric's name does not belong in its params",
                hint=f"{{class: {metric.class_name}, name: ...}}",
            )
        name = metric.name or result_name(metric.class_name)
        if name == EXAMPLES_PER_CLASS:
            problems.add(
                path,
                f"the name {name!r} is reserved: every evaluation has such a metric",
                hint=f"rename this one: {{class: {metric.class_name}, name: {name}_2}}",
            )
        elif name in named:
            problems.add(
                path,
                f"two metrics are called {name!r}",
                hint=f"rename this one: {{class: {metric.class_name}, name: {name}_2}}",
            )
        named[name] = metric.model_copy(update={"name": name})
    return tuple(named.values())


def _check_task(
    path: KeyPath, class_name: str, row: MetricClass, classes: int, problems: Problems
) -> None:
    task: Task = "binary" if classes == 2 else "multiclass"
    if task in row.tasks:
        return
    fitting = [name for name in _SUGGESTED_FIRST if task in METRICS[name].tasks]
    fitting += [n for n, r in METRICS.items() if task in r.tasks and n not in fitting]
    problems.add(
        path,
        f"the metric {class_name!r} does not fit a label of {classes} classes",
        expected="one of " + ", ".join(bounded(fitting, 8)),
        actual="a metric for two classes; for more, TFMA pools one-against-the-rest "
        "predictions, most of which are easy negatives"
        if row.pooled
        else f"a metric for {' and '.join(row.tasks)} labels",
    )


def _check_params(
    path: KeyPath, metric: Metric, row: MetricClass, problems: Problems
) -> None:
    for param in metric.params:
        if param != "name" and param not in row.params:
            what = f"the metric {metric.class_name!r} has no parameter {param!r}"
            problems.unknown((*path, "params", param), what, param, row.params)
    for param in row.required:
        if param not in metric.params:
            problems.add(
                path,
                f"the metric {metric.class_name!r} needs the parameter {param!r}",
                hint=f"{{class: {metric.class_name}, params: {{{param}: 0.9}}}}",
            )


def _check_slices(
    slices: Sequence[Sequence[str]],
    features: Mapping[str, schema_pb2.Feature],
    problems: Problems,
) -> None:
    for index, names in enumerate(slices):
        for position, name in enumerate(names):
            path: KeyPath = ("evaluate", "slices", index, position)
            if name not in features:
                problems.unknown_feature(path, name, features)
            elif name in names[:position]:
                problems.add(path, f"the feature {name!r} is crossed with itself")
            elif features[name].type == schema_pb2.FLOAT:
                problems.warn(
                    path, f"{name!r} is FLOAT: each of its values becomes a slice"
                )


def _check_thresholds(
    evaluate: Evaluate,
    metrics: Sequence[Metric],
    features: Mapping[str, schema_pb2.Feature],
    schema: schema_pb2.Schema,
    problems: Problems,
) -> None:
    named = {metric.name: metric for metric in metrics}
    sliced = [set(names) for names in evaluate.slices]
    seen: set[tuple[str, str, str]] = set()
    for index, threshold in enumerate(evaluate.thresholds):
        path: KeyPath = ("evaluate", "thresholds", index)
        metric = named.get(threshold.metric)
        if metric is None:
            what = f"no metric of this config is called {threshold.metric!r}"
            names = map(str, named)
            problems.unknown((*path, "metric"), what, threshold.metric, names)
        elif "class_id" in metric.params:
            problems.add(
                (*path, "metric"),
                f"{threshold.metric!r} is of one class (class_id): no limits allowed",
                hint="slice by the label instead, or set a threshold on another metric",
            )
        _check_slice((*path, "slice"), threshold, features, sliced, schema, problems)
        for limit in _limits(threshold):
            key = (threshold.metric, repr(threshold.slice), limit)
            if key in seen:
                problems.add(
                    path,
                    f"there are two thresholds on the {limit} of "
                    f"{threshold.metric!r} for the same slice",
                    hint="keep one of them",
                )
            seen.add(key)


def _limits(threshold: Threshold) -> list[str]:
    limits = ("lower_bound", "upper_bound", "change")
    return [limit for limit in limits if getattr(threshold, limit) is not None]


def _check_slice(
    path: KeyPath,
    threshold: Threshold,
    features: Mapping[str, schema_pb2.Feature],
    sliced: Sequence[set[str]],
    schema: schema_pb2.Schema,
    problems: Problems,
) -> None:
    names = list(threshold.slice or ())
    unknown = [name for name in names if name not in features]
    for name in unknown:
        problems.unknown_feature(path, name, features)
    if not names or unknown:
        return
    if set(names) not in sliced:
        listed = ", ".join(names)
        problems.add(
            path,
            f"there are no slices of {' x '.join(names)}",
            expected="the same features in evaluate.slices",
            hint=f"add [{listed}] to evaluate.slices",
        )
    if isinstance(threshold.slice, dict):
        for name, value in threshold.slice.items():
            _check_value((*path, name), value, features[name], schema, problems)


def _check_value(
    path: KeyPath,
    value: int | str,
    feature: schema_pb2.Feature,
    schema: schema_pb2.Schema,
    problems: Problems,
) -> None:
    text = feature.type == schema_pb2.BYTES
    if isinstance(value, str) != text:
        problems.add(
            path,
            f"the value does not have the type of {feature.name!r}",
            expected="a string" if text else "a whole number",
            actual=describe(value),
            hint=f'quote it: "{value}"' if text else None,
        )
        return
    known = loader.class_values(schema, feature.name)
    if known is not None and value not in known:
        problems.add(
            path,
            f"{value!r} is not in the domain of {feature.name!r}",
            expected="one of " + ", ".join(bounded([str(v) for v in known], 12)),
            hint=did_you_mean(value, known) if text else None,
        )
