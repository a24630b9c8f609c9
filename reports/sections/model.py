"""Section Model: metrics per slice against the baseline, and how the model errs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from reports import formats
from reports.charts.svg import is_finite
from reports.evaluation import OVERALL, PER_CLASS, Metric, read_metrics
from reports.read_run import RunData
from reports.run_values import Better, better, is_measured
from reports.sections import classification, mistakes
from reports.sections.classification import HISTOGRAM, ClassificationView
from reports.sections.mistakes import MistakesView
from reports.tables import Header, Mark, Table, decimals, numbers
from sluice.record.verdict import Check

EXAMPLES = "example_count"
_MAX_METRICS = 12


@dataclass(frozen=True)
class Value:
    """A metric's value, with its interval if there is one."""

    value: float | None
    text: str | None = None
    low: float | None = None
    high: float | None = None

    @property
    def shown(self) -> float | str | None:
        """The number, or the text in its place."""
        return self.text if self.value is None else self.value

    @property
    def interval(self) -> str | None:
        """The interval as text."""
        if self.low is None or self.high is None:
            return None
        return f"{formats.number(self.low)} to {formats.number(self.high)}"


@dataclass
class Slice:
    """The metrics of a slice, by model and name.

    Attributes:
      name: such as ``payment_type: Cash``; ``overall`` for all examples.
      models: metric name -> value, by ``candidate`` and ``baseline``.
      per_class: the number of examples of each class; empty if unknown.
    """

    name: str
    models: dict[str, dict[str, Value]] = field(default_factory=dict)
    per_class: list[float] = field(default_factory=list)

    @property
    def candidate(self) -> dict[str, Value]:
        """The metrics of the new model, or of the only one."""
        first: dict[str, Value] = next(iter(self.models.values()), {})
        return self.models.get("candidate", first)

    def change(self, name: str) -> float | None:
        """Returns by how much the candidate's value is above the baseline's."""
        new = self.candidate.get(name)
        old = self.models.get("baseline", {}).get(name)
        if new is None or old is None or new.value is None or old.value is None:
            return None
        return new.value - old.value

    def badness(self, name: str, direction: Better | None) -> tuple[int, float]:
        """Sorts worst first: by the change, else by the value; unusable ones last."""
        value = self.candidate.get(name)
        if value is None or value.value is None or not self.is_measured(name):
            return 1, 0.0
        change = self.change(name)
        sign = -1.0 if direction == "lower" else 1.0
        return 0, sign * (value.value if change is None else change)

    def is_measured(self, name: str) -> bool:
        """Whether the slice has examples of the classes that the metric needs."""
        return is_measured(name, self.per_class)


@dataclass(frozen=True)
class Evaluation:
    """One evaluation.

    Attributes:
      overall: the metrics of all examples.
      slices: those of each slice, the worst first.
      order: how the slices are sorted, in a sentence.
      left_out: how many more slices there are.
    """

    node: str
    overall: Table
    slices: Table | None
    order: str
    left_out: int
    classification: ClassificationView | None


@dataclass(frozen=True)
class ModelView:
    """What the section shows."""

    evaluations: list[Evaluation]
    mistakes: list[MistakesView]
    mark: Mark | None


def build(run: RunData) -> ModelView | None:
    """Returns the view; None if no model was evaluated."""
    classes = _classes(run)
    evaluations = [
        _evaluation(run, i, artifact, classes)
        for i, artifact in enumerate(run.documents("metrics"))
    ]
    if not evaluations:
        return None
    marks = [
        Mark("good", "passed") if gate["passed"] else Mark("bad", "not passed")
        for gate in run.record.gates
        if gate["gate"] == "model"
    ]
    return ModelView(evaluations, mistakes.build(run), next(iter(marks), None))


def _classes(run: RunData) -> list[str]:
    for artifact in run.documents("mistakes"):
        return [str(name) for name in artifact["classes"] or ()]
    configured = (run.record.config.get("label") or {}).get("classes")
    return [str(name) for name in configured or ()]


def _evaluation(
    run: RunData, index: int, artifact: dict[str, Any], classes: list[str]
) -> Evaluation:
    slices, histograms = _read(artifact)
    overall = slices.pop(OVERALL, Slice(OVERALL))
    counted = len(overall.per_class)
    if len(classes) != counted:
        classes = [str(i) for i in range(counted)]
    names = [name for name in overall.candidate if name != EXAMPLES]
    rows = [row for row in run.record.gate_rows("model") if row.limit_text]
    judged = [row.check.removesuffix(" change") for row in rows]
    primary = next((name for name in judged if name in names), None)
    if primary is None:
        usable = [name for name in names if overall.candidate[name].value is not None]
        primary = usable[0] if usable else None
    table, order = None, ""
    if slices:
        direction = better(primary, run.record.config) if primary else None
        table = _slices(index, list(slices.values()), names, primary, direction)
        if primary:
            by = f"change of {primary}" if "baseline" in overall.models else primary
            order = f"Worst first, by the {by}." if " " in by else f"Worst {by} first."
    return Evaluation(
        node=artifact["node"],
        overall=_overall(index, overall, rows, _split(run)),
        slices=table,
        order=order,
        left_out=artifact["slices_left_out"],
        classification=classification.build(artifact, histograms, classes),
    )


