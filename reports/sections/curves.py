"""Curves of a classifier: ROC, precision-recall and calibration; thresholds.

They are computed from the histogram of predictions, see
``components.evaluator.count_metrics``, and from TFMA's plots.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate

from markupsafe import Markup

from reports.charts.lines import Series, line_chart
from reports.charts.scale import Axis
from reports.evaluation import Plot
from reports.tables import Table, decimals, numbers

_STYLES = {"candidate": 0, "baseline": 2}
# Points of a calibration curve, and the examples that each has at least.
_CALIBRATION_POINTS = 20
_MIN_GROUP = 10
# Columns of TFMA's plot, in the order of the fields of ``Counts``.
_COUNTS = (
    "threshold",
    *("true_positives", "false_positives", "true_negatives", "false_negatives"),
)


@dataclass(frozen=True)
class Counts:
    """Right and wrong predictions at thresholds, from the lowest to the highest.

    Attributes:
      thresholds: probabilities from each on are positive.
      tp: true positives at each threshold.
      fp: false positives.
      tn: true negatives.
      fn: false negatives.
    """

    thresholds: list[float]
    tp: list[float]
    fp: list[float]
    tn: list[float]
    fn: list[float]


@dataclass(frozen=True)
class Thresholds:
    """Right and wrong predictions at each threshold, and a table of some of them."""

    counts: Counts
    positive: str
    table: Table


def from_histogram(values: Sequence[float]) -> Counts:
    """Returns the counts if probabilities from each bucket's edge on are positive."""
    buckets = len(values) // 2
    negatives, positives = values[:buckets], values[buckets:]
    below_fp = [0, *accumulate(negatives)]
    below_tp = [0, *accumulate(positives)]
    return Counts(
        thresholds=[i / buckets for i in range(buckets + 1)],
        tp=[below_tp[-1] - below for below in below_tp],
        fp=[below_fp[-1] - below for below in below_fp],
        tn=list(below_fp),
        fn=list(below_tp),
    )


def curves(counts: Mapping[str, Counts]) -> list[tuple[str, Markup]]:
    """Returns the ROC and the precision-recall curve of all models."""
    roc, recall_curve = [], []
    for model, item in counts.items():
        style = _STYLES.get(model, 1)
        tpr = list(map(_share, item.tp, item.fn))
        fpr = map(_share, item.fp, item.tn)
        precision = map(_share, item.tp, item.fp)
        roc.append(Series(model, *_columns(list(zip(fpr, tpr, strict=False))), style))
        recall = list(zip(tpr, precision, strict=False))
        recall_curve.append(Series(model, *_columns(recall), style))
    if not roc:
        return []
    rates = Axis("false positive rate", 0.0, 1.0), Axis("true positive rate", 0.0, 1.0)
    axes = Axis("recall", 0.0, 1.0), Axis("precision", 0.0, 1.0)
    return [
        ("ROC", line_chart("ROC curve", roc, *rates, diagonal=True)),
        (
            "Precision and recall",
            line_chart("Precision-recall curve", recall_curve, *axes),
        ),
    ]


def _columns(
    points: Sequence[tuple[float | None, float | None]],
) -> tuple[list[float], list[float | None]]:
    """Returns x, ascending, and y."""
    ordered = [(x, y) for x, y in reversed(points) if x is not None]
    return [x for x, _ in ordered], [y for _, y in ordered]


def _share(part: float, rest: float) -> float | None:
    return part / (part + rest) if part + rest else None


def calibration(
    histograms: Mapping[str, Sequence[float]], is_binary: bool
) -> list[tuple[str, Markup]]:
    """Returns how often predictions of each probability were right.

    Neighbouring probabilities are merged until there are enough examples of them.
    """
    series = []
    for model, values in histograms.items():
        buckets = len(values) // 2
        enough = max(_MIN_GROUP, sum(values) / _CALIBRATION_POINTS)
        counts: list[int] = []
        x: list[float] = []
        y: list[float | str | None] = []
        count, right, probability = 0.0, 0.0, 0.0
        for i in range(buckets):
            found = values[i] + values[buckets + i]
            count, right = count + found, right + values[buckets + i]
            probability += found * (i + 0.5) / buckets
            if count >= enough:
                counts.append(int(count))
                x.append(probability / count)
                y.append(right / count)
                count, right, probability = 0, 0, 0.0
        series.append(Series(model, x, y, _STYLES.get(model, 1), counts))
    if not any(item.x for item in series):
        return []
    what = "share of positive examples" if is_binary else "share of right predictions"
    of = "positive" if is_binary else "predicted"
    axes = Axis(f"probability of the {of} class", 0.0, 1.0), Axis(what, 0.0, 1.0)
    chart = line_chart("Calibration", series, *axes, diagonal=True)
    return [("Calibration; the area of a point is its number of predictions", chart)]


def plotted(plots: Sequence[Plot]) -> list[tuple[str, Markup]]:
    """Returns the charts of TFMA's plots, which a config or a foreign pipeline has."""
    charts = []
    titles: dict[str, dict[str, Counts]] = {}
    for plot in plots:
        if matrices := plot.tables.get("confusion_matrix_at_thresholds"):
            rows = matrices["matrices"]
            columns = ([float(row.get(x, 0)) for row in rows] for x in _COUNTS)
            titles.setdefault(plot.title, {})[plot.model] = Counts(*columns)
    for title, found in titles.items():
        suffix = f", {title}" if title else ""
        charts += [(f"{name}{suffix}", chart) for name, chart in curves(found)]
    for plot in plots:
        if histogram := plot.tables.get("calibration_histogram_buckets"):
            points = []
            for bucket in histogram["buckets"]:
                if n := float(bucket.get("num_weighted_examples", 0)):
                    label = float(bucket.get("total_weighted_label", 0))
                    predicted = bucket.get("total_weighted_refined_prediction", 0)
                    points.append((float(predicted) / n, label / n))
            line = Series(plot.model, *_columns(sorted(points, reverse=True)))
            suffix = ", ".join(filter(None, [plot.title, plot.model]))
            axes = Axis("mean prediction", 0.0, 1.0), Axis("mean label", 0.0, 1.0)
            chart = line_chart("Calibration", [line], *axes, diagonal=True)
            charts.append((f"Calibration, {suffix}", chart))
    return charts


def thresholds(counts: Counts, positive: str) -> Thresholds:
    """Returns what a person chooses a threshold by.

    Args:
      counts: of the candidate.
      positive: the name of the class that is predicted from the threshold on.
    """
    rows = []
    for i in range(0, len(counts.thresholds), len(counts.thresholds) // 20 or 1):
        tp, fp, tn, fn = counts.tp[i], counts.fp[i], counts.tn[i], counts.fn[i]
        shares = _share(tp, fp), _share(tp, fn), _share(fp, tn)
        right = _share(tp + tn, fp + fn)
        rows.append((counts.thresholds[i], *shares, right, tp, fp, tn, fn))
    names = ("Precision", "Recall", "False positive rate", "Accuracy")
    counted = ("True positive", "False positive", "True negative", "False negative")
    columns = [numbers("Threshold", "", "{:.2f}".format)]
    columns += [numbers(name, "", partial(decimals, digits=3)) for name in names]
    columns += map(numbers, counted)
    table = Table("thresholds", "Thresholds", columns, rows)
    return Thresholds(counts, positive, table)
