"""How a classifier errs: confusion matrix, ROC, precision-recall, calibration.

Counts are those of the evaluation: its confusion matrices, and the histogram of
predictions, see ``components.evaluator.prediction_histogram``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from markupsafe import Markup

from reports import formats
from reports.charts.lines import Series, line_chart
from reports.charts.scale import Axis
from reports.tables import Column, Table, numbers

HISTOGRAM = "prediction_histogram"
MAX_MATRIX = 20
_MAX_PAIRS = 200
_HEAT = 9
_STYLES = {"candidate": 0, "baseline": 2}
# Points of a calibration curve, and the examples that each has at least.
_CALIBRATION_POINTS = 20
_MIN_GROUP = 10


@dataclass(frozen=True)
class Matrix:
    """A confusion matrix: a row per true class, with the share of its examples.

    Attributes:
      names: of the classes.
      rows: name, examples, and of each predicted class count, share as text, and the
        shade from 0 to 9.
    """

    names: list[str]
    rows: list[tuple[str, int, list[tuple[int, str, int]]]]


@dataclass(frozen=True)
class Thresholds:
    """Counts of right and wrong predictions, for each threshold from 0 to 1."""

    thresholds: list[float]
    true_positives: list[int]
    false_positives: list[int]
    true_negatives: list[int]
    false_negatives: list[int]
    positive: str
    table: Table


@dataclass(frozen=True)
class ClassificationView:
    """What is shown of a classifier; None for what the evaluation lacks."""

    matrix: Matrix | None
    pairs: Table | None
    classes: Table | None
    charts: list[tuple[str, Markup]]
    thresholds: Thresholds | None


@dataclass(frozen=True)
class _Counts:
    """Counts at thresholds, from the lowest to the highest."""

    thresholds: list[float]
    tp: list[float]
    fp: list[float]
    tn: list[float]
    fn: list[float]


Confusion = Mapping[tuple[int, int], float]


def build(
    evaluation: dict[str, Any], histograms: Mapping[str, Any], classes: Sequence[str]
) -> ClassificationView | None:
    """Returns the view of the overall slice; None for what is no classifier.

    Args:
      evaluation: of the document ``metrics``.
      histograms: of predictions, by model.
      classes: names of the classes, in the order of their ids; empty if unknown.
    """
    plots = [
        p for p in evaluation["plots"] if not p["slice"] and not p["compared_with"]
    ]
    is_binary = len(classes) == 2
    counts = {
        model: _from_histogram(histogram)
        for model, histogram in histograms.items()
        if is_binary
    }
    confusions = {
        plot["model"]: _from_plot(plot)
        for plot in reversed(plots)
        if plot["kind"] == "multi_class_confusion_matrix_at_thresholds"
    }
    if not confusions:
        confusions = {model: _at_half(found) for model, found in counts.items()}
    charts = [*_curves(counts), *_calibration(histograms, is_binary)]
    charts += _plotted(plots)
    confusion = confusions.get("candidate")
    if confusion is None and not charts:
        return None
    matrix, pairs, by_class = None, None, None
    if confusion:
        ids = _class_ids(confusion, classes)
        if len(ids) <= MAX_MATRIX:
            matrix = _matrix(confusion, ids, classes)
        else:
            pairs = _pairs(confusion, classes)
        by_class = _by_class(confusion, confusions.get("baseline"), ids, classes)
    candidate = counts.get("candidate")
    return ClassificationView(
        matrix=matrix,
        pairs=pairs,
        classes=by_class,
        charts=charts,
        thresholds=_thresholds(candidate, classes[1]) if candidate else None,
    )


def class_name(class_id: int, classes: Sequence[str]) -> str:
    """Returns the name of a class, or its id."""
    if class_id < 0:
        return "none"
    return classes[class_id] if class_id < len(classes) else str(class_id)


def _from_histogram(histogram: dict[str, Any]) -> _Counts:
    """Returns the counts if probabilities from each bucket's edge on are positive."""
    _, buckets = histogram["shape"]
    values = [int(value) for value in histogram["values"]]
    negatives, positives = values[:buckets], values[buckets:]
    below_fp = [0, *accumulate(negatives)]
    below_tp = [0, *accumulate(positives)]
    return _Counts(
        thresholds=[i / buckets for i in range(buckets + 1)],
        tp=[below_tp[-1] - below for below in below_tp],
        fp=[below_fp[-1] - below for below in below_fp],
        tn=list(below_fp),
        fn=list(below_tp),
    )


def _from_plot(plot: dict[str, Any]) -> Confusion:
    """Returns the counts by true and predicted class at the lowest threshold."""
    columns = plot["columns"]
    lowest = min(map(float, columns["threshold"]), default=0.0)
    counts: defaultdict[tuple[int, int], float] = defaultdict(float)
    for threshold, actual, predicted, count in zip(
        columns["threshold"],
        columns["actual_class_id"],
        columns["predicted_class_id"],
        columns["num_weighted_examples"],
        strict=True,
    ):
        if float(threshold) == lowest:
            counts[actual, predicted] += count
    return counts


