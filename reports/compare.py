"""Compares two runs by their records: outcome, config, code, data, metrics, time.

Pure: it reads what two runs hold and decides nothing. What only one of the runs has a
value for is a difference too, with None for the other. Of what a run lacks altogether,
such as metrics if it failed before, there is no difference.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from reports.feature_changes import FeatureChange, feature_changes
from reports.read_run import RunData
from reports.run_values import (
    Better,
    Change,
    better,
    changes,
    duration_s,
    examples,
    metrics,
    outcome,
    parameters,
    version,
)
from sluice.json_paths import flatten
from sluice.record.json_number import json_number
from sluice.record.parts import NodeRecord
from sluice.record.run_record import RunRecord
from sluice.record.verdict import Verdict


@dataclass(frozen=True)
class SourceChange:
    """A module that nodes of both runs read, with another content."""

    name: str
    change: Literal["changed", "new", "gone"]
    nodes: tuple[str, ...]


@dataclass(frozen=True)
class RowChange:
    """A row of a gate's verdict whose result, limit or value differs.

    Attributes:
      gate, check, slice: which row.
      before: ``result``, ``limit``, ``value`` and ``why``; None if the run has no such
        row. The value of a row that names the baseline is that name.
      after: likewise.
    """

    gate: str
    check: str
    slice: str
    before: dict[str, Any] | None
    after: dict[str, Any] | None


@dataclass(frozen=True)
class MetricChange:
    """A metric of a slice in both runs, also where it is the same.

    Attributes:
      slice: ``overall`` or such as ``payment_type: Cash``.
      metric: its name.
      before: its value; None if the run has none.
      after: likewise.
      better: the direction in which it improves; None if it is unknown.
    """

    slice: str
    metric: str
    before: float | None
    after: float | None
    better: Better | None

    @property
    def delta(self) -> float | None:
        """Returns after minus before; None without both."""
        if self.before is None or self.after is None:
            return None
        return self.after - self.before

    @property
    def outcome(self) -> Literal["same", "better", "worse", "differs"]:
        """Returns ``differs`` where the direction or one of the values is unknown."""
        if str(self.before) == str(self.after):
            return "same"  # NaN too
        if not self.delta or math.isnan(self.delta) or self.better is None:
            return "differs"
        return "better" if (self.delta > 0) == (self.better == "higher") else "worse"


@dataclass(frozen=True)
class NodeTime:
    """A node's state and duration in both runs; None where a run has no such node."""

    node: str
    before_state: str | None
    before_s: float | None
    after_state: str | None
    after_s: float | None


@dataclass(frozen=True)
class Side:
    """One of the two runs."""

    run_id: str
    pipeline: str
    started_at: str
    status: str
    outcome: str
    version: int | None
    duration_s: float | None
    tags: dict[str, str]


@dataclass(frozen=True)
class Comparison:
    """What differs between two runs.

    Attributes:
      before: the run to compare with.
      after: the other run.
      config: values of the config by path.
      code: modules.
      inputs: of ``config``, ``schema``, ``code`` and ``data``, those whose digests
        differ.
      schema: parts of the schema, such as ``fare.float_domain.max``; a feature's type
        where it is new or gone.
      packages: versions.
      spans: chosen spans, by input.
      examples: number of examples, by split.
      features: statistics of features, the largest shift first.
      gates: rows of verdicts.
      metrics: all metrics of both runs, also those that are the same.
      times: all nodes of both runs.
    """

    before: Side
    after: Side
    config: tuple[Change, ...]
    code: tuple[SourceChange, ...]
    inputs: tuple[str, ...]
    schema: tuple[Change, ...]
    packages: tuple[Change, ...]
    spans: tuple[Change, ...]
    examples: tuple[Change, ...]
    features: tuple[FeatureChange, ...]
    gates: tuple[RowChange, ...]
    metrics: tuple[MetricChange, ...]
    times: tuple[NodeTime, ...]

    @property
    def changed_metrics(self) -> list[MetricChange]:
        """Returns the metrics that differ, in their order."""
        return [item for item in self.metrics if item.outcome != "same"]

    def to_dict(self) -> dict[str, Any]:
        """Returns the JSON form; an infinite or undefined number is a string."""
        found = asdict(self)
        for item, metric in zip(found["metrics"], self.metrics, strict=True):
            item |= {"delta": metric.delta, "outcome": metric.outcome}
        return {"schema_version": 1, **_json(found)}


def compare(before: RunData, after: RunData) -> Comparison:
    """Returns what differs between two runs."""
    old, new = before.record, after.record
    return Comparison(
        before=_side(old),
        after=_side(new),
        config=_known_changes(*parameters([old, new])),
        code=_sources(before, after),
        inputs=tuple(
            name
            for name, digest in new.digests.items()
            if old.digests.get(name, digest) != digest
        ),
        schema=_schema(before, after),
        packages=_known_changes(old.packages, new.packages),
        spans=_known_changes(_spans(old), _spans(new)),
        examples=_known_changes(examples(before), examples(after)),
        features=feature_changes(before, after),
        gates=_rows(old, new),
        metrics=_metrics(before, after),
        times=_times(old, new),
    )


