"""Metrics of the candidate against the baseline, on the same examples.

They are sorted by the harm that a change does. What may be chance is neither better nor
worse; see ``sluice.uncertainty``.
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
    estimates,
    read_metrics,
)
from reports.read_run import RunData
from reports.run_table import (
    better,
    examples_per_class,
    is_measured,
    label_task,
)
from sluice.uncertainty import (
    Estimate,
    SliceEstimates,
    Uncertainty,
    may_be_chance,
    shares_may_be_equal,
)

_OF_TWO_CLASSES = ("false positives", "false negatives")


@dataclass(frozen=True)
class SliceMetric(MetricChange):
    """A metric of the candidate, and of the baseline if there is one.

    Attributes:
      examples: of the slice, or of the class.
      estimate: of the candidate's value; None where it has no interval.
      reference: the metric of a constant prediction.
      text: what there is in place of a value, such as ``one class``.
    """

    examples: float = 0.0
    estimate: Estimate | None = None
    reference: float | None = None
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
        changes += _errors(run, document)
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
    per_class, task = examples_per_class(new), label_task(config)
    counted = {x.slice: x.value for x in new if x.name == EXAMPLES}
    uncertain = estimates(document)
    by_slice: dict[str, dict[str, SliceMetric]] = {}
    for item in new:
        if item.name == PER_CLASS:
            continue
        classes = per_class.get(item.slice, [])
        # An example may have several labels.
        total = 0.0 if task == "multi_label" else sum(classes)
        examples = counted.get(item.slice) or total
        before, after, text = old.get((item.slice, item.name)), item.value, item.text
        if after is not None and not is_measured(item.name, classes, task):
            text = "lacks a class" if "macro_average" in item.name else "one class"
            before, after = None, None
        of_slice = uncertain.get(item.slice, SliceEstimates())
        metric = item.name.partition(" (")[0]
        known = of_slice.known(metric, after)
        is_noise = (
            before is None or after is None or _is_noise(before, after, known, examples)
        )
        by_slice.setdefault(item.slice, {})[item.name] = SliceMetric(
            slice=item.slice,
            metric=item.name,
            before=before,
            after=after,
            better=better(item.name, config),
            is_noise=is_noise,
            examples=examples,
            estimate=of_slice.estimate(metric, after),
            reference=known.reference if known else None,
            text=text,
        )
    return by_slice


def class_names(run: RunData, count: int) -> list[str]:
    """Returns the names of the classes, or else their numbers."""
    configured = (run.record.config.get("label") or {}).get("classes")
    known = [document["classes"] for document in run.documents("mistakes")]
    for names in (*known, configured):
        if names and len(names) == count:
            return [str(name) for name in names]
    return [str(i) for i in range(count)]


def _errors(run: RunData, document: Mapping[str, Any]) -> Iterator[SliceMetric]:
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
    names = class_names(run, classes)
    for i, row in enumerate(matrices["candidate"]):
        total, rows = int(row.sum()) or 1, (matrices["baseline"][i], row)
        before, after = (int(x.sum() - x[i]) for x in rows)
        is_noise = shares_may_be_equal(before, after, total)
        key = (
            (OVERALL, _OF_TWO_CLASSES[i])
            if classes == 2
            else (f"class {names[i]}", "errors")
        )
        yield SliceMetric(*key, before, after, "lower", is_noise, total)


def _is_noise(
    before: float, after: float, known: Uncertainty | None, examples: float
) -> bool:
    """Returns whether a change may be chance; so may one whose interval is unknown."""
    interval = known and known.changes.get("baseline")
    return not interval or may_be_chance(after - before, interval, examples)


def worse_metrics(moved: Iterable[SliceMetric]) -> list[str]:
    """Returns what is worse than in the baseline, the most harmful first."""
    return [str(item) for item in moved if item.outcome == "worse"]
