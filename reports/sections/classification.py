"""How a classifier errs: its confusion matrix, its worst classes, its curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from reports import formats
from reports.evaluation import confusion_matrices
from reports.sections import curves
from reports.tables import Header, Table, decimals, numbers

MAX_MATRIX = 20
_MAX_PAIRS = 200


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
    charts = curves.curves(counts) + curves.calibration(histograms, is_binary)
    confusion = confusions.get("candidate")
    if confusion is None and not charts:
        return None
    view: dict[str, Any] = {"charts": charts, "thresholds": None, "classes": None}
    view |= {"matrix": None, "pairs": None}
    if candidate := counts.get("candidate"):
        view["thresholds"] = {
            "counts": {key: x.tolist() for key, x in candidate._asdict().items()},
            "positive": classes[1],
            "table": curves.threshold_table(candidate),
        }
    if confusion is not None and len(confusion):
        names = [*map(str, classes), *map(str, range(len(classes), len(confusion)))]
        view["classes"] = _by_class(confusion, confusions.get("baseline"), names)
        if len(confusion) <= MAX_MATRIX:
            view["matrix"] = {"names": names, "rows": confusion.round().astype(int)}
        else:
            view["pairs"] = _pairs(confusion, names)
    return view


def _pairs(confusion: np.ndarray, names: Sequence[str]) -> Table:
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
    columns = ("True class", "Predicted", numbers("Examples"), share)
    return Table("confused", caption, columns, rows, limit=20)


def _by_class(
    confusion: np.ndarray, baseline: np.ndarray | None, names: Sequence[str]
) -> Table:
    scored = ["Recall", "Precision", "F1"]
    columns = [*_scores(confusion)]
    if baseline is not None and baseline.shape == confusion.shape:
        scored += ["Baseline F1", "Change of F1"]
        before = _scores(baseline)[-1]
        columns += [before, columns[-1] - before]
    header: Header = ["Class", numbers("Examples")]
    header += [numbers(name, decimals) for name in scored]
    rows: list[list[Any]] = [
        [name, *(None if value != value else value for value in values)]
        for name, values in zip(names, np.stack(columns, axis=1).tolist(), strict=True)
    ]
    rows.sort(key=lambda row: 2.0 if row[4] is None else row[4])
    return Table("classes", "Classes, the worst first", header, rows, limit=20)


def _scores(confusion: np.ndarray) -> tuple[np.ndarray, ...]:
    """Returns examples, recall, precision and F1 of each class; NaN if undefined."""
    right, actual = np.diag(confusion), confusion.sum(axis=1)
    predicted = confusion.sum(axis=0)
    with np.errstate(invalid="ignore"):
        f1 = 2 * right / (actual + predicted)
        return actual, right / actual, right / predicted, f1
