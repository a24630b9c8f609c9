"""Compares a rehearsed run with a local run of the same config.

The same statistics, schema and verdicts, and metrics within a tolerance: a training is
not the same to the last bit where its input was sharded otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reports.compare import compare
from reports.read_run import RunData
from reports.run_values import statistics
from sluice.record.run_record import RunRecord
from sluice.record.verdict import Verdict

# Of a computation over the same values in another order.
_ROUNDING = 1e-6


@dataclass(frozen=True)
class Difference:
    """What a rehearsed run has otherwise than the local one.

    Attributes:
      what: such as ``metrics: accuracy of overall``.
      local: the local run's value, as text.
      rehearsed: the rehearsed run's.
    """

    what: str
    local: str
    rehearsed: str


def compare_runs(
    local: RunData, rehearsed: RunData, tolerance: float
) -> tuple[Difference, ...]:
    """Returns what differs between a local run and a rehearsed one.

    Args:
      local: of the same config and data.
      rehearsed: likewise.
      tolerance: the largest difference of a metric, absolute.
    """
    return tuple(_differences(local, rehearsed, tolerance))


def baseline_differences(records: Sequence[RunRecord]) -> tuple[Difference, ...]:
    """Returns a difference if a round does not compare with the last blessed model."""
    *earlier, last = records
    compared = [
        uri for node in last.nodes for uri in node.inputs.get("baseline_model", ())
    ]
    judged = [node for node in last.nodes if "baseline_model" in node.inputs]
    blessed = [record for record in earlier if _blesses(record)]
    if not (judged and blessed):
        return ()
    newest = blessed[-1]
    models = [
        uri
        for node in newest.nodes
        for uris in node.outputs.values()
        for uri in uris
        if newest.artifacts[uri].type == "Model" and node.kind != "Resolver"
    ]
    if set(models) & set(compared):
        return ()
    found = Difference(
        "the model that the new one is compared with",
        f"the blessed one of {newest.run_id}: {', '.join(models)}",
        ", ".join(compared) or "none",
    )
    return (found,)


def _blesses(record: RunRecord) -> bool:
    return any(gate["gate"] == "model" and gate["passed"] for gate in record.gates)


def _differences(
    local: RunData, rehearsed: RunData, tolerance: float
) -> Iterator[Difference]:
    before, after = local.record, rehearsed.record
    if before.status == "up_to_date" and after.status == "succeeded":
        if any(node.state == "skipped" for node in after.nodes):
            # Neither has found new data.
            return
    elif before.status != after.status:
        yield Difference("status", before.status, after.status)
    found = compare(local, rehearsed)
    for change in found.schema:
        yield Difference(
            f"schema: {change.name}", str(change.before), str(change.after)
        )
    yield from _statistics(local, rehearsed)
    yield from _verdicts(before, after, tolerance)
    for metric in found.metrics:
        if not _close(metric.before, metric.after, tolerance):
            name = f"metrics: {metric.metric} of {metric.slice}"
            yield Difference(name, str(metric.before), str(metric.after))


def _statistics(local: RunData, rehearsed: RunData) -> Iterator[Difference]:
    sides = [
        {
            (split["split"], feature["name"]): feature
            for _, split in statistics(run)
            for feature in split["features"]
        }
        for run in (local, rehearsed)
    ]
    for key in {**sides[0], **sides[1]}:
        one, other = (side.get(key) for side in sides)
        if not _same(one, other):
            split, feature = key
            yield Difference(f"statistics: {feature} of {split}", *(_part(one, other)))


def _part(one: Any, other: Any) -> tuple[str, str]:
    """Returns the first values that differ in two statistics, as text."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        for key in {**one, **other}:
            if not _same(one.get(key), other.get(key)):
                left, right = _part(one.get(key), other.get(key))
                return f"{key} {left}", f"{key} {right}"
    return str(one)[:80], str(other)[:80]


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(
            _same(value, other[key]) for key, value in one.items()
        )
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, float) or isinstance(other, float):
        return _close(one, other, _ROUNDING)
    return one == other


def _verdicts(
    before: RunRecord, after: RunRecord, tolerance: float
) -> Iterator[Difference]:
    sides = [
        {
            (gate["gate"], row.check, row.slice): row
            for gate in record.gates
            for row in Verdict.from_dict(gate).rows
        }
        for record in (before, after)
    ]
    for key in {**sides[0], **sides[1]}:
        one, other = (side.get(key) for side in sides)
        name = "verdict: {} gate, {} of {}".format(*key)
        if one is None or other is None:
            yield Difference(
                name, *("no row" if x is None else "a row" for x in (one, other))
            )
        elif one.result != other.result:
            yield Difference(name, one.result, other.result)
        # The baseline of a row may be named by the run that made it.
        elif (one.baseline is None) != (other.baseline is None):
            yield Difference(
                f"{name}: baseline", str(one.baseline), str(other.baseline)
            )
        elif not _close(one.actual, other.actual, tolerance):
            yield Difference(name, str(one.actual), str(other.actual))


def _close(one: Any, other: Any, tolerance: float) -> bool:
    if isinstance(one, int | float) and isinstance(other, int | float):
        if math.isnan(one) or math.isnan(other):
            return math.isnan(one) and math.isnan(other)
        return math.isclose(one, other, rel_tol=_ROUNDING, abs_tol=tolerance)
    return one == other or (isinstance(one, str) and isinstance(other, str))
