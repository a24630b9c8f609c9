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


def curves(counts: Mapping[str, Counts]) -> Charts:
    """Returns the ROC and the precision-recall curve of all models."""
    roc, recalls = [], []
    for model, (_, tp, fp, tn, fn) in counts.items():
        style, recall = STYLES.get(model, 1), _share(tp, fn)[::-1]
        roc.append(_series(model, _share(fp, tn)[::-1], recall, style))
        recalls.append(_series(model, recall, _share(tp, fp)[::-1], style))
    if not roc:
        return []
    rates = Axis("false positive rate", 0.0, 1.0), Axis("true positive rate", 0.0, 1.0)
    axes = Axis("recall", 0.0, 1.0), Axis("precision", 0.0, 1.0)
    chart = line_chart("Precision-recall curve", recalls, *axes)
    return [
        ("ROC", line_chart("ROC curve", roc, *rates, diagonal=True)),
        ("Precision and recall", chart),
    ]


def _series(name: str, x: np.ndarray, y: np.ndarray, style: int) -> Series:
    known = np.isfinite(x)
    return Series(name, x[known].tolist(), y[known].tolist(), style)


def _share(part: np.ndarray, rest: np.ndarray) -> np.ndarray:
    """Returns shares; NaN of nothing."""
    total = part + rest
    nothing = np.full(len(total), np.nan)
    return np.divide(part, total, out=nothing, where=total != 0)


def calibration(histograms: Mapping[str, Sequence[float]], is_binary: bool) -> Charts:
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
    chart = line_chart("Calibration", series, *axes, diagonal=True)
    return [("Calibration; the area of a point is its number of predictions", chart)]


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
