"""How many examples of each class a slice holds, counted by TFMA itself.

True positives plus false negatives of a class are its examples, whatever the model
says and whatever the decision threshold is; so four confusion-matrix metrics under
names of our own give the counts in the same pass that computes everything else.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

_PREFIX = "class_count_"
_COUNTERS = {
    "TruePositives": "tp",
    "FalseNegatives": "fn",
    "TrueNegatives": "tn",
    "FalsePositives": "fp",
}


def metrics_spec(classes: Sequence[str]) -> dict[str, Any]:
    """Returns the TFMA MetricsSpec (JSON form) that counts every class per slice."""
    spec: dict[str, Any] = {
        "metrics": [
            {"class_name": name, "config": json.dumps({"name": _PREFIX + short})}
            for name, short in _COUNTERS.items()
        ]
    }
    if len(classes) > 2:
        spec["binarize"] = {"class_ids": {"values": list(range(len(classes)))}}
    return spec


def is_counter(metric: str) -> bool:
    """Whether a metric of the evaluation is one of ours."""
    return metric.startswith(_PREFIX)


def counts(
    by_class_id: Mapping[int | None, Mapping[str, float]], classes: Sequence[str]
) -> dict[str, int]:
    """Returns class name -> number of examples on one slice.

    Args:
      by_class_id: class id (None where metrics are not binarized) -> metric -> value.
      classes: the class names in the order of their ids; the second of two is the
        positive one.
    """

    def total(class_id: int | None, *shorts: str) -> int:
        metrics = by_class_id.get(class_id, {})
        return int(sum(metrics.get(_PREFIX + short, 0.0) for short in shorts))

    if len(classes) == 2:
        return {
            classes[0]: total(None, "tn", "fp"),
            classes[1]: total(None, "tp", "fn"),
        }
    return {name: total(i, "tp", "fn") for i, name in enumerate(classes)}
