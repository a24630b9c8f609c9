"""Curves of a classifier: ROC, precision-recall and calibration; thresholds.

They are computed from the histogram of predictions, see
``components.counting_metrics``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from markupsafe import Markup

from reports.charts.lines import Series, line_chart
from reports.charts.svg import Axis

STYLES = {"candidate": 0, "baseline": 3}
# The least number of predictions of a point.
_MIN_DRAWN = 10
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


def draw(
    histograms: Mapping[str, Sequence[float]],
    is_binary: bool,
    effective: float | None = None,
    decided: Mapping[str, float] | None = None,
) -> Charts:
    """Returns the curves of predictions: of two classes ROC and precision-recall too.

    Args:
      histograms: of predictions, by model.
      is_binary: whether there are two classes.
      effective: the effective number of examples; None if they are not weighted.
      decided: of two classes, the threshold of each model, where a ring is drawn.
    """
    roc, recalls, prevalence = {}, {}, None
    for model, values in histograms.items():
        if is_binary and all(map(any, np.split(np.array(values), 2))):
            _, tp, fp, tn, fn = from_histogram(values)
            recall = _share(tp, fn)
            prevalence = (tp[0] / (tp[0] + fp[0])).item()
            roc[model] = _share(fp, tn), recall
            recalls[model] = recall, _share(tp, fp)
    rates = Axis("false positive rate", 0.0, 1.0), Axis("true positive rate", 0.0, 1.0)
    axes = Axis("recall", 0.0, 1.0), Axis("precision", 0.0, 1.0)
    return [
        *_curve("ROC", roc, rates, decided or {}),
        *_curve("Precision-recall", recalls, axes, decided or {}, prevalence),
        *_calibration(histograms, is_binary, effective),
    ]


def _curve(
    name: str,
    points: Mapping[str, tuple[np.ndarray, np.ndarray]],
    axes: tuple[Axis, Axis],
    decided: Mapping[str, float],
    level: float | None = None,
) -> Charts:
    """Returns a curve, with a ring at the threshold that the served model has.

    The level, of precision the prevalence, and the diagonal of ROC are those of chance.
    Where nothing is predicted positive, recall is 0: the curve starts level there.
    """
    series = []
    for model, (x, y) in points.items():
        ring = None
        if model in decided:
            at, is_near = nearest(decided[model], len(x))
            ring = (x[at].item(), y[at].item()) if is_near else None
        y = np.where(np.isnan(y), y[np.isfinite(y)][-1], y)
        line = x[::-1].tolist(), y[::-1].tolist()
        series.append(Series(model, *line, STYLES.get(model, 1), ring=ring))
    if not series:
        return []
    lines: dict[str, Any] = {"diagonal": name == "ROC", "level": level}
    chart = line_chart(f"{name} curve", series, *axes, **lines, square=True)
    return [(name, chart)]


def nearest(threshold: float, count: int) -> tuple[int, bool]:
    """Returns the place of the nearest of so many thresholds, without 0 and 1.

    Also whether it is near: within half a step.
    """
    at = min(max(round(threshold * (count - 1)), 1), count - 2)
    return at, abs(threshold * (count - 1) - at) <= 0.5 + 1e-6


def _share(part: np.ndarray, rest: np.ndarray) -> np.ndarray:
    """Returns shares; NaN of nothing."""
    total = part + rest
    nothing = np.full(len(total), np.nan)
    return np.divide(part, total, out=nothing, where=total != 0)


def _calibration(
    histograms: Mapping[str, Sequence[float]],
    is_binary: bool,
    effective: float | None,
) -> Charts:
    """Returns how often predictions of each probability were right, in ten bins.

    Bins of a few predictions, whose shares are chance, are not drawn. The expected
    calibration error is the mean distance of all bins from the diagonal, weighted by
    their examples. Chance makes it larger, the more the fewer examples there are.

    Source: C. Guo et al., On Calibration of Modern Neural Networks, ICML 2017.
    """
    series, errors = [], {}
    for model, values in histograms.items():
        counts, expected, right = bins = _bins(values)
        total = counts.sum().item()
        errors[model] = np.abs(right - expected).sum() / (total or 1.0)
        least = _MIN_DRAWN * total / (effective or total or 1.0)
        counts, expected, right = bins[:, counts >= least]
        if len(counts):
            line = (expected / counts).tolist(), (right / counts).tolist()
            counts = counts.astype(int).tolist()
            series.append(Series(model, *line, STYLES.get(model, 1), counts))
    if not series:
        return []
    share = "share of positive examples" if is_binary else "share of right predictions"
    of = "positive" if is_binary else "predicted"
    axes = Axis(f"probability of the {of} class", 0.0, 1.0), Axis(share, 0.0, 1.0)
    chart = line_chart("Calibration", series, *axes, diagonal=True, square=True)
    named = ", ".join(f"{model} {value:.4f}" for model, value in errors.items())
    return [(f"Calibration: expected error {named}", chart)]


def _bins(values: Sequence[float]) -> np.ndarray:
    """Returns predictions, the sum of their probabilities, and how many are right.

    Each row has the ten bins of equal width. The probability of a bucket of the
    histogram is its middle: half a point off at most.
    """
    wrong, right = np.split(np.array(values, float), 2)
    counts = wrong + right
    expected = counts * (np.arange(len(counts)) + 0.5) / len(counts)
    buckets = np.array_split(np.stack([counts, expected, right]), 10, axis=1)
    return np.stack([bucket.sum(axis=1) for bucket in buckets], axis=1)
