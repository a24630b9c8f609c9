"""How far a regression is from the true values: residuals and the largest errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from reports import formats
from reports.charts.bars import Distribution, histogram_chart
from reports.charts.lines import Series, line_chart
from reports.charts.svg import Axis
from reports.flips import example_table
from reports.sections import curves
from reports.tables import numbers

_BAND = {"high": ("90 %", 1), "median": ("median", 0), "low": ("10 %", 1)}
_LARGEST = "The largest errors"
_BARS = 24


def build(index: int, document: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the charts of each target, and the largest errors."""
    label, targets = document["privacy"]["label"], document["targets"]
    largest = [_with_error(item) for item in document["largest"]]
    columns = {key: numbers(key.capitalize()) for key in ("true", "predicted", "error")}
    return {
        "document": document,
        "targets": [
            {
                "name": f"{label}[{i}]" if len(targets) > 1 else label,
                "charts": _charts(target),
            }
            for i, target in enumerate(targets)
        ],
        "largest": largest,
        "table": example_table(f"errors-{index}", _LARGEST, largest, columns),
    }


def _with_error(item: Mapping[str, Any]) -> dict[str, Any]:
    """Returns an example with a number for each column, or text of several targets."""
    pairs = zip(item["predicted"], item["true"], strict=True)
    error = [predicted - true for predicted, true in pairs]
    found = {**item, "error": error, "probability": None}
    for key in ("true", "predicted", "error"):
        several = ", ".join(map(formats.number, found[key]))
        found[key] = found[key][0] if len(error) == 1 else several
    return found


def _charts(target: Mapping[str, Any]) -> curves.Charts:
    found, title = target["by_value"], "Predictions by true value"
    lines = [
        Series(name, found["true"], found[key], style)
        for key, (name, style) in _BAND.items()
    ]
    every = [value for values in found.values() for value in values]
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