def _side(record: RunRecord) -> Side:
    return Side(
        run_id=record.run_id,
        pipeline=record.pipeline,
        started_at=record.started_at,
        status=record.status,
        outcome=outcome(record),
        version=version(record),
        duration_s=duration_s(record),
        tags=record.tags,
    )


def _known_changes(
    before: Mapping[str, Any], after: Mapping[str, Any]
) -> tuple[Change, ...]:
    """Returns nothing where a record has no values, as of a run that failed early."""
    return changes(before, after) if before and after else ()


def _sources(before: RunData, after: RunData) -> tuple[SourceChange, ...]:
    """Compares the code of the nodes that the models of both runs come from."""
    found: dict[tuple[str, Any], list[str]] = {}
    old, new = _code(before), _code(after)
    for node in new.keys() & old.keys():
        for change in changes(old[node], new[node]):
            kind = "changed"
            if change.before is None or change.after is None:
                kind = "new" if change.before is None else "gone"
            found.setdefault((change.name, kind), []).append(node)
    return tuple(
        SourceChange(name, kind, tuple(sorted(nodes)))
        for (name, kind), nodes in sorted(found.items())
    )


def _code(run: RunData) -> dict[str, Mapping[str, str]]:
    """Returns the digests of the modules that each node has read."""
    return {
        execution["node"]: execution["code"]
        for document in run.documents("lineage")
        for execution in document["executions"]
        if isinstance(execution.get("code"), Mapping)
    }


def _schema(before: RunData, after: RunData) -> tuple[Change, ...]:
    documents = [run.documents("schema")[:1] for run in (before, after)]
    if [] in documents:
        return ()
    old, new = (
        {item["name"]: item for item in found[0]["schema"].get("feature", ())}
        for found in documents
    )
    found: list[Change] = []
    for name in {**old, **new}:
        if name in old and name in new:
            found += changes(flatten(old[name], name), flatten(new[name], name))
        else:
            types = [features.get(name, {}).get("type") for features in (old, new)]
            found.append(Change(name, *types))
    return tuple(found)


def _spans(record: RunRecord) -> dict[str, list[str]]:
    return {
        name: [
            str(span["span"])
            + (f" v{span['version']}" if span["version"] is not None else "")
            + (f" ({span['date']})" if span["date"] else "")
            for span in spans
        ]
        for name, spans in record.spans.items()
    }


def _rows(before: RunRecord, after: RunRecord) -> tuple[RowChange, ...]:
    old, new = _by_check(before), _by_check(after)
    # Not those of a gate that one of the runs has not reached.
    reached = {key[0] for key in old} & {key[0] for key in new}
    return tuple(
        RowChange(*key, old.get(key), new.get(key))
        for key in {**old, **new}
        if key[0] in reached and _decisive(old.get(key)) != _decisive(new.get(key))
    )


def _decisive(row: dict[str, Any] | None) -> dict[str, Any] | None:
    return {**row, "why": None} if row else None


def _by_check(record: RunRecord) -> dict[tuple[str, str, str], dict[str, Any]]:
    rows: dict[tuple[str, str, str], dict[str, Any]] = {}
    for gate in record.gates:
        for row in Verdict.from_dict(gate).rows:
            key, number = (gate["gate"], row.check, row.slice), 1
            while key in rows:
                # A metric may have several limits.
                number += 1
                key = (gate["gate"], f"{row.check} ({number})", row.slice)
            rows[key] = {
                "result": row.result,
                "limit": row.limit_text,
                "value": row.baseline if row.actual is None else row.actual,
                "why": row.why,
            }
    return rows


def _metrics(before: RunData, after: RunData) -> tuple[MetricChange, ...]:
    old, new = metrics(before), metrics(after)
    if not old or not new:
        return ()
    directions: dict[str, Better | None] = {}
    config = after.record.config or before.record.config
    for _, name in {**new, **old}:
        if name not in directions:
            directions[name] = better(name, config)
    return tuple(
        MetricChange(*key, old.get(key), new.get(key), directions[key[1]])
        for key in {**new, **old}
    )


def _times(before: RunRecord, after: RunRecord) -> tuple[NodeTime, ...]:
    old = {node.id: node for node in before.nodes}
    new = {node.id: node for node in after.nodes}
    return tuple(
        NodeTime(node_id, *_time(old.get(node_id)), *_time(new.get(node_id)))
        for node_id in {**new, **old}
    )


def _time(node: NodeRecord | None) -> tuple[str | None, float | None]:
    return (node.state, node.duration_s) if node else (None, None)


def _json(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_json(item) for item in value]
    return json_number(value) if isinstance(value, float) else value
