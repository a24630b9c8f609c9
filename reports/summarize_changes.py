"""Summarizes in a few lines of text what has changed between two runs."""

from __future__ import annotations

import json
import math
import os
from typing import Any

from reports.compare import Comparison, MetricChange
from reports.evaluation import OVERALL
from reports.run_values import Change
from sluice.errors import bounded

_MAX_NAMED = 3
_MAX_CHARS = 60
_IS = {"new": "is new", "gone": "is no longer used"}


def summarize_changes(found: Comparison) -> list[str]:
    """Returns a line per kind of change: config, code, schema, data, metrics.

    Each names at most three examples and counts the others. Empty if nothing differs
    that may have an effect on the model.
    """
    lines = {
        "config": [change_text(item) for item in found.config],
        "code": [
            f"{item.name} {_IS.get(item.change, item.change)}" for item in found.code
        ],
        "schema": [change_text(item) for item in found.schema],
        "packages": [change_text(item) for item in found.packages],
        "spans": [change_text(item) for item in found.spans],
        "examples": [change_text(item) for item in found.examples],
        "features": [f"{item.feature} ({item.split})" for item in found.features],
        "metrics": [metric_text(item) for item in _worst_first(found)],
    }
    if "code" in found.inputs and not found.code:
        lines["code"] = ["modules that no node of both runs has read"]
    if "schema" in found.inputs and not found.schema:
        lines["schema"] = ["another content"]
    if "data" in found.inputs and not (found.spans or found.examples):
        lines["examples"] = ["other files with the same number of examples"]
    return [
        f"{kind}: {', '.join(bounded(items, _MAX_NAMED))}"
        for kind, items in lines.items()
        if items
    ]


def _worst_first(found: Comparison) -> list[MetricChange]:
    """Returns the metrics on all examples that have become worse or better."""
    judged = [
        item
        for item in found.metrics
        if item.slice == OVERALL and item.outcome in ("worse", "better")
    ]
    return sorted(judged, key=lambda item: item.outcome, reverse=True)


def change_text(change: Change) -> str:
    """Returns a change as one line, such as ``train.epochs 12 -> 6``."""
    return f"{change.name} {' -> '.join(value_texts(change.before, change.after))}"


def metric_text(change: MetricChange) -> str:
    """Returns a metric's change as one line, such as ``auc 0.91 -> 0.9 (worse)``."""
    values = value_texts(change.before, change.after)
    return f"{change.metric} {' -> '.join(values)} ({change.outcome})"


def value_texts(before: Any, after: Any) -> tuple[str, str]:
    """Returns two values that differ as short text that differs.

    Numbers have four significant digits, or more where these are the same; of long
    text the part is returned that differs.
    """
    texts = _text(before), _text(after)
    if texts[0] == texts[1]:
        texts = str(before), str(after)
        start = max(0, len(os.path.commonprefix(texts)) - _MAX_CHARS // 2)
        texts = _cut(texts[0], start), _cut(texts[1], start)
    return texts


def _text(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, float | int) and not isinstance(value, bool):
        is_large = float(value).is_integer() or 1000 <= abs(value) < math.inf
        return f"{value:,.0f}" if is_large else f"{value:.4g}"
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        text = ", ".join(bounded(value)) or "none"
    else:
        text = value if isinstance(value, str) else json.dumps(value)
    return _cut(text)


def _cut(text: str, start: int = 0) -> str:
    if len(text) <= _MAX_CHARS:
        return text
    end = start + _MAX_CHARS
    return ("..." if start else "") + text[start:end] + ("..." if text[end:] else "")
