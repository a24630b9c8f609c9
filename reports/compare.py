"""Compares two runs by their records: outcome, config, code, data, metrics, time.

What a run holds is flattened to values by name, kind by kind, and one loop finds those
that differ; None stands for what only one of the runs has. Of what a run lacks
altogether, such as metrics if it failed before, there is no difference.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from reports import formats
from reports.charts.svg import is_finite
from reports.evaluation import OVERALL, estimates
from reports.feature_statistics import FeatureStatistics, statistics
from reports.flips import Flips, flips_between
from reports.read_run import RunData
from reports.run_table import Better, better, examples, metrics
from reports.tables import Delta, Outcome
from sluice.errors import bounded
from sluice.json_values import flatten, jsonable
from sluice.record.outcome import run_facts
from sluice.record.parts import NodeRecord
from sluice.record.run_record import RunRecord
from sluice.uncertainty import SliceEstimates, evaluations_may_be_equal

_MAX_NAMED = 3
_MAX_CHARS = 90
_ROUNDING = 1e-9
# What a label's metrics are of.
_LABEL = ("feature", "classes", "positive", "targets")


@dataclass(frozen=True)
class Change:
    """A value that differs; None where a run has none."""

    name: str
    before: Any
    after: Any

    @property
    def texts(self) -> tuple[str, str]:
        """Both values as short text; numbers have the decimals that tell them apart."""
        values = self.before, self.after
        decimals = formats.decimals_of(*filter(is_finite, values))
        return _text(self.before, decimals), _text(self.after, decimals)

    def __str__(self) -> str:
        return f"{self.name} {' → '.join(self.texts)}"


def _text(value: Any, decimals: int | None) -> str:
    if value is None:
        return "none"
    if is_finite(value):
        return formats.fixed(value, decimals)
    text = value if isinstance(value, str) else json.dumps(value)
    return formats.shorten(text, _MAX_CHARS)


@dataclass(frozen=True)
class MetricChange:
    """A metric of a slice in both runs, also where it is the same.

    Attributes:
      better: the direction in which it improves; None if it is unknown.
      is_noise: whether the change may be chance.
    """

    slice: str
    metric: str
    before: float | None
    after: float | None
    better: Better | None
    is_noise: bool = False

    @property
    def delta(self) -> float | None:
        """After minus before; None without both."""
        if self.before is None or self.after is None:
            return None
        return self.after - self.before

    @property
    def outcome(self) -> Outcome:
        """``same``, ``better``, ``worse``, or ``differs`` where neither is known."""
        if str(self.before) == str(self.after):
            return "same"  # NaN too
        delta = self.delta
        if not delta or math.isnan(delta) or not self.better or self.is_noise:
            return "differs"
        return "better" if (delta > 0) == (self.better == "higher") else "worse"

    @property
    def change(self) -> Delta | None:
        """The cell of a table with the delta; None without one."""
        if self.delta is None:
            return None
        decimals = formats.decimals_of(self.before, self.after)
        return Delta(self.delta, self.outcome, decimals)

    @property
    def texts(self) -> tuple[str, str]:
        """Both values as text, see ``Change``."""
        return Change(self.metric, self.before, self.after).texts

    def __str__(self) -> str:
        return f"{self.metric} {' → '.join(self.texts)} ({self.outcome})"


@dataclass(frozen=True)
class FeatureChange:
    """A feature of a split whose statistics differ.

    Attributes:
      shift: how far the values have moved, for the order of a table: the largest of
        the change of the mean in standard deviations, of the fraction of examples
        without the feature, and of the fraction of a value; infinite for a feature that
        only one run has or that has another type.
      statistics: those that differ; ``top value`` is the most frequent one.
    """

    split: str
    feature: str
    shift: float
    statistics: list[Change]


@dataclass(frozen=True)
class Comparison:
    """What differs between two runs.

    Attributes:
      before, after: facts of the two runs; see ``run_facts``.
      changes: values that differ by kind: ``config``, ``code`` (digests of modules),
        ``schema``, ``packages``, ``spans``, ``examples``, ``digests``, ``gates``,
        ``times``.
      features: the largest shift first.
      metrics: of both runs, also those that are the same.
      flips: predictions that are newly right or wrong; None where none is known.
      runs: before and after.
    """

    before: dict[str, Any]
    after: dict[str, Any]
    changes: dict[str, list[Change]]
    features: list[FeatureChange]
    metrics: list[MetricChange]
    flips: Flips | None
    runs: tuple[RunData, ...]

    def to_dict(self) -> dict[str, Any]:
        """Returns the JSON form; an infinite or undefined number is a string."""
        flips = self.flips and replace(self.flips, examples={})
        document = {"schema_version": 1, **asdict(replace(self, flips=flips, runs=()))}
        del document["runs"]
        for item, metric in zip(document["metrics"], self.metrics, strict=True):
            item |= {"delta": metric.delta, "outcome": metric.outcome}
        return jsonable(document)


def compare(before: RunData, after: RunData) -> Comparison:
    """Returns what differs between two runs."""
    old, new = _values(before), _values(after)
    differing = {"code": _code(before, after)}
    differing |= {x: changes(old[x], new[x]) for x in old if old[x] and new[x]}
    return Comparison(
        before=run_facts(before.record),
        after=run_facts(after.record),
        changes=differing,
        features=_features(before, after),
        metrics=_metrics(before, after),
        flips=flips_between(before, after),
        runs=(before, after),
    )


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Change]:
    """Returns the values that differ; numbers may differ by an error of rounding."""
    pairs = ((name, before.get(name), after.get(name)) for name in {**before, **after})
    return [Change(*pair) for pair in pairs if not _same(*pair[1:])]


def _same(before: Any, after: Any) -> bool:
    try:
        return before == after or math.isclose(before, after, rel_tol=_ROUNDING)
    except TypeError:
        return False


def _values(run: RunData) -> dict[str, dict[str, Any]]:
    """Returns what a run holds, by kind and name."""
    record, schemas = run.record, run.documents("schema")[:1]
    spans = {
        name: ", ".join(map(formats.span_text, found))
        for name, found in record.spans.items()
    }
    schema = {
        key: value
        for document in schemas
        for feature in document["schema"].get("feature", ())
        for key, value in flatten(feature, feature["name"]).items()
        if key != f"{feature['name']}.name"
    }
    return {
        "config": flatten(record.config),
        "schema": schema,
        "packages": record.packages,
        "spans": spans,
        "examples": examples(run),
        # Each value of the config is compared.
        "digests": {
            name: digest[:12]
            for name, digest in record.digests.items()
            if digest and name != "config"
        },
        "gates": _checks(record),
        "times": {node.id: _node_text(node) for node in record.nodes},
    }


def _node_text(node: NodeRecord) -> str:
    parts = (formats.state(node.state), formats.seconds(node.duration_s, ""))
    return ", ".join(filter(None, parts))


def _code(before: RunData, after: RunData) -> list[Change]:
    """Compares the modules of the nodes that the models of both runs come from."""
    old, new = (
        {
            execution["node"]: {x: y[:12] for x, y in execution["code"].items()}
            for document in run.documents("lineage")
            for execution in document["executions"]
            if isinstance(execution.get("code"), Mapping)
        }
        for run in (before, after)
    )
    nodes = sorted(old.keys() & new.keys())
    by_module = {x.name: x for node in nodes for x in changes(old[node], new[node])}
    return [by_module[name] for name in sorted(by_module)]


def _checks(record: RunRecord) -> dict[str, str]:
    """Returns the results of the gates' checks."""
    results: dict[str, str] = {}
    for verdict in record.gates:
        for row in verdict.rows:
            name = f"{row.check} of the {verdict.gate} gate, {row.slice}"
            value = row.baseline if row.actual is None else row.actual
            limit = formats.limit_text(row.limit_text or "")
            text = f"{row.result}: {formats.number(value)}{limit and ', limit '}{limit}"
            # A metric may have several limits.
            results[name] = f"{results[name]}; {text}" if name in results else text
    return results


