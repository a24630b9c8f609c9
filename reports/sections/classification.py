"""How a classifier errs: its confusion matrix, its worst classes, its curves."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from reports import formats
from reports.evaluation import read_plots
from reports.sections.curves import (
    Counts,
    Thresholds,
    calibration,
    curves,
    from_histogram,
    plotted,
    thresholds,
)
from reports.tables import Header, Table, decimals, numbers

HISTOGRAM = "prediction_histogram"
MATRIX = "multi_class_confusion_matrix_at_thresholds"
MAX_MATRIX = 20
_MAX_PAIRS = 200
_HEAT = 9


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
class ClassificationView:
    """What is shown of a classifier; None for what the evaluation lacks."""

    matrix: Matrix | None
    pairs: Table | None
    classes: Table | None
    charts: list[tuple[str, Markup]]
    thresholds: Thresholds | None


Confusion = Mapping[tuple[int, int], float]


def build(
    evaluation: dict[str, Any],
    histograms: Mapping[str, Sequence[float]],
    classes: Sequence[str],
) -> ClassificationView | None:
    """Returns the view of the overall slice; None for what is no classifier.

    Args:
      evaluation: of the document ``metrics``.
      histograms: of predictions, by model.
      classes: names of the classes, in the order of their ids; empty if unknown.
    """
    plots = [*read_plots(evaluation)]
    is_binary = len(classes) == 2
    counts = {
        model: from_histogram(histogram)
        for model, histogram in histograms.items()
        if is_binary
    }
    confusions = {
        plot.model: _from_plot(plot.tables[MATRIX])
        for plot in reversed(plots)
        if MATRIX in plot.tables
    }
    if not confusions:
        confusions = {model: _at_half(found) for model, found in counts.items()}
    charts = [*curves(counts), *calibration(histograms, is_binary)]
    charts += plotted(plots)
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
        thresholds=thresholds(candidate, classes[1]) if candidate else None,
    )


def class_name(class_id: int, classes: Sequence[str]) -> str:
    """Returns the name of a class, or its id."""
    if class_id < 0:
        return "none"
    return classes[class_id] if class_id < len(classes) else str(class_id)


def _from_plot(table: dict[str, Any]) -> Confusion:
    """Returns the counts by true and predicted class at the lowest threshold."""
    matrices = table.get("matrices") or [{}]
    lowest: Any = min(matrices, key=lambda item: float(item.get("threshold", 0)))
    return {
        (x.get("actual_class_id", 0), x.get("predicted_class_id", 0)): float(
            x.get("num_weighted_examples", 0)
        )
        for x in lowest.get("entries", ())
    }


def _at_half(counts: Counts) -> Confusion:
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
    share = numbers("Share of the true class", "%", formats.in_percent)
    rows = [
        (*(class_name(number, classes) for number in pair), n, n / totals[pair[0]])
        for pair, n in wrong[:_MAX_PAIRS]
    ]
    caption = "Classes that are confused most"
    columns = ("True class", "Predicted", numbers("Examples"), share)
    return Table("confused", caption, columns, rows, limit=20)


def _by_class(
    confusion: Confusion,
    baseline: Confusion | None,
    ids: Sequence[int],
    classes: Sequence[str],
) -> Table:
    scored = ["Recall", "Precision", "F1"]
    if baseline is not None:
        scored += ["Baseline F1", "Change of F1"]
    columns: Header = ["Class", numbers("Examples")]
    columns += [numbers(name, "", decimals) for name in scored]
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
