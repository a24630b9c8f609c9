"""Section Model: metrics per slice against the baseline, and how the model errs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from markupsafe import Markup

from reports import formats
from reports.charts.svg import is_finite
from reports.evaluation import (
    EXAMPLES,
    HISTOGRAM,
    OVERALL,
    PER_CLASS,
    Metric,
    read_metrics,
)
from reports.flips import against_baseline, example_table
from reports.metric_changes import metric_changes
from reports.read_run import RunData
from reports.run_table import Better, better, is_measured
from reports.sections import classification, curves
from reports.tables import Column, Delta, Header, Mark, Table, decimals, numbers
from reports.uncertainty import Estimate, estimates, measured
from sluice.record.verdict import Check

_MAX_METRICS = 12
# The metrics of a slice with fewer examples say little.
_FEW = 30


@dataclass
class Slice:
    """The metrics of a slice, by model (``candidate``, ``baseline``) and name.

    Attributes:
      per_class: the number of examples of each class; empty if unknown.
      histograms: of predictions, by model.
      estimates: the candidate's metrics that have an interval.
      noise: metrics whose change may be chance.
    """

    models: dict[str, dict[str, Metric]] = field(default_factory=dict)
    per_class: list[float] = field(default_factory=list)
    histograms: dict[str, list[float]] = field(default_factory=dict)
    estimates: dict[str, Estimate] = field(default_factory=dict)
    noise: set[str] = field(default_factory=set)

    @property
    def candidate(self) -> dict[str, Metric]:
        """The metrics of the new model, or of the only one."""
        first: dict[str, Metric] = next(iter(self.models.values()), {})
        return self.models.get("candidate", first)

    @property
    def examples(self) -> float:
        """How many there are; 0 if it is unknown."""
        counted = self.candidate.get(EXAMPLES)
        return (counted and counted.value) or sum(self.per_class)

    def value(self, name: str) -> float | None:
        """Returns the candidate's value; None without one, or without a meaning."""
        metric = self.candidate.get(name)
        return metric.value if metric and is_measured(name, self.per_class) else None

    def change(self, name: str, direction: Better | None) -> Delta | None:
        """Returns by how much the candidate's value is above the baseline's."""
        last = self.models.get("baseline", {}).get(name)
        values = self.value(name), last and last.value
        return Delta.between(*values, direction, name in self.noise)

    def shown(self, name: str) -> Any:
        """Returns the candidate's value with its interval, or why there is none."""
        metric, value = self.candidate.get(name), self.value(name)
        if metric is None or value is not None:
            return self.estimates.get(name, value)
        return metric.text if metric.value is None else "one class"

    def goodness(self, name: str, direction: Better | None) -> tuple[bool, float]:
        """Sorts the most harmful first: change times examples, else by the value.

        Those without a usable value are last.
        """
        value, change = self.value(name), self.change(name, direction)
        if not is_finite(value):
            return True, 0.0
        number = change.value * (self.examples or 1) if change else value
        return False, float(number or 0) * (-1.0 if direction == "lower" else 1.0)


def build(run: RunData) -> dict[str, Any] | None:
    """Returns what the template shows; None if no model was evaluated."""
    evaluations = [
        _evaluation(run, *item) for item in enumerate(run.documents("metrics"))
    ]
    if not evaluations:
        return None
    passed = [x["passed"] for x in run.record.gates if x["gate"] == "model"]
    mistakes = run.documents("mistakes")
    return {
        "evaluations": evaluations,
        "passed": passed[0] if passed else None,
        "flips": against_baseline(run),
        "mistakes": [(item, _mistakes(i, item)) for i, item in enumerate(mistakes)],
    }


def _classes(run: RunData, count: int) -> list[str]:
    """Returns the names of the classes, or else their numbers."""
    configured = (run.record.config.get("label") or {}).get("classes")
    known = [document["classes"] for document in run.documents("mistakes")]
    for names in (*known, configured):
        if names and len(names) == count:
            return [str(name) for name in names]
    return [str(i) for i in range(count)]


def _evaluation(run: RunData, index: int, document: dict[str, Any]) -> dict[str, Any]:
    config = run.record.config
    slices = _read(document, config)
    for moved in metric_changes(run):
        if moved.is_noise and moved.slice in slices:
            slices[moved.slice].noise.add(moved.metric)
    overall = slices.pop(OVERALL, Slice())
    names = [name for name in overall.candidate if name != EXAMPLES]
    directions = {name: better(name, config) for name in names}
    checks = [x for x in run.record.gate_rows("model") if x.limit_text]
    judged = [row.check.removesuffix(" change") for row in checks]
    usable = [name for name in names if overall.candidate[name].value is not None]
    found = [name for name in judged if name in names] + usable
    primary = found[0] if found else None
    order = ""
    if slices and primary:
        key = lambda item: item[1].goodness(primary, directions[primary])  # noqa: E731
        slices = dict(sorted(slices.items(), key=key))
        is_change = "baseline" in overall.models
        order = f"Worst first, by the {'change of ' if is_change else ''}{primary}"
        order += ", times the number of examples." if is_change else "."
    classes = _classes(run, len(overall.per_class))
    split = next((str(item["split"]) for item in run.documents("mistakes")), "")
    return {
        "node": document["node"],
        "overall": _overall(index, overall, checks, directions, split),
        "undecided": _undecided(checks, {**slices, OVERALL: overall}),
        "slices": _slices(index, slices, directions, primary) if slices else None,
        "order": order,
        "left_out": document["slices_left_out"],
        "classification": classification.build(document, overall.histograms, classes),
        "by_slice": [
            (name, curves.draw(x.histograms, len(classes) == 2))
            for name, x in slices.items()
            if x.histograms
        ],
    }