def _at_half(counts: _Counts) -> Confusion:
    i = len(counts.thresholds) // 2
    return {
        (0, 0): counts.tn[i],
        (0, 1): counts.fp[i],
        (1, 0): counts.fn[i],
        (1, 1): counts.tp[i],
    }


def _class_ids(confusion: Confusion, classes: Sequence[str]) -> list[int]:
    found = {class_id for pair in confusion for class_id in pair}
    return sorted(found | set(range(len(classes))))


def _matrix(confusion: Confusion, ids: Sequence[int], classes: Sequence[str]) -> Matrix:
    rows = []
    for actual in ids:
        counts = [confusion.get((actual, predicted), 0) for predicted in ids]
        total = sum(counts)
        shares = [count / total if total else 0.0 for count in counts]
        cells = [
            (round(count), formats.percent(share), min(round(share * _HEAT), _HEAT))
            for count, share in zip(counts, shares, strict=True)
        ]
        rows.append((class_name(actual, classes), round(total), cells))
    return Matrix([class_name(class_id, classes) for class_id in ids], rows)


def _pairs(confusion: Confusion, classes: Sequence[str]) -> Table:
    totals: defaultdict[int, float] = defaultdict(float)
    for (actual, _), count in confusion.items():
        totals[actual] += count
    wrong = [(pair, n) for pair, n in confusion.items() if pair[0] != pair[1] and n]
    wrong.sort(key=lambda item: -item[1])
    return Table(
        id="confused",
        caption="Classes that are confused most",
        columns=(
            Column("True class"),
            Column("Predicted"),
            numbers("Examples"),
            numbers("Share of the true class", "%", formats.in_percent),
        ),
        rows=[
            (
                class_name(actual, classes),
                class_name(predicted, classes),
                count,
                count / totals[actual],
            )
            for (actual, predicted), count in wrong[:_MAX_PAIRS]
        ],
        limit=20,
    )


def _by_class(
    confusion: Confusion,
    baseline: Confusion | None,
    ids: Sequence[int],
    classes: Sequence[str],
) -> Table:
    columns = [
        Column("Class"),
        numbers("Examples"),
        numbers("Recall", "", _score),
        numbers("Precision", "", _score),
        numbers("F1", "", _score),
    ]
    if baseline is not None:
        columns.append(numbers("Baseline F1", "", _score))
        columns.append(numbers("Change of F1", "", _score))
    rows = []
    scores, before = _scores(confusion, ids), _scores(baseline or {}, ids)
    for class_id in ids:
        examples, recall, precision, f1 = scores[class_id]
        row = [class_name(class_id, classes), examples, recall, precision, f1]
        if baseline is not None:
            last = before[class_id][3]
            row += [last, None if f1 is None or last is None else f1 - last]
        rows.append(row)
    rows.sort(key=lambda row: 2.0 if row[4] is None else row[4])  # type: ignore[arg-type,return-value]
    return Table("classes", "Classes, the worst first", columns, rows, limit=20)


def _score(value: float | None) -> str:
    return formats.MISSING if value is None else f"{value:.4f}"


def _scores(
    confusion: Confusion, ids: Sequence[int]
) -> dict[int, tuple[float, float | None, float | None, float | None]]:
    """Returns examples, recall, precision and F1 of each class."""
    actual: defaultdict[int, float] = defaultdict(float)
    predicted: defaultdict[int, float] = defaultdict(float)
    for (of, to), count in confusion.items():
        actual[of] += count
        predicted[to] += count
    scores = {}
    for class_id in ids:
        right = confusion.get((class_id, class_id), 0)
        total = actual[class_id] + predicted[class_id]
        scores[class_id] = (
            actual[class_id],
            right / actual[class_id] if actual[class_id] else None,
            right / predicted[class_id] if predicted[class_id] else None,
            2 * right / total if total else None,
        )
    return scores