def _read(
    document: dict[str, Any],
) -> tuple[dict[str, Slice], dict[str, list[float]]]:
    """Returns the metrics by slice, and the histograms of predictions by model."""
    slices: dict[str, Slice] = {}
    histograms: dict[str, list[float]] = {}
    for item in read_metrics(document):
        found = slices.setdefault(item.slice, Slice(item.slice))
        values = found.models.setdefault(item.model, {})
        if item.name == HISTOGRAM:
            histograms[item.model] = item.array
        elif item.name != PER_CLASS:
            values[item.name] = _value(item)
        elif item.model != "baseline":
            found.per_class = item.array
    return slices, dict(sorted(histograms.items(), reverse=True))


def _value(item: Metric) -> Value:
    if item.value is None:
        return Value(None, item.text)
    low, high = item.bounds or (None, None)
    bounds = [x if is_finite(x) else None for x in (low, high)]
    if not is_finite(item.value):
        return Value(None, str(item.value), *bounds)
    return Value(item.value, None, *bounds)


def _split(run: RunData) -> str:
    """Returns the split that was evaluated; empty if unknown."""
    return next((str(item["split"]) for item in run.documents("mistakes")), "")


def _limit(row: Check) -> str:
    limit = formats.limit_text(row.limit_text or "")
    if not row.check.endswith(" change"):
        return limit
    return f"change {limit}".replace("change absolute", "change")


def _overall(index: int, overall: Slice, rows: Sequence[Check], split: str) -> Table:
    baseline = overall.models.get("baseline")
    has_interval = any(value.interval for value in overall.candidate.values())
    limits: dict[str, list[Check]] = {name: [] for name in overall.candidate}
    for row in rows:
        name = row.check.removesuffix(" change")
        if row.slice == OVERALL and name in limits:
            limits[name].append(row)
    has_limits = any(limits.values())
    columns: Header = ["Metric", numbers("Value")]
    columns += ["Interval"] if has_interval else []
    columns += [numbers("Baseline"), numbers("Change")] if baseline else []
    columns += ["Limit", "Result"] if has_limits else []
    table = []
    for name in sorted(limits, key=lambda name: (not limits[name], name == EXAMPLES)):
        value = overall.candidate[name]
        cells: list[Any] = [name, value.shown]
        cells += [value.interval] if has_interval else []
        if baseline:
            last = baseline.get(name)
            cells += [last.value if last else None, overall.change(name)]
        if has_limits:
            text = " and ".join(map(_limit, limits[name]))
            cells += [text or None, _result(limits[name])]
        table.append(cells)
    caption = "Metrics of all examples" + (f" of {split}" if split else "")
    return Table(f"metrics-{index}", caption, columns, table)


def _result(rows: Sequence[Check]) -> Mark | None:
    if not rows:
        return None
    passed = all(row.passed for row in rows)
    return Mark("good", "pass") if passed else Mark("bad", "fail")


def _slices(
    index: int,
    slices: list[Slice],
    names: Sequence[str],
    primary: str | None,
    direction: Better | None,
) -> Table:
    """Returns a row per slice, and columns for each metric."""
    if primary:
        slices.sort(key=lambda item: item.badness(primary, direction))
    shown = sorted(names, key=lambda name: name != primary)[:_MAX_METRICS]
    has_baseline = any("baseline" in item.models for item in slices)
    columns: Header = ["Slice", numbers("Examples")]
    with_interval = set()
    for name in shown:
        found = [item.candidate[name] for item in slices if name in item.candidate]
        if any(value.interval for value in found):
            with_interval.add(name)
        is_share = all(x.value is None or 0 <= x.value <= 1 for x in found)
        columns.append(numbers(name, "", decimals if is_share else formats.number))
        columns += ["Interval"] if name in with_interval else []
        columns += [numbers("Change")] if has_baseline else []
    rows = []
    for item in slices:
        count = item.candidate.get(EXAMPLES)
        row: list[Any] = [item.name, count.value if count else None]
        for name in shown:
            value = item.candidate.get(name) or Value(None)
            is_measured = item.is_measured(name)
            row.append(value.shown if is_measured else "one class")
            row += [value.interval] if name in with_interval else []
            row += [item.change(name) if is_measured else None] if has_baseline else []
        rows.append(row)
    return Table(f"slices-{index}", "Metrics of each slice", columns, rows)
