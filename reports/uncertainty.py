"""Uncertainty of metrics: where they might lie on other data of the same size.

TFMA's own intervals, which ``evaluate.confidence_intervals`` asks for, come first. Else
a metric that is a share of examples has Wilson's interval, which needs only their
number; all others, such as AUC and losses, have none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from reports.charts.svg import is_finite
from reports.evaluation import (
    EXAMPLES,
    OVERALL,
    PER_CLASS,
    confusion_matrices,
    read_metrics,
)
from sluice.metric_names import direction_of, result_name

# The quantile of the normal distribution for 95 %, on both sides.
_Z = 1.959963984540054
# Of which examples a metric is a share, by TFMA's name for it.
_SHARES = {
    "all": "accuracy binary_accuracy categorical_accuracy sparse_categorical_accuracy "
    "sparse_top_k_categorical_accuracy top_k_categorical_accuracy",
    "class": "recall tpr true_positive_rate fnr false_negative_rate miss_rate",
    "others": "specificity tnr true_negative_rate fpr false_positive_rate fall_out",
    "predicted": "precision ppv positive_predictive_value",
}
_SHARE_OF = {name: of for of, names in _SHARES.items() for name in names.split()}


@dataclass(frozen=True)
class Estimate:
    """A metric with its 95 % interval.

    Attributes:
      value: what was measured.
      low: the lower bound.
      high: the upper bound.
      errors: how many of the examples are wrong; None for what is no share.
      total: how many examples it is a share of.
    """

    value: float
    low: float
    high: float
    errors: int | None = None
    total: int | None = None

    def contains(self, limit: float) -> bool:
        """Returns whether a limit lies within the interval."""
        return self.low <= limit <= self.high

    @property
    def interval(self) -> str:
        """The bounds, with the digits in which they differ: ``0.931 to 0.977``."""
        return f"{self._format(self.low)} to {self._format(self.high)}"

    def __str__(self) -> str:
        """Returns ``0.960 (0.931 to 0.977), 12 errors of 300``."""
        text = f"{self._format(self.value)} ({self.interval})"
        if self.errors is None:
            return text
        plural = "" if self.errors == 1 else "s"
        return f"{text}, {self.errors:,} error{plural} of {self.total:,}"

    def _format(self, value: float) -> str:
        width = max(self.high - self.low, 1e-9)
        least = 3 if abs(self.value) <= 1 else 0
        return f"{value:,.{max(1 - math.floor(math.log10(width)), least)}f}"


def measured(plain: Callable[[Any], str]) -> Callable[[Any], str]:
    """Returns a format for numbers, and for estimates with the interval below."""

    def format(value: Any) -> str:
        if not isinstance(value, Estimate):
            return plain(value)
        number, rest = str(value).split(" ", 1)
        return Markup("{} <small>{}</small>").format(number, rest)

    return format


def wilson(successes: float, total: float) -> tuple[float, float]:
    """Returns the 95 % interval of a share.

    Source: E. B. Wilson, Probable Inference, the Law of Succession, and Statistical
    Inference, JASA 22 (1927), without continuity correction.
    """
    share, spread = successes / total, _Z * _Z / total
    center = (share + spread / 2) / (1 + spread)
    half = math.sqrt(spread * (share * (1 - share) + spread / 4)) / (1 + spread)
    return max(0.0, center - half), min(1.0, center + half)


def share_of(right: float, total: float) -> Estimate | None:
    """Returns the share of right examples; None without any example."""
    if not total:
        return None
    errors = round(total - right)
    return Estimate(right / total, *wilson(right, total), errors, round(total))


def estimates(
    document: Mapping[str, Any], config: Mapping[str, Any]
) -> dict[tuple[str, str], Estimate]:
    """Returns the candidate's metrics that have an interval, by slice and name.

    Args:
      document: ``metrics``.
      config: the resolved config, which has the classes of metrics by their names.
    """
    metrics = [x for x in read_metrics(document) if x.model != "baseline"]
    per_class = {x.slice: x.array for x in metrics if x.name == PER_CLASS}
    examples = {x.slice: x.value for x in metrics if x.name == EXAMPLES}
    matrices = confusion_matrices(document, len(per_class.get(OVERALL, ())))
    matrix = next((x for model, x in matrices.items() if model != "baseline"), None)
    found = {}
    for metric in metrics:
        where, value = metric.slice, metric.value
        if value is None or not is_finite(value):
            continue
        known = per_class.get(where, [])
        kind, class_id = _kind(metric.name, config, len(known))
        totals = {"all": examples.get(where) or sum(known)}
        if class_id is not None and class_id < len(known):
            totals["class"] = known[class_id]
            totals["others"] = sum(known) - known[class_id]
            if where == OVERALL and matrix is not None and len(matrix) == 2:
                predicted = matrix[:, class_id].sum()
                # Unless the metric has another threshold than the matrix.
                if abs(value * predicted - matrix[class_id, class_id]) < 0.5:
                    totals["predicted"] = predicted
        of = _SHARE_OF.get(kind)
        part, total = _whole(value, totals.get(of or "", 0))
        errors = part if direction_of(kind) == "min" else total - part
        bounds = metric.bounds or (wilson(part, total) if total else None)
        if bounds and is_finite(bounds[1] - bounds[0]):
            counts = (errors, total) if total else ()
            found[where, metric.name] = Estimate(value, *bounds, *counts)
    return found


def _kind(name: str, config: Mapping[str, Any], classes: int) -> tuple[str, int | None]:
    """Returns what TFMA calls a metric, and the class that it is of, if of one."""
    plain, _, about = name.partition(" (")
    class_id = about.removeprefix("class_id ").removesuffix(")")
    if about and not class_id.isdigit():
        return "", None
    kinds = {
        item.get("name"): result_name(str(item.get("class")))
        for item in (config.get("evaluate") or {}).get("metrics", ())
        if isinstance(item, Mapping)
    }
    positive = 1 if classes == 2 else None
    return kinds.get(plain, plain), int(class_id) if about else positive


def _whole(value: float, total: float) -> tuple[int, int]:
    """Returns how many examples a share is, and of how many; zeros if it is not whole.

    It is not if examples are weighted. Keras computes in single precision.
    """
    if not 0 <= value <= 1:
        return 0, 0
    part = round(value * total)
    is_whole = abs(value * total - part) <= 1e-6 * total
    return (part, round(total)) if is_whole else (0, 0)