def _features(before: RunData, after: RunData) -> list[FeatureChange]:
    old, new = (
        {(x.split, item.name): item for x in statistics(run) for item in x.features}
        for run in (before, after)
    )
    moved = []
    for key in {**old, **new} if old and new else ():
        was, now = old.get(key), new.get(key)
        differing, shift = changes(_statistics(was), _statistics(now)), _shift(was, now)
        if differing or shift > _ROUNDING:
            moved.append(FeatureChange(*key, shift, differing))
    return sorted(moved, key=lambda item: -item.shift)


def _statistics(feature: FeatureStatistics | None) -> dict[str, Any]:
    if feature is None:
        return {}
    names = ("type", "min_values", "max_values")
    values = {name: getattr(feature, name) for name in names} | feature.numbers
    for top, count in [*feature.top_values.items()][:1]:
        values |= {"top value": top, "top share": count / feature.examples}
    return values


def _shift(before: FeatureStatistics | None, after: FeatureStatistics | None) -> float:
    if before is None or after is None or before.type != after.type:
        return math.inf
    missing = [item.numbers["missing"] / item.examples for item in (before, after)]
    shares = [item.top_values for item in (before, after)]
    shifts = [abs(missing[1] - missing[0])]
    for value in {**shares[0], **shares[1]}:
        old, new = shares[0].get(value, 0.0), shares[1].get(value, 0.0)
        shifts.append(abs(new / after.examples - old / before.examples))
    old, new = (x.numbers.get("mean", math.nan) for x in (before, after))
    if (moved := abs(new - old)) > 0:
        deviation = before.numbers.get("std dev")
        shifts.append(moved / deviation if deviation else math.inf)
    return max(shifts)


