"""How far a regression is from the true values: residuals and the largest errors."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate
from typing import Any

from reports import formats
from reports.charts.bars import Distribution, histogram_chart
from reports.charts.lines import grid_chart
from reports.flips import example_table, mcnemar
from reports.metric_changes import MIN_EXAMPLES
from reports.sections import curves
from reports.tables import numbers
from reports.uncertainty import mean_of

_MODELS = "candidate", "baseline"
_LARGEST = "The largest errors"


def build(index: int, document: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the charts of each target, and the largest errors."""
    label, targets = document["privacy"]["label"], document["targets"]
    largest = [_with_error(item) for item in document["largest"]]
    keys = ("true", "predicted", *(["baseline"] if document["has_baseline"] else []))
    columns = {key: numbers(key.capitalize()) for key in (*keys, "error")}
    return {
        "document": document,
        "targets": [
            {
                "name": f"{label}[{i}]" if len(targets) > 1 else label,
                "charts": _charts(target),
                "against_baseline": _against_baseline(target, document),
            }
            for i, target in enumerate(targets)
        ],
        "largest": largest,
        "table": example_table(f"errors-{index}", _LARGEST, largest, columns),
    }


def _with_error(item: Mapping[str, Any]) -> dict[str, Any]:
    """Returns an example with one number per model, or text of several targets."""
    pairs = zip(item["predicted"], item["true"], strict=True)
    error = [predicted - true for predicted, true in pairs]
    found = {**item, "error": error, "probability": None}
    for key in ("true", "predicted", "baseline", "error"):
        values = found.get(key) or [None]
        several = ", ".join(map(formats.number, values))
        found[key] = values[0] if len(values) == 1 else several
    return found


def _charts(target: Mapping[str, Any]) -> curves.Charts:
    labels = "true value", "prediction"
    grid = grid_chart("Predictions", target["edges"], target["grid"], *labels)
    edges, data = target["error_edges"], []
    for model, counts in zip(_MODELS, target["errors"], strict=False):
        below = [0, *accumulate(counts)]
        shares = [count / below[-1] for count in below]
        data.append(Distribution(model, edges, shares, curves.STYLES[model]))
    means = zip(_MODELS, map(formats.number, target["bias"]), strict=False)
    title = f"Residuals: mean {', '.join(map(' '.join, means))}"
    label = "prediction minus true value"
    histogram = histogram_chart("Residuals", data, edges=edges, label=label)
    return [("Predictions by true value", grid), (title, histogram)]


def _against_baseline(
    target: Mapping[str, Any], document: Mapping[str, Any]
) -> str | None:
    """Compares absolute errors example by example; None without a baseline."""
    if not document["has_baseline"]:
        return None
    closer, farther, count = target["closer"], target["farther"], document["examples"]
    text = (
        f"The candidate is closer to the true value than the baseline on {closer:,} of "
        f"{formats.plural(count, 'example')}, and farther away on {farther:,}."
    )
    if closer + farther:
        chance = formats.percent(mcnemar(farther, closer))
        text += f" A difference as large occurs by chance in {chance} of cases"
        change = mean_of(target["change"], target["deviation"], count)
        text += f" (sign test). The mean absolute error changes by {change}"
        text += (
            f" (95 % interval: {change.interval})." if count >= MIN_EXAMPLES else "."
        )
    return text
