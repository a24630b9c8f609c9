"""Metrics of the candidate against the baseline, on the same examples.

They are sorted by the harm that a change does. What may be chance is neither better nor
worse: a change on a few examples, or one within the interval of either value.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from reports.charts.svg import is_finite
from reports.compare import MetricChange
from reports.evaluation import (
    EXAMPLES,
    HISTOGRAM,
    OVERALL,
    PER_CLASS,
    confusion_matrices,
    effective_examples,
    read_metrics,
)
from reports.read_run import RunData
from reports.run_table import (
    better,
    examples_per_class,
    is_measured,
    kinds_of,
    label_task,
)
from reports.uncertainty import Estimate, estimate, wilson

MIN_EXAMPLES = 30
_OF_TWO_CLASSES = ("false positives", "false negatives")


@dataclass(frozen=True)
class SliceMetric(MetricChange):
    """A metric of the candidate, and of the baseline if there is one.

    Attributes:
      is_noise: whether the change may be chance.
      examples: of the slice, or of the class.
      estimate: of the candidate's value; None where it has no interval.
      text: what there is in place of a value, such as ``one class``.
    """

    is_noise: bool = False
    examples: float = 0.0
    estimate: Estimate | None = None
    text: str = ""

    @property
    def shown(self) -> Estimate | float | str:
        """The candidate's value with its interval, or why there is none."""
        return self.text if self.after is None else self.estimate or self.after

    @property
    def harm(self) -> tuple[bool, float]:
        """Sorts the most harmful change first, by examples; what may be chance last.

        Without a baseline it sorts the worst value first.
        """
        number = self.after if self.before is None else self.delta
        if number is None or not is_finite(number):
            return True, math.inf
        # A number of examples is itself what a share is times its examples.
        is_count = self.before is None or isinstance(self.after, int)
        gain = number if is_count else number * (self.examples or 1)
        return self.is_noise, -gain if self.better == "lower" else gain

    def __str__(self) -> str:
        of = "" if self.slice == OVERALL else f" of {self.slice}"
        return f"{self.metric}{of} ({' to '.join(self.texts)})"


def metric_changes(run: RunData) -> list[SliceMetric]:
    """Returns the metrics that have a direction, the most harmful change first."""
    changes: list[SliceMetric] = []
    for document in run.documents("metrics"):
        slices = metrics_by_slice(document, run.record.config).values()
        metrics = [item for of_slice in slices for item in of_slice.values()]
        changes += (x for x in metrics if x.better and x.delta is not None)
        changes += _errors(document)
    return sorted(changes, key=lambda item: (item.harm, item.slice, item.metric))


def metrics_by_slice(
    document: Mapping[str, Any], config: Mapping[str, Any]
) -> dict[str, dict[str, SliceMetric]]:
    """Returns the candidate's metrics by slice and name, all examples first.

    Args:
      document: ``metrics``.
      config: the resolved config, which has the classes of metrics by their names.
    """
    metrics = [x for x in read_metrics(document) if x.name != HISTOGRAM]
    old = {(x.slice, x.name): x.value for x in metrics if x.model == "baseline"}
    new = [x for x in metrics if x.model != "baseline"]
    per_class = examples_per_class(new, config)
    # With several labels, shares are pooled over the classes of an example.
    has_shares = label_task(config) != "multi_label"
    counted = {x.slice: x.value for x in new if x.name == EXAMPLES}
    effective = effective_examples(document)
    by_slice: dict[str, dict[str, SliceMetric]] = {}
    for item in new:
        if item.name == PER_CLASS:
            continue
        classes = per_class.get(item.slice, [])
        examples = counted.get(item.slice) or sum(classes)
        # That of weighted examples; it is unknown of each class.
        size = effective.get(item.slice, examples)
        before, after, text = old.get((item.slice, item.name)), item.value, item.text
        if after is not None and not is_measured(item.name, classes):
            before, after, text = None, None, "one class"
        known = None
        if after is not None:
            kinds = kinds_of(item.name, config) if has_shares else []
            known = estimate(item, kinds, size, [] if effective else classes)
        is_noise = False
        if before is not None and after is not None:
            is_noise = may_be_chance(before, after, size, known)
        by_slice.setdefault(item.slice, {})[item.name] = SliceMetric(
            slice=item.slice,
            metric=item.name,
            before=before,
            after=after,
            better=better(item.name, config),
            is_noise=is_noise,
            examples=examples,
            estimate=known,
            text=text,
        )
    return by_slice


def _errors(document: Mapping[str, Any]) -> Iterator[SliceMetric]:
    """Yields how many examples of each class are predicted as another one.

    None if they are weighted: what chance makes of the sums is not known.
    """
    if effective_examples(document):
        return
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
        yield SliceMetric(*key, before, after, "lower", is_noise, total)


def may_be_chance(
    before: float, after: float, examples: float, known: Estimate | None = None
) -> bool:
    """Returns whether one value lies within the interval of the other.

    A metric without an interval, such as AUC or a loss, is taken for a share if it is
    from 0 to 1, else for a mean of values that are as scattered as they are large.
    """
    if examples < MIN_EXAMPLES or (known and known.contains(before)):
        return True
    if not (0 <= before <= 1 and 0 <= after <= 1):
        return abs(after - before) <= 2 * abs(before) / math.sqrt(examples)
    pairs = (before, after), (after, before)
    bounds = [(wilson(x * examples, examples), other) for x, other in pairs]
    return any(low <= other <= high for (low, high), other in bounds)


def worse_metrics(moved: Iterable[SliceMetric]) -> list[str]:
    """Returns what is worse than in the baseline, the most harmful first."""
    return [str(item) for item in moved if item.outcome == "worse"]
