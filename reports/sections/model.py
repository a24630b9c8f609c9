"""Section Model: metrics per slice against the baseline, and how the model errs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from markupsafe import Markup

from reports import formats
from reports.charts.bars import Distribution, histogram_chart
from reports.charts.lines import Point, Series, line_chart
from reports.charts.svg import Axis
from reports.evaluation import (
    EXAMPLES,
    HISTOGRAM,
    OVERALL,
    PER_CLASS,
    effective_examples,
    overall_estimates,
    read_metrics,
)
from reports.feature_statistics import statistics
from reports.flips import against_baseline, example_table
from reports.metric_changes import SliceMetric, class_names, metrics_by_slice
from reports.read_run import RunData
from reports.sections import classification, curves
from reports.tables import Column, Header, Table, numbers
from sluice.numbers import signed_text
from sluice.uncertainty import MIN_EXAMPLES

_MAX_METRICS = 12
_BAND = {"high": ("90 %", 1), "median": ("median", 0), "low": ("10 %", 1)}
_LARGEST = "The largest errors"
_BARS = 24
# The metrics of a slice, by name.
_Metrics = Mapping[str, SliceMetric]


def build(run: RunData) -> dict[str, Any] | None:
    """Returns what the template shows; None if no model was evaluated."""
    evaluations = [
        _evaluation(run, *item) for item in enumerate(run.documents("metrics"))
    ]
    if not evaluations:
        return None
    passed = [x.passed for x in run.record.gates if x.gate == "model"]
    mistakes = run.documents("mistakes")
    return {
        "evaluations": evaluations,
        "passed": passed[0] if passed else None,
        "warns": any(x.result == "warn" for x in run.record.gate_rows("model")),
        "flips": against_baseline(run),
        "importance": [
            (x["importance"], _importance(i, x["importance"]))
            for i, x in enumerate((*mistakes, *run.documents("residuals")))
            if x.get("importance")
        ],
        "labels": [*map(classification.by_label, mistakes)],
        "regressions": [
            _regression(run, *item) for item in enumerate(run.documents("residuals"))
        ],
        "mistakes": [(item, _mistakes(i, item)) for i, item in enumerate(mistakes)],
    }


def _evaluation(run: RunData, index: int, document: dict[str, Any]) -> dict[str, Any]:
    slices = metrics_by_slice(document, run.record.config)
    overall = slices.pop(OVERALL, {})
    checks = [x for x in run.record.gate_rows("model") if x.limit_text]
    judged = [x.check.removesuffix(" change") for x in checks]
    names = [x for x in dict.fromkeys([*judged, *overall]) if x in overall]
    names = sorted(names, key=lambda name: name == EXAMPLES)
    has_baseline = any(x.before is not None for x in overall.values())
    has_reference = any(x.reference is not None for x in overall.values())
    primary = next((x for x in names if overall[x].after is not None), EXAMPLES)
    slices = dict(sorted(slices.items(), key=lambda item: _harm(item[1], primary)))
    predicted = (*run.documents("mistakes"), *run.documents("residuals"))
    split = next((str(item["split"]) for item in predicted), "")
    missing = _missing(run, split)
    order = f"by the change of {primary}, times the number of examples"
    order = order if has_baseline else f"by {primary}"
    arrays = [x for x in read_metrics(document) if x.slice == OVERALL]
    sizes = (len(x.array) for x in arrays if x.name == PER_CLASS)
    # The candidate first.
    histograms = sorted(
        ((x.model, x.array) for x in arrays if x.name == HISTOGRAM), reverse=True
    )
    effective = effective_examples(document)
    return {
        "node": document["node"],
        "weight": effective and run.record.config.get("train", {}).get("sample_weight"),
        "overall": _overall(
            index, [overall[x] for x in names], has_baseline, has_reference, split
        ),
        "slices": _slices(index, slices, names, has_baseline, missing)
        if slices
        else None,
        "served": _served(document, primary),
        "has_reference": has_reference,
        "order": order,
        "left_out": document["slices_left_out"],
        "classification": classification.build(
            document, dict(histograms), class_names(run, next(sizes, 0))
        ),
    }


def _served(document: Mapping[str, Any], metric: str) -> tuple[str, Markup] | None:
    """Returns name and line of the models served last, ending with the candidate."""
    known = overall_estimates(document).metrics.get(metric)
    if known is None or len(known.values) < 2:
        return None
    oldest_first = [*known.values.items()][::-1]
    names = [name for name, _ in oldest_first] + ["candidate"]
    values = [value for _, value in oldest_first] + [known.value]
    points = [Point(name, "info") for name in names]
    places = range(1, len(values) + 1)
    line = Series(metric, places, values, points=points)
    axis = Axis("model, the oldest first", low=1, high=len(values), whole=True)
    title = f"{metric} of the models served last, and of the candidate"
    return metric, line_chart(title, [line], axis, Axis())


def _harm(metrics: _Metrics, name: str) -> tuple[bool, float]:
    return metrics[name].harm if name in metrics else (True, math.inf)


def _overall(
    index: int,
    metrics: Sequence[SliceMetric],
    has_baseline: bool,
    has_reference: bool,
    split: str,
) -> Table:
    header: Header = ["Metric", numbers("Value")]
    header += [numbers("Reference")] if has_reference else []
    header += [numbers("Baseline"), numbers("Change")] if has_baseline else []
    rows: list[list[Any]] = []
    for item in metrics:
        row: list[Any] = [item.metric, item.shown]
        row += [item.reference] if has_reference else []
        row += [item.before, item.change] if has_baseline else []
        rows.append(row)
    caption = "Metrics of all examples" + (f" of {split}" if split else "")
    return Table(f"metrics-{index}", caption, header, rows)


def _slices(
    index: int,
    slices: Mapping[str, _Metrics],
    names: Sequence[str],
    has_baseline: bool,
    missing: Mapping[str, int],
) -> Table:
    """Returns a row per slice, and columns for each metric.

    Examples without the feature are in no slice: their number is in rows of their own.
    """
    shown = [name for name in names if name != EXAMPLES][:_MAX_METRICS]
    header: Header = ["Slice", numbers("Examples")]
    for name in shown:
        header += (
            [numbers(name), numbers("Change")] if has_baseline else [numbers(name)]
        )
    rows: list[list[Any]] = []
    for where, metrics in slices.items():
        examples = next(iter(metrics.values())).examples
        is_few = 0 < examples < MIN_EXAMPLES
        row: list[Any] = [_few(where) if is_few else where, examples]
        for name in shown:
            item = metrics.get(name)
            row.append(item and item.shown)
            row += [item and item.change] if has_baseline else []
        rows.append(row)
    nothing = [None] * (len(header) - 2)
    rows += [[f"{name}: missing", count, *nothing] for name, count in missing.items()]
    return Table(f"slices-{index}", "Metrics of each slice", header, rows)


def _missing(run: RunData, split: str) -> dict[str, int]:
    """Returns how many examples of a split lack a feature that is sliced by itself."""
    slices = run.record.config.get("evaluate", {}).get("slices", ())
    names = {names[0] for names in slices if len(names) == 1}
    return {
        feature.name: int(feature.numbers["missing"])
        for found in statistics(run)
        if found.split == split
        for feature in found.features
        if feature.name in names and feature.numbers["missing"]
    }


def _few(where: str) -> Markup:
    text = '<span class="value few">{}</span> <small>(few examples)</small>'
    return Markup(text).format(formats.shorten(where, 200))


def _mistakes(index: int, document: dict[str, Any]) -> Table | None:
    """Returns the most confident mistakes as rows; None for those with pictures."""
    columns: dict[str, Column | str] = {
        "true": "True class",
        "predicted": "Predicted",
        "probability": numbers("Probability", formats.percent),
        "true_probability": numbers("Of the true class", formats.percent),
    }
    caption, mistakes = "The most confident mistakes", document["mistakes"]
    if document.get("labels"):
        # An example with several classes has those that are true or predicted.
        mistakes = [{**item, "probabilities": _listed(item)} for item in mistakes]
        columns = {"true": "True classes", "predicted": "Predicted"}
        columns["probabilities"] = "Probabilities"
        caption = "The mistakes with the most wrong classes"
    return example_table(f"mistakes-{index}", caption, mistakes, columns)


def _importance(index: int, found: Mapping[str, Any]) -> Table:
    """Returns a row per feature: the mean change of the loss, and its range."""
    rise = partial(signed_text, digits=3)
    rows: list[list[Any]] = []
    for item in found["features"]:
        low, *_, high = sorted(item["changes"])
        mean = sum(item["changes"]) / len(item["changes"])
        spread = f"{rise(low)} to {rise(high)}"
        rows.append([formats.shorten(item["feature"], 80), mean, spread])
    header: Header = ["Feature", numbers("Rise", rise, bar=True), "Repeats"]
    caption = f"How much the {found['loss']} rises if a feature's values are permuted"
    return Table(f"importance-{index}", caption, header, rows, limit=20)


def _listed(item: Mapping[str, Any]) -> str:
    shares = item["probabilities"].items()
    return ", ".join(f"{name} {formats.percent(value)}" for name, value in shares)


def _regression(
    run: RunData, index: int, document: Mapping[str, Any]
) -> dict[str, Any]:
    """Returns the charts of each target, and the largest errors."""
    label, targets = document["privacy"]["label"], document["targets"]
    names = (run.record.config.get("label") or {}).get("targets") or [label]
    if len(names) != len(targets):  # None is shown, or the run is an earlier one.
        names = [f"{label}[{i}]" for i in range(len(targets))]
    largest = [_with_error(item, names) for item in document["largest"]]
    columns = {key: numbers(key.capitalize()) for key in ("true", "predicted", "error")}
    return {
        "document": document,
        "targets": [
            {"name": name, "charts": _charts(target)}
            for name, target in zip(names, targets, strict=True)
        ],
        "largest": largest,
        "table": example_table(f"errors-{index}", _LARGEST, largest, columns),
    }


def _with_error(item: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Returns an example with a number for each column, or text of several targets."""
    pairs = zip(item["predicted"], item["true"], strict=True)
    error = [predicted - true for predicted, true in pairs]
    shown = {**item, "error": error, "probability": None}
    for key in ("true", "predicted", "error"):
        numbers = map(formats.number, shown[key])
        several = [f"{name} {x}" for name, x in zip(names, numbers, strict=False)]
        shown[key] = shown[key][0] if len(error) == 1 else ", ".join(several)
    return shown


def _charts(target: Mapping[str, Any]) -> curves.Charts:
    by_value, title = target["by_value"], "Predictions by true value"
    lines = [
        Series(name, by_value["true"], by_value[key], style)
        for key, (name, style) in _BAND.items()
    ]
    every = [value for values in by_value.values() for value in values]
    true, predicted = (
        Axis(label, min(every), max(every)) for label in ("true value", "prediction")
    )
    band = line_chart(title, lines, true, predicted, diagonal=True, square=True)
    quantiles = target["quantiles"]
    shares = np.linspace(0.0, 1.0, len(quantiles)).tolist()
    residuals = Distribution("candidate", quantiles, shares)
    # A few large ones are counted in the outermost bars.
    edges = np.unique(np.linspace(quantiles[1], quantiles[-2], _BARS + 1)).tolist()
    edges, label = edges if len(edges) > 1 else [], "prediction minus true value"
    histogram = histogram_chart("Residuals", [residuals], edges=edges, label=label)
    mean = f"Residuals: mean {formats.number(target['mean'])}"
    return [(title, band), (mean, histogram)]
