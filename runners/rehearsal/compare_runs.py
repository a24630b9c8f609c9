"""Compares a rehearsed run with a local run of the same config.

The same statistics, schema and verdicts, and metrics within a tolerance: a training is
not the same to the last bit where its input was sharded otherwise.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from reports.read_run import RunData
from reports.run_values import metrics, statistics
from sluice.node_kinds import RESOLVERS
from sluice.record.run_record import RunRecord
from sluice.record.verdict import Check, Verdict

# Of a computation over the same values in another order.
_ROUNDING = 1e-6
# What names the same thing in each run: a model, a URI, a path, a run.
_NAME = re.compile(
    r"(version \d+ \()?artifact \d+ of run \w+(-\w+)?\)?"
    r"|gs://[^\s'\",;)]+"
    r"|(?<![\w.])/[^\s'\",;)]+"
    r"|\b\d{8}T\d{6}Z-\w+"
)


@dataclass(frozen=True)
class Difference:
    """What a rehearsed run has otherwise than the local one.

    Attributes:
      what: such as ``metrics: accuracy of overall`` or ``schema: fare.domain.max``.
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
        if newest.artifacts[uri].type == "Model" and node.kind not in RESOLVERS
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
    for what, read, limit in (
        ("schema", _schema, 0),
        ("statistics", _statistics, _ROUNDING),
        ("verdict", partial(_rows, of_model=False), _ROUNDING),
        ("verdict", partial(_rows, of_model=True), tolerance),
        ("metrics", _metrics, tolerance),
    ):
        one, other = read(local), read(rehearsed)
        for path, left, right in _differing(one, other, limit):
            yield Difference(f"{what}: {path}", str(left)[:80], str(right)[:80])


def _schema(run: RunData) -> dict[str, Any]:
    return {
        feature["name"]: feature
        for artifact in run.artifacts("schema")
        for feature in artifact["features"]
    }


def _statistics(run: RunData) -> dict[str, Any]:
    return {
        f"{feature['name']} of {split['split']}": feature
        for _, split in statistics(run)
        for feature in split["features"]
    }


def _metrics(run: RunData) -> dict[str, float]:
    return {
        f"{name} of {where}": value for (where, name), value in metrics(run).items()
    }


def _rows(run: RunData, *, of_model: bool) -> dict[str, list[dict[str, Any]]]:
    """Returns rows by gate, check and slice; a metric may have several limits."""
    found: dict[str, list[dict[str, Any]]] = {}
    for gate in run.record.gates:
        if (gate["gate"] == "model") == of_model:
            for row in Verdict.from_dict(gate).rows:
                name = f"{gate['gate']} gate, {row.check} of {row.slice}"
                found.setdefault(name, []).append(_decisive(row))
    return found


def _decisive(row: Check) -> dict[str, Any]:
    """Returns a row without what says in words what the rest says in values."""
    values = {
        key: getattr(row, key)
        for key in ("result", "limit", "baseline", "actual", "policy")
    }
    return {
        key: _NAME.sub("...", value) if isinstance(value, str) else value
        for key, value in values.items()
    }


def _differing(
    one: Any, other: Any, tolerance: float, path: str = ""
) -> Iterator[tuple[str, Any, Any]]:
    """Yields path and both values of what differs; None is what is missing."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        for key in {**one, **other}:
            inner = f"{path}.{key}" if path else str(key)
            yield from _differing(one.get(key), other.get(key), tolerance, inner)
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for index, pair in enumerate(zip(one, other, strict=True)):
            inner = f"{path}[{index}]" if len(one) > 1 else path
            yield from _differing(*pair, tolerance, inner)
    elif not _same(one, other, tolerance):
        yield path, one, other


def _same(one: Any, other: Any, tolerance: float) -> bool:
    numbers = isinstance(one, int | float) and isinstance(other, int | float)
    if numbers and float in (type(one), type(other)):
        if math.isnan(one) or math.isnan(other):
            return math.isnan(one) and math.isnan(other)
        return math.isclose(one, other, rel_tol=_ROUNDING, abs_tol=tolerance)
    return one == other
