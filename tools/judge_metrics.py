"""Determines which labels each metric of TFMA and Keras fits.

``python -m tools.judge_metrics [NAME...]`` runs TFMA on a tiny problem with two classes
and on one with seven, once for each metric class named, or for every one there is
(about 20 minutes on 2 cores), and prints the row that ``pipeline/config/metrics.py``
would have of it. That TFMA returns a number proves little: on seven classes it hands
integer labels to ``kl_divergence`` as if they were amounts. So a metric is fit for a
task only if

* it is a finite number under the class's own name (no plots, matrices, differences);
* it tells good predictions from poor ones, or is about the examples alone;
* for more than two classes, it stays the same when the classes are numbered anew;
* for more than two classes, it is not a two-class metric that TFMA computes by
  pooling the one-against-the-rest answers of all classes. Such a number is high for
  any model: of ten classes, nine answers in ten are an easy no.
"""

from __future__ import annotations

import argparse
import inspect
import json
import math
import os
import sys
from typing import TYPE_CHECKING

from pipeline.config.metrics import MetricClass, Task, result_name
from pipeline.graph.check_metrics import make_metric, metric_classes

if TYPE_CHECKING:
    import pandas as pd

_EXAMPLES_ALONE = {"ExampleCount", "MeanLabel", "Prevalence", "WeightedExampleCount"}
# Over all examples and outputs, by their definition.
_MEANS_OVER_ALL = {
    "ExampleCount",
    "MeanAbsoluteError",
    "MeanAbsolutePercentageError",
    "MeanSquaredError",
    "MeanSquaredLogarithmicError",
    "WeightedExampleCount",
}
_SAMPLE_ARGUMENTS = dict.fromkeys(
    ("false_positive_rate", "precision", "recall", "sensitivity", "specificity"), 0.6
)


def describe_classes() -> dict[str, MetricClass]:
    """Returns all metric classes that can be made, with ``tasks`` still empty.

    Those whose results have another name than ``result_name`` says are left out, as
    TFMA writes nothing under it. Imports TensorFlow.
    """
    os.environ["TF_USE_LEGACY_KERAS"] = "1"
    rows = {}
    for class_name, kind in sorted(metric_classes().items()):
        params, required = _arguments(kind)
        if set(required) - set(_SAMPLE_ARGUMENTS):
            continue
        row = MetricClass((), params=params, required=required)
        try:
            name = make_metric(class_name, _sample_arguments(row)).name
        except Exception:  # Abstract, or its default arguments are refused.
            continue
        if name == result_name(class_name):
            rows[class_name] = row
    return rows


def judge(class_name: str, row: MetricClass) -> MetricClass:
    """Returns the row with what running TFMA shows that the metric is fit for."""
    two = _evaluate(class_name, row, _binary())
    many = _evaluate(class_name, row, _multiclass())
    tasks: list[Task] = []
    if two is not None and _tells(class_name, two):
        tasks.append("binary")
    pooled = False
    if many is not None and _same(many["good"], many["renumbered"]):
        pooled = (
            two is not None
            and _same(many["good"], two["flat"])
            and class_name not in _MEANS_OVER_ALL
        )
        if not pooled and _tells(class_name, many):
            tasks.append("multiclass")
    return MetricClass(tuple(tasks), pooled, row.params, row.required)


def _arguments(kind: type) -> tuple[tuple[str, ...], tuple[str, ...]]:
    parameters = [
        parameter
        for parameter in inspect.signature(kind).parameters.values()
        if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        and parameter.name not in ("name", "dtype")
    ]
    required = [p.name for p in parameters if p.default is p.empty]
    return tuple(p.name for p in parameters), tuple(required)


def _sample_arguments(row: MetricClass) -> dict[str, float]:
    return {name: _SAMPLE_ARGUMENTS[name] for name in row.required}