def _curves(counts: Mapping[str, _Counts]) -> list[tuple[str, Markup]]:
    """Returns the ROC and the precision-recall curve of all models."""
    roc, recall_curve = [], []
    for model, item in counts.items():
        name, style = model, _STYLES.get(model, 1)
        tpr = [_share(a, b) for a, b in zip(item.tp, item.fn, strict=True)]
        fpr = [_share(a, b) for a, b in zip(item.fp, item.tn, strict=True)]
        precision = [_share(a, b) for a, b in zip(item.tp, item.fp, strict=True)]
        known = [(x, y) for x, y in zip(fpr, tpr, strict=True) if x is not None]
        roc.append(Series(name, *_columns(known), style))
        known = [(x, y) for x, y in zip(tpr, precision, strict=True) if x is not None]
        recall_curve.append(Series(name, *_columns(known), style))
    if not roc:
        return []
    rates = Axis("false positive rate", 0.0, 1.0), Axis("true positive rate", 0.0, 1.0)
    return [
        ("ROC", line_chart("ROC curve", roc, *rates, diagonal=True)),
        (
            "Precision and recall",
            line_chart(
                "Precision-recall curve",
                recall_curve,
                Axis("recall", 0.0, 1.0),
                Axis("precision", 0.0, 1.0),
            ),
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


def _calibration(
    histograms: Mapping[str, Any], is_binary: bool
) -> list[tuple[str, Markup]]:
    """Returns how often predictions of each probability were right.

    Neighbouring probabilities are merged until there are enough examples of them.
    """
    series = []
    for model, histogram in histograms.items():
        _, buckets = histogram["shape"]
        values = [int(value) for value in histogram["values"]]
        enough = max(_MIN_GROUP, sum(values) / _CALIBRATION_POINTS)
        x: list[float] = []
        y: list[float | str | None] = []
        count, right, probability = 0, 0, 0.0
        for i in range(buckets):
            found = values[i] + values[buckets + i]
            count, right = count + found, right + values[buckets + i]
            probability += found * (i + 0.5) / buckets
            if count >= enough:
                x.append(probability / count)
                y.append(right / count)
                count, right, probability = 0, 0, 0.0
        series.append(Series(model, x, y, _STYLES.get(model, 1)))
    if not any(item.x for item in series):
        return []
    what = "share of positive examples" if is_binary else "share of right predictions"
    of = "positive" if is_binary else "predicted"
    chart = line_chart(
        "Calibration",
        series,
        Axis(f"probability of the {of} class", 0.0, 1.0),
        Axis(what, 0.0, 1.0),
        diagonal=True,
    )
    return [("Calibration", chart)]


def _plotted(plots: Sequence[dict[str, Any]]) -> list[tuple[str, Markup]]:
    """Returns the charts of TFMA's plots, which a config or a foreign pipeline has."""
    charts = []
    subjects: dict[str, dict[str, _Counts]] = {}
    for plot in plots:
        if plot["kind"] == "confusion_matrix_at_thresholds":
            columns = plot["columns"]
            counts = _Counts(
                *(
                    [float(value) for value in columns[name]]
                    for name in (
                        "threshold",
                        "true_positives",
                        "false_positives",
                        "true_negatives",
                        "false_negatives",
                    )
                )
            )
            subjects.setdefault(_subject(plot), {})[plot["model"]] = counts
    for subject, found in subjects.items():
        suffix = f", {subject}" if subject else ""
        charts += [(f"{title}{suffix}", chart) for title, chart in _curves(found)]
    for plot in plots:
        if plot["kind"] == "calibration_histogram_buckets":
            columns = plot["columns"]
            rows = [
                (float(predicted) / float(n), float(label) / float(n))
                for n, label, predicted in zip(
                    columns["num_weighted_examples"],
                    columns["total_weighted_label"],
                    columns["total_weighted_refined_prediction"],
                    strict=True,
                )
                if float(n)
            ]
            line = Series(plot["model"], *_columns(sorted(rows, reverse=True)))
            suffix = ", ".join(filter(None, [_subject(plot), plot["model"]]))
            chart = line_chart(
                "Calibration",
                [line],
                Axis("mean prediction", 0.0, 1.0),
                Axis("mean label", 0.0, 1.0),
                diagonal=True,
            )
            charts.append((f"Calibration, {suffix}", chart))
    return charts


def _subject(plot: dict[str, Any]) -> str:
    keys = [
        f"{key.replace('_', ' ')} {value}" for key, value in plot["sub_key"].items()
    ]
    return ", ".join(filter(None, [plot["name"], plot["output"], *keys]))


def _thresholds(counts: _Counts, positive: str) -> Thresholds:
    rows = []
    for i in range(0, len(counts.thresholds), len(counts.thresholds) // 20 or 1):
        tp, fp, tn, fn = counts.tp[i], counts.fp[i], counts.tn[i], counts.fn[i]
        rows.append(
            (
                counts.thresholds[i],
                _share(tp, fp),
                _share(tp, fn),
                _share(fp, tn),
                _share(tp + tn, fp + fn),
                tp,
                fp,
                tn,
                fn,
            )
        )
    names = ("Precision", "Recall", "False positive rate", "Accuracy")
    counted = ("True positive", "False positive", "True negative", "False negative")
    columns = [numbers("Threshold", "", "{:.2f}".format)]
    columns += [numbers(name, "", _score) for name in names]
    columns += [numbers(name) for name in counted]
    return Thresholds(
        thresholds=counts.thresholds,
        true_positives=[round(n) for n in counts.tp],
        false_positives=[round(n) for n in counts.fp],
        true_negatives=[round(n) for n in counts.tn],
        false_negatives=[round(n) for n in counts.fn],
        positive=positive,
        table=Table("thresholds", "Thresholds", columns, rows),
    )
