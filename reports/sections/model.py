"""Section Model: metrics per slice against the baseline, and how the model errs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

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
from reports.read_run import RunData
from reports.run_table import Better, better, is_measured
from reports.sections import classification
from reports.tables import Column, Header, Mark, Table, decimals, numbers
from sluice.record.verdict import Check

_MAX_METRICS = 12


@dataclass
class Slice:
    """The metrics of a slice, by model (``candidate``, ``baseline``) and name.

    Attributes:
      per_class: the number of examples of each class; empty if unknown.
    """

    models: dict[str, dict[str, Metric]] = field(default_factory=dict)
    per_class: list[float] = field(default_factory=list)

    @property
    def candidate(self) -> dict[str, Metric]:
        """The metrics of the new model, or of the only one."""
        first: dict[str, Metric] = next(iter(self.models.values()), {})
        return self.models.get("candidate", first)

    def change(self, name: str) -> float | None:
        """Returns by how much the candidate's value is above the baseline's."""
        found = self.candidate.get(name), self.models.get("baseline", {}).get(name)
        new, old = (metric.value if metric else None for metric in found)
        if new is None or old is None or not is_measured(name, self.per_class):
            return None
        return new - old

    def shown(self, name: str) -> float | str | None:
        """Returns the candidate's value, or why there is none."""
        metric = self.candidate.get(name)
        if metric is None or not is_measured(name, self.per_class):
            return metric and "one class"
        return metric.text if metric.value is None else metric.value

    def goodness(self, name: str, direction: Better | None) -> tuple[bool, float]:
        """Sorts worst first: by the change, else by the value; unusable ones last."""
        value = self.shown(name)
        if not is_finite(value):
            return True, 0.0
        change = self.change(name)
        number = value if change is None else change
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
    slices, histograms = _read(document)
    overall = slices.pop(OVERALL, Slice())
    names = [name for name in overall.candidate if name != EXAMPLES]
    checks = [x for x in run.record.gate_rows("model") if x.limit_text]
    judged = [row.check.removesuffix(" change") for row in checks]
    usable = [name for name in names if overall.candidate[name].value is not None]
    found = [name for name in judged if name in names] + usable
    primary = found[0] if found else None
    order = ""
    if slices and primary:
        direction = better(primary, run.record.config)
        key = lambda item: item[1].goodness(primary, direction)  # noqa: E731
        slices = dict(sorted(slices.items(), key=key))
        is_change = "baseline" in overall.models
        order = f"Worst first, by the {'change of ' if is_change else ''}{primary}."
    classes = _classes(run, len(overall.per_class))
    split = next((str(item["split"]) for item in run.documents("mistakes")), "")
    return {
        "node": document["node"],
        "overall": _overall(index, overall, checks, split),
        "slices": _slices(index, slices, names, primary) if slices else None,
        "order": order,
        "left_out": document["slices_left_out"],
        "classification": classification.build(document, histograms, classes),
    }


def _read(
    document: dict[str, Any],
) -> tuple[dict[str, Slice], dict[str, list[float]]]:
    """Returns the metrics by slice, and the histograms of predictions by model."""
    slices: dict[str, Slice] = {}
    histograms: dict[str, list[float]] = {}
    for item in read_metrics(document):
        found = slices.setdefault(item.slice, Slice())
        values = found.models.setdefault(item.model, {})
        if item.name == HISTOGRAM:
            histograms[item.model] = item.array
        elif item.name != PER_CLASS:
            values[item.name] = item
        elif item.model != "baseline":
            found.per_class = item.array
    return slices, dict(sorted(histograms.items(), reverse=True))


def _interval(metric: Metric | None) -> str | None:
    bounds = metric.bounds if metric else None
    return bounds and " to ".join(map(formats.number, bounds))


def _overall(index: int, overall: Slice, checks: Sequence[Check], split: str) -> Table:
    found, baseline = overall.candidate, overall.models.get("baseline")
    has_interval = any(map(_interval, found.values()))
    limits: dict[str, list[Check]] = {name: [] for name in found}
    for row in checks:
        name = row.check.removesuffix(" change")
        if row.slice == OVERALL and name in limits:
            limits[name].append(row)
    has_limits = any(limits.values())
    columns: Header = ["Metric", numbers("Value")]
    columns += ["Interval"] if has_interval else []
    columns += [numbers("Baseline"), numbers("Change")] if baseline else []
    columns += ["Limit", "Result"] if has_limits else []
    rows = []
    for name in sorted(limits, key=lambda name: (not limits[name], name == EXAMPLES)):
        cells: list[Any] = [name, overall.shown(name)]
        cells += [_interval(found[name])] if has_interval else []
        if baseline is not None:
            last = baseline.get(name)
            cells += [last.value if last else None, overall.change(name)]
        if has_limits:
            cells += _limits(limits[name])
        rows.append(cells)
    caption = "Metrics of all examples" + (f" of {split}" if split else "")
    return Table(f"metrics-{index}", caption, columns, rows)


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
    index: int, slices: Mapping[str, Slice], names: Sequence[str], primary: str | None
) -> Table:
    """Returns a row per slice, and columns for each metric."""
    shown = sorted(names, key=lambda name: name != primary)[:_MAX_METRICS]
    columns: Header = ["Slice", numbers("Examples")]
    rows: list[list[Any]] = [
        [name, item.shown(EXAMPLES)] for name, item in slices.items()
    ]
    for name in shown:
        values = [item.shown(name) for item in slices.values()]
        is_share = all(0 <= float(x or 0) <= 1 for x in values if is_finite(x))
        found = [(numbers(name, decimals if is_share else formats.number), values)]
        intervals = [_interval(item.candidate.get(name)) for item in slices.values()]
        if any(intervals):
            found.append((Column("Interval"), intervals))  # type: ignore[arg-type]
        if any("baseline" in item.models for item in slices.values()):
            changes = [item.change(name) for item in slices.values()]
            found.append((numbers("Change"), changes))  # type: ignore[arg-type]
        for column, cells in found:
            columns.append(column)
            for row, cell in zip(rows, cells, strict=True):
                row.append(cell)
    return Table(f"slices-{index}", "Metrics of each slice", columns, rows)


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