def _evaluate(
    class_name: str, row: MetricClass, examples: pd.DataFrame
) -> dict[str, float] | None:
    """Returns the metric for each value of the column ``part``; None if there is none.

    A metric that fails may fail in many ways, all of which mean the same here; why it
    did is printed for whoever doubts the table.
    """
    import tensorflow_model_analysis as tfma
    from tensorflow_model_analysis.proto import config_pb2

    # tfma 0.52 (TFX 1.21) does not export these messages itself.
    config = config_pb2.EvalConfig(
        model_specs=[
            config_pb2.ModelSpec(prediction_key="prediction", label_key="label")
        ],
        metrics_specs=[
            config_pb2.MetricsSpec(
                metrics=[
                    config_pb2.MetricConfig(
                        class_name=class_name,
                        config=json.dumps(_sample_arguments(row)),
                    )
                ]
            )
        ],
        slicing_specs=[config_pb2.SlicingSpec(feature_keys=["part"])],
    )
    values = {}
    try:
        result = tfma.analyze_raw_data(examples, config)
        for ((_, part),), outputs in result.slicing_metrics:
            values[part] = float(
                outputs[""][""][result_name(class_name)]["doubleValue"]
            )
    except Exception as error:
        print(f"{class_name}: {error!r:.500}", file=sys.stderr, flush=True)
        return None
    return values


def _same(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=1e-5)


def _tells(class_name: str, values: dict[str, float]) -> bool:
    good, poor = values["good"], values["poor"]
    if not math.isfinite(good):
        return False
    return class_name in _EXAMPLES_ALONE or not math.isclose(good, poor, rel_tol=1e-3)


def _binary() -> pd.DataFrame:
    """Label 0 or 1, prediction [1]: the probability of class 1."""
    labels = [0, 1, 0, 1, 1, 0, 0, 0]
    probabilities = _probabilities(good=True)
    parts = {
        "good": (labels, [0.1, 0.8, 0.65, 0.3, 0.55, 0.2, 0.4, 0.05]),
        "poor": (labels, [0.8, 0.3, 0.6, 0.7, 0.1, 0.9, 0.75, 0.35]),
        "flat": (
            [int(label == k) for label in _LABELS for k in range(_CLASSES)],
            [probability for row in probabilities for probability in row],
        ),
    }
    return _frame({k: (x, [[p] for p in y]) for k, (x, y) in parts.items()})


# Enough classes that being among the best 5, Keras's default, says something.
_CLASSES = 7
_LABELS = [0, 0, 0, 0, 1, 1, 1, 2, 2, 3, 4, 5, 6, 6]
_RENUMBERED = [2, 5, 1, 4, 0, 3, 6]


def _multiclass() -> pd.DataFrame:
    """Label 0 to 6, prediction [7]: the probability of each class."""
    good = _probabilities(good=True)
    renumbered = [[row[_RENUMBERED.index(k)] for k in range(_CLASSES)] for row in good]
    return _frame(
        {
            "good": (_LABELS, good),
            "poor": (_LABELS, _probabilities(good=False)),
            "renumbered": ([_RENUMBERED[label] for label in _LABELS], renumbered),
        }
    )


def _probabilities(*, good: bool) -> list[list[float]]:
    """Returns rows that sum to 1, sure of a class: three in four right, or none."""
    rows = []
    for index, label in enumerate(_LABELS):
        weights = [float((5 * index + 3 * k) % _CLASSES + 1) for k in range(_CLASSES)]
        right = good and index % 4 > 0
        weights[label if right else (label + 1) % _CLASSES] += 40.0
        if not right:
            weights[label] = 0.1
        rows.append([weight / sum(weights) for weight in weights])
    return rows


def _frame(parts: dict[str, tuple[list, list]]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(
        [
            {"part": part, "label": label, "prediction": prediction}
            for part, (labels, predictions) in parts.items()
            for label, prediction in zip(labels, predictions, strict=True)
        ]
    )


def main() -> None:
    """Prints the rows of the metric classes that are fit for something."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", help="metric classes; all by default")
    wanted = parser.parse_args().names
    for class_name, row in describe_classes().items():
        if not wanted or class_name in wanted:
            judged = judge(class_name, row)
            if judged.tasks or wanted:
                print(f'    "{class_name}": {judged},', flush=True)


if __name__ == "__main__":
    main()