def _metrics(before: RunData, after: RunData) -> list[MetricChange]:
    old, new = metrics(before), metrics(after)
    if not old or not new:
        return []
    config = after.record.config or before.record.config
    names = {name for _, name in {**new, **old}}
    labels = [x.record.config.get("label") or {} for x in (before, after)]
    is_same = all(labels[0].get(x) == labels[1].get(x) for x in _LABEL)
    # Of other classes or targets a metric is another one.
    directions = {x: better(x, config) if is_same else None for x in names}
    known: list[dict[str, SliceEstimates]] = [{}, {}]
    for run, estimated in zip((before, after), known, strict=True):
        for document in run.documents("metrics"):
            estimated.update(estimates(document))
    found = []
    for part, name in {**new, **old}:
        was, now = old.get((part, name)), new.get((part, name))
        of_slice = [x.get(part, SliceEstimates()) for x in known]
        metric = name.partition(" (")[0]
        is_noise = evaluations_may_be_equal(metric, was, now, *of_slice)
        found.append(MetricChange(part, name, was, now, directions[name], is_noise))
    return found


def summarize_changes(comparison: Comparison) -> list[str]:
    """Returns a line per kind of change: config, code, schema, data, metrics.

    Each names at most three examples and counts the others. Empty if nothing differs
    that may have an effect on the model.
    """
    shown = ("config", "code", "schema", "packages", "spans", "examples", "digests")
    lines = {
        kind: [
            x.name if kind in ("code", "digests") else str(x)
            for x in comparison.changes.get(kind, ())
        ]
        for kind in shown
    }
    lines["features"] = [f"{x.feature} ({x.split})" for x in comparison.features]
    if comparison.flips and comparison.flips.newly_right + comparison.flips.newly_wrong:
        lines["predictions"] = [str(comparison.flips)]
    judged = [x for x in comparison.metrics if x.slice == OVERALL]
    lines["metrics"] = [
        str(change)
        for outcome in ("worse", "better")
        for change in judged
        if change.outcome == outcome
    ]
    return [
        f"{kind}: {', '.join(bounded(items, _MAX_NAMED))}"
        for kind, items in lines.items()
        if items
    ]
