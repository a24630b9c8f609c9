"""Changes of metrics from the baseline, on the same examples, by the harm they do.

What may be chance is neither better nor worse: a change on a few examples, or one
within the interval of either value.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from reports.compare import MetricChange
from reports.evaluation import (
    EXAMPLES,
    OVERALL,
    PER_CLASS,
    confusion_matrices,
    read_metrics,
)
from reports.read_run import RunData
from reports.run_table import better, metrics
from reports.uncertainty import Estimate, estimates, wilson

_MIN_EXAMPLES = 30
_OF_TWO_CLASSES = ("false positives", "false negatives")


@dataclass(frozen=True)
class Moved(MetricChange):
    """A metric of the candidate and of the baseline.

    Attributes:
      is_noise: whether the change may be chance.
      examples: of the slice, or of the class.
      estimate: of the candidate's value; None where it has no interval.
    """

    is_noise: bool = False
    examples: float = 0.0
    estimate: Estimate | None = None

    @property
    def harm(self) -> tuple[int, float]:
        """Sorts the most harmful first, by change and examples; chance last."""
        # A number of examples is itself what a share is times its examples.
        weight = 1 if isinstance(self.after, int) else self.examples
        order = ("worse", "better", "differs", "same")
        return order.index(self.outcome), -abs(self.delta or 0.0) * weight

    def __str__(self) -> str:
        of = "" if self.slice == OVERALL else f" of {self.slice}"
        return f"{self.metric}{of} ({' to '.join(self.texts)})"


def metric_changes(run: RunData) -> list[Moved]:
    """Returns the metrics that have a direction, the most harmful change first."""
    config, old, new = run.record.config, metrics(run, "baseline"), metrics(run)
    known: dict[tuple[str, str], Estimate] = {}
    found: list[Moved] = []
    for document in run.documents("metrics"):
        known |= estimates(document, config)
        found += _errors(document)
    for key in new.keys() & old.keys():
        values, (where, name) = (old[key], new[key]), key
        if direction := better(name, config):
            examples, estimate = new.get((where, EXAMPLES), 0.0), known.get(key)
            is_noise = may_be_chance(*values, examples, estimate)
            found.append(Moved(*key, *values, direction, is_noise, examples, estimate))
    return sorted(found, key=lambda item: (item.harm, item.slice, item.metric))


def _errors(document: Mapping[str, Any]) -> Iterator[Moved]:
    """Yields how many examples of each class are predicted as another one."""
    arrays = (x for x in read_metrics(document) if x.name == PER_CLASS)
    classes = next((len(x.array) for x in arrays if x.slice == OVERALL), 0)
    matrices = confusion_matrices(document, classes)
    if {*matrices} != {"candidate", "baseline"}:
        return
    for i, row in enumerate(matrices["candidate"]):
        total, rows = int(row.sum()) or 1, (matrices["baseline"][i], row)
        before, after = (int(x.sum() - x[i]) for x in rows)
        is_noise = may_be_chance(before / total, after / total, total)
        key = (
            (OVERALL, _OF_TWO_CLASSES[i]) if classes == 2 else (f"class {i}", "errors")
        )
        yield Moved(*key, before, after, "lower", is_noise, total)


def may_be_chance(
    before: float, after: float, examples: float, estimate: Estimate | None = None
) -> bool:
    """Returns whether one value lies within the interval of the other.

    A metric without an interval, such as AUC or a loss, is taken for a share if it is
    from 0 to 1, else for a mean of values that are as scattered as they are large.
    """
    if examples < _MIN_EXAMPLES or (estimate and estimate.contains(before)):
        return True
    if not (0 <= before <= 1 and 0 <= after <= 1):
        return abs(after - before) <= 2 * abs(before) / math.sqrt(examples)
    pairs = (before, after), (after, before)
    bounds = [(wilson(x * examples, examples), other) for x, other in pairs]
    return any(low <= other <= high for (low, high), other in bounds)
