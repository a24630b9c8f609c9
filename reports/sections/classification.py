"""How a classifier errs: its confusion matrix, its worst classes, its curves."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from reports import formats
from reports.evaluation import (
    OVERALL,
    confusion_matrices,
    decision_thresholds,
    effective_examples,
)
from reports.sections import curves
from reports.tables import Header, Table, numbers
from sluice.metrics import THRESHOLD
from sluice.uncertainty import Estimate, share_of

MAX_MATRIX = 20
_MAX_PAIRS = 200
# The column of totals, by whether the examples are weighted.
_COUNTED = ("Examples", "Weight")
# A cell of a matrix: text, classes of its look, and what it says when pointed at.
Cell = tuple[str, str, str]


def build(
    evaluation: dict[str, Any],
    histograms: Mapping[str, Sequence[float]],
    classes: Sequence[str],
) -> dict[str, Any] | None:
    """Returns charts and tables of all examples; None for what is no classifier.

    Args:
      evaluation: the document ``metrics``.
      histograms: of predictions, by model.
      classes: names of the classes, in the order of their ids; empty if unknown.
    """
    is_binary = len(classes) == 2
    binary = histograms if is_binary else {}
    counts = {model: curves.from_histogram(x) for model, x in binary.items()}
    confusions = confusion_matrices(evaluation, len(classes))
    effective = effective_examples(evaluation).get(OVERALL)
    decided = dict.fromkeys(binary, THRESHOLD) | decision_thresholds(evaluation)
    charts = curves.draw(histograms, is_binary, effective, decided)
    confusion = confusions.get("candidate")
    if confusion is None and not charts:
        return None
    view: dict[str, Any] = {"charts": charts, "thresholds": None, "classes": None}
    view |= {"matrix": None, "pairs": None, "beyond_steps": None}
    candidate = counts.get("candidate")
    threshold = decided.get("candidate", THRESHOLD)
    if candidate:
        place, is_near = curves.nearest(threshold, len(candidate.thresholds))
        view["beyond_steps"] = None if is_near else threshold
    if candidate and not view["beyond_steps"]:
        view["thresholds"] = {
            "counts": {
                model: {name: x.tolist() for name, x in item._asdict().items()}
                for model, item in counts.items()
            },
            "positive": classes[1],
            "threshold": threshold,
            "place": place,
        }
    if confusion is not None and len(confusion):
        names = [*map(str, classes), *map(str, range(len(classes), len(confusion)))]
        last = confusions.get("baseline")
        last = None if last is None or last.shape != confusion.shape else last
        view["classes"] = _by_class(confusion, names, bool(effective))
        if len(confusion) <= MAX_MATRIX:
            changes = None if last is None else _cells(confusion, last)
            rows = _cells(confusion)
            view["matrix"] = {"names": names, "rows": rows, "changes": changes}
        else:
            view["pairs"] = _pairs(confusion, names, bool(effective))
    return view


def _cells(confusion: np.ndarray, last: np.ndarray | None = None) -> list[list[Cell]]:
    """Returns the cells of a matrix, or of how it differs from the last one.

    They are shaded by the root of their share of the true class: 1 % can be seen.
    """
    shown = confusion if last is None else confusion - last
    form = formats.number if last is None else formats.signed
    rows: list[list[Cell]] = [[] for _ in shown]
    for (actual, predicted), value in np.ndenumerate(shown):
        share = min(abs(value) / max(confusion[actual].sum(), 1.0), 1.0)
        is_good = (actual == predicted) == (value > 0)
        look = f"{'right' if is_good else 'wrong'} shade-{math.ceil(9 * share**0.5)}"
        title = f"{formats.percent(share)} of the true class"
        rows[actual].append((form(float(value)), look if value else "zero", title))
    return rows


def _pairs(confusion: np.ndarray, names: Sequence[str], is_weighted: bool) -> Table:
    wrong = np.where(np.eye(len(names)), 0.0, confusion)
    worst = np.argsort(-wrong, axis=None, kind="stable")[:_MAX_PAIRS]
    share = numbers("Share of the true class", formats.percent)
    totals = confusion.sum(axis=1)
    rows = [
        (names[i], names[j], wrong[i, j].item(), (wrong[i, j] / totals[i]).item())
        for i, j in zip(*np.unravel_index(worst, wrong.shape), strict=True)
        if wrong[i, j]
    ]
    caption = "Classes that are confused most"
    columns = ("True class", "Predicted", numbers(_COUNTED[is_weighted]), share)
    return Table("confused", caption, columns, rows, limit=20)


def _share(right: float, total: float, is_weighted: bool) -> Estimate | float | None:
    """Returns a share; that of weights has no interval, nor a number of errors."""
    share = share_of(right, total)
    return share.value if share and is_weighted else share


def _by_class(confusion: np.ndarray, names: Sequence[str], is_weighted: bool) -> Table:
    """Returns examples, recall, precision and F1 of each class, the worst F1 first."""
    shown = (_COUNTED[is_weighted], "Recall", "Precision", "F1")
    header: Header = ["Class", *map(numbers, shown)]
    actual, predicted = confusion.sum(axis=1).tolist(), confusion.sum(axis=0).tolist()
    rows: list[list[Any]] = []
    for i, (name, right) in enumerate(zip(names, np.diag(confusion), strict=True)):
        totals = (actual[i], predicted[i])
        shares = [_share(right.item(), total, is_weighted) for total in totals]
        f1 = _f1(right.item(), actual[i], predicted[i])
        rows.append([name, actual[i], *shares, f1])
    rows.sort(key=lambda row: 2.0 if row[-1] is None else row[-1])
    return Table("classes", "Classes, the worst first", header, rows, limit=20)


def by_label(document: Mapping[str, Any]) -> Table | None:
    """Returns a row per class where examples may have several, the worst F1 first."""
    is_weighted = bool(document["privacy"].get("weight"))
    shown = ("Recall", "Precision", "F1", "AUC")
    rows: list[list[Any]] = []
    for item in document.get("labels") or ():
        actual, tp, fp = item["positives"], item["served"]["tp"], item["served"]["fp"]
        shares = [_share(tp, total, is_weighted) for total in (actual, tp + fp)]
        f1 = _f1(tp, actual, tp + fp)
        rows.append([item["class"], actual, *shares, f1, item["auc"]])
    rows.sort(key=lambda row: 2.0 if row[4] is None else row[4])
    header: Header = ["Class", *map(numbers, (_COUNTED[is_weighted], *shown))]
    caption = "Classes, the worst first"
    return Table("labels", caption, header, rows, limit=20) if rows else None


def _f1(right: float, actual: float, predicted: float) -> float | None:
    return 2 * right / (actual + predicted) if actual + predicted else None
