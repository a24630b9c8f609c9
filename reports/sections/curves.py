"""Curves of a classifier: ROC, precision-recall and calibration; thresholds.

They are computed from the histogram of predictions, see
``components.evaluator``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from markupsafe import Markup

from reports.charts.lines import Series, line_chart
from reports.charts.svg import Axis
from reports.tables import Table, decimals, numbers

STYLES = {"candidate": 0, "after": 0, "baseline": 3, "before": 3}
# Points of a calibration curve, and the examples that each has at least.
_CALIBRATION_POINTS = 20
_MIN_GROUP = 10
Charts = list[tuple[str, Markup]]
# Of ``ROC`` or ``PR``, by model.
Areas = Mapping[str, Mapping[str, float]]


class Counts(NamedTuple):
    """Right and wrong predictions at thresholds, from the lowest to the highest.

    Probabilities from a threshold on are positive.
    """

    thresholds: np.ndarray
    tp: np.ndarray
    fp: np.ndarray
    tn: np.ndarray
    fn: np.ndarray


def from_histogram(values: Sequence[float]) -> Counts:
    """Returns the counts if probabilities from each bucket's edge on are positive."""
    negatives, positives = np.split(np.array(values), 2)
    tn, fn = (np.concatenate([[0], x.cumsum()]) for x in (negatives, positives))
    thresholds = np.linspace(0.0, 1.0, len(tn))
    return Counts(thresholds, fn[-1] - fn, tn[-1] - tn, tn, fn)


def draw(
    histograms: Mapping[str, Sequence[float]],
    is_binary: bool,
    areas: Areas | None = None,
) -> Charts:
    """Returns the curves of predictions: of two classes ROC and precision-recall too.

    Args:
      histograms: of predictions, by model.
      is_binary: whether there are two classes.
      areas: under the curves ``ROC`` and ``PR`` by model, as TFMA computed them.
    """
    counts = {
        model: from_histogram(values)
        for model, values in histograms.items()
        if is_binary and all(map(any, np.split(np.array(values), 2)))
    }
    roc, recalls = {}, {}
    for model, (_, tp, fp, tn, fn) in counts.items():
        recall = _share(tp, fn)
        roc[model] = _share(fp, tn), recall
        recalls[model] = recall, _share(tp, fp)
    rates = Axis("false positive rate", 0.0, 1.0), Axis("true positive rate", 0.0, 1.0)
    axes = Axis("recall", 0.0, 1.0), Axis("precision", 0.0, 1.0)
    known = areas or {}
    return [
        *_curve("ROC", roc, rates, known.get("ROC", {})),
        *_curve("Precision-recall", recalls, axes, known.get("PR", {})),
        *_calibration(histograms, is_binary),
    ]


def _curve(
    name: str,
    points: Mapping[str, tuple[np.ndarray, np.ndarray]],
    axes: tuple[Axis, Axis],
    areas: Mapping[str, float],
) -> Charts:
    """Returns a curve, with a ring at the threshold that the served model has."""
    series, trapezoids = [], {}
    for model, (x, y) in points.items():
        ring = x[len(x) // 2].item(), y[len(y) // 2].item()
        line = x[::-1].tolist(), y[::-1].tolist()
        series.append(Series(model, *line, STYLES.get(model, 1), ring=ring))
        x, y = x[np.isfinite(y)], y[np.isfinite(y)]
        trapezoids[model] = float(np.dot(x[:-1] - x[1:], y[:-1] + y[1:])) / 2
    if not series:
        return []
    title = _titled(f"{name}: area", areas)
    if not areas:
        title = _titled(f"{name}: area by trapezoids", trapezoids)
    diagonal = name == "ROC"
    chart = line_chart(f"{name} curve", series, *axes, diagonal=diagonal, square=True)
    return [(title, chart)]


def _titled(text: str, values: Mapping[str, float]) -> str:
    """Returns a title with a number of each model."""
    named = [f"{model} {decimals(value)}" for model, value in values.items()]
    return f"{text} {', '.join(named)}"


def _share(part: np.ndarray, rest: np.ndarray) -> np.ndarray:
    """Returns shares; NaN of nothing."""
    total = part + rest
    nothing = np.full(len(total), np.nan)
    return np.divide(part, total, out=nothing, where=total != 0)


def calibration_error(values: Sequence[float]) -> float:
    """Returns the expected calibration error of a histogram of predictions.

    It is the mean distance between the probability and the share of examples with which
    it is right, in ten bins of equal width, weighted by their examples. Chance makes it
    larger, the more the fewer examples there are. The probability of a bucket is its
    middle: half a point off at most.

    Source: C. Guo et al., On Calibration of Modern Neural Networks, ICML 2017.
    """
    wrong, right = np.split(np.array(values, float), 2)
    found = wrong + right
    probabilities = (np.arange(len(found)) + 0.5) / len(found)
    distances = [x.sum() for x in np.array_split(right - found * probabilities, 10)]
    return float(np.abs(distances).sum() / max(found.sum(), 1.0))


def _calibration(histograms: Mapping[str, Sequence[float]], is_binary: bool) -> Charts:
    """Returns how often predictions of each probability were right.

    Neighbouring probabilities are merged until there are enough examples of them.
    """
    series = []
    for model, values in histograms.items():
        wrong, right = np.split(np.array(values, float), 2)
        found = wrong + right
        sums = np.stack(
            [found, right, found * (np.arange(len(found)) + 0.5) / len(found)]
        )
        enough = max(_MIN_GROUP, found.sum() / _CALIBRATION_POINTS)
        groups, group = [], np.zeros(3)
        for column in sums.T:
            group = group + column
            if group[0] >= enough:
                groups.append(group)
                group = np.zeros(3)
        if groups:
            counts, rights, probabilities = np.array(groups).T
            x, y = (probabilities / counts).tolist(), (rights / counts).tolist()
            style = STYLES.get(model, 1)
            series.append(Series(model, x, y, style, counts.astype(int).tolist()))
    if not series:
        return []
    what = "share of positive examples" if is_binary else "share of right predictions"
    of = "positive" if is_binary else "predicted"
    axes = Axis(f"probability of the {of} class", 0.0, 1.0), Axis(what, 0.0, 1.0)
    chart = line_chart("Calibration", series, *axes, diagonal=True, square=True)
    errors = {model: calibration_error(values) for model, values in histograms.items()}
    return [(_titled("Calibration: expected error", errors), chart)]


def threshold_table(counts: Counts) -> Table:
    """Returns right and wrong predictions at some of the thresholds."""
    at, tp, fp, tn, fn = counts
    shares = (_share(tp, fp), _share(tp, fn), _share(fp, tn), _share(tp + tn, fp + fn))
    names = ("Precision", "Recall", "False positive rate", "Accuracy")
    counted = ("True positive", "False positive", "True negative", "False negative")
    columns = [numbers("Threshold", "{:.2f}".format)]
    columns += [numbers(name, partial(decimals, digits=3)) for name in names]
    columns += map(numbers, counted)
    found = np.stack([at, *shares, tp, fp, tn, fn], axis=1)[:: len(at) // 20 or 1]
    rows: list[list[Any]] = [
        [None if value != value else value for value in row] for row in found.tolist()
    ]
    return Table("thresholds", "Thresholds", columns, rows)