def _read(document: dict[str, Any], config: Mapping[str, Any]) -> dict[str, Slice]:
    """Returns the slices by name, all examples first."""
    slices: dict[str, Slice] = {}
    for item in read_metrics(document):
        found = slices.setdefault(item.slice, Slice())
        values = found.models.setdefault(item.model, {})
        if item.name == HISTOGRAM:
            found.histograms[item.model] = item.array
        elif item.name != PER_CLASS:
            values[item.name] = item
        elif item.model != "baseline":
            found.per_class = item.array
    for (name, metric), estimate in estimates(document, config).items():
        slices[name].estimates[metric] = estimate
    for found in slices.values():
        found.histograms = dict(sorted(found.histograms.items(), reverse=True))
    return slices


def _overall(
    index: int,
    overall: Slice,
    checks: Sequence[Check],
    directions: Mapping[str, Better | None],
    split: str,
) -> Table:
    baseline = overall.models.get("baseline")
    limits: dict[str, list[Check]] = {name: [] for name in overall.candidate}
    for row in checks:
        name = row.check.removesuffix(" change")
        if row.slice == OVERALL and name in limits:
            limits[name].append(row)
    has_limits = any(limits.values())
    columns: Header = ["Metric", numbers("Value", measured(formats.number))]
    columns += [numbers("Baseline"), numbers("Change")] if baseline else []
    columns += ["Limit", "Result"] if has_limits else []
    rows = []
    for name in sorted(limits, key=lambda name: (not limits[name], name == EXAMPLES)):
        cells: list[Any] = [name, overall.shown(name)]
        if baseline is not None:
            last = baseline.get(name)
            change = overall.change(name, directions.get(name))
            cells += [last.value if last else None, change]
        if has_limits:
            cells += _limits(limits[name])
        rows.append(cells)
    caption = "Metrics of all examples" + (f" of {split}" if split else "")
    return Table(f"metrics-{index}", caption, columns, rows)


def _undecided(checks: Sequence[Check], slices: Mapping[str, Slice]) -> list[str]:
    """Returns a sentence for each limit that the uncertainty of a metric spans."""
    found = []
    for row in checks:
        limit, of = row.limit, slices.get(row.slice, Slice())
        estimate = of.estimates.get(row.check)
        if estimate and isinstance(limit, int | float) and estimate.contains(limit):
            where = "" if row.slice == OVERALL else f" of {row.slice}"
            found.append(
                f"{row.check}{where}: the limit {limit:g} lies within the interval, "
                f"{estimate.interval}: on other data of this size the gate might "
                "decide otherwise."
            )
    return found


def _limits(checks: Sequence[Check]) -> tuple[str | None, Mark | None]:
    """Returns the limits of a metric and whether it holds them."""
    if not checks:
        return None, None
    texts = [
        f"change {row.limit_text}".replace("change absolute", "change")
        if row.check.endswith(" change")
        else row.limit_text or ""
        for row in checks
    ]
    passed = all(row.passed for row in checks)
    mark = Mark("good", "pass") if passed else Mark("bad", "fail")
    return formats.limit_text(" and ".join(texts)), mark


def _slices(
    index: int,
    slices: Mapping[str, Slice],
    directions: Mapping[str, Better | None],
    primary: str | None,
) -> Table:
    """Returns a row per slice, and columns for each metric."""
    shown = sorted(directions, key=lambda name: name != primary)[:_MAX_METRICS]
    has_baseline = any("baseline" in item.models for item in slices.values())
    columns: Header = ["Slice", numbers("Examples")]
    for name in shown:
        values = [item.value(name) for item in slices.values()]
        is_share = all(0 <= float(x or 0) <= 1 for x in values if is_finite(x))
        columns.append(
            numbers(name, measured(decimals if is_share else formats.number))
        )
        columns += [numbers("Change")] if has_baseline else []
    rows: list[list[Any]] = []
    for where, item in slices.items():
        is_few = 0 < item.examples < _FEW
        row: list[Any] = [_few(where) if is_few else where, item.shown(EXAMPLES)]
        for name in shown:
            row.append(item.shown(name))
            row += [item.change(name, directions[name])] if has_baseline else []
        rows.append(row)
    return Table(f"slices-{index}", "Metrics of each slice", columns, rows)


def _few(where: str) -> Markup:
    text = '<span class="value few">{}</span> <small>(few examples)</small>'
    return Markup(text).format(formats.shorten(where, 200))


def _mistakes(index: int, document: dict[str, Any]) -> Table | None:
    """Returns the most confident mistakes as rows; None for those with pictures."""
    columns: dict[str, Column | str] = {
        "true": "True class",
        "predicted": "Predicted",
        "probability": numbers("Probability", formats.percent),
        "true_probability": numbers("Of the true class", formats.percent),
    }
    caption = "The most confident mistakes"
    return example_table(f"mistakes-{index}", caption, document["mistakes"], columns)
