"""Compares the reviewed schema of a pipeline with the data of its last run.

The differences are what the data gate would find: TFDV's anomalies, in its words.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

from tensorflow_metadata.proto.v0 import schema_pb2, statistics_pb2

from components.data_verdict.schema_rows import schema_rows
from pipeline.config.config import Config
from pipeline.graph.node_registry import STATISTICS
from runners.operations.find_run import (
    config_words,
    readable_runs,
    update_records,
    workspace_of,
)
from schemas.data_statistics import read_statistics, validate_in
from schemas.edit_schema import ACCEPTABLE
from schemas.loader import TRAINING
from sluice.errors import UsageError
from sluice.record.verdict import Check
from sluice.splits import number_of_examples
from sluice.workspace import next_command

_Statistics: TypeAlias = statistics_pb2.DatasetFeatureStatisticsList


@dataclass(frozen=True)
class Change:
    """A difference between schema and data.

    Attributes:
      feature: its name.
      kind: of the anomaly, as in the data gate's rows.
      why: TFDV's description, by split.
      refusal: why it cannot be accepted; None if it can.
    """

    feature: str
    kind: str
    why: Mapping[str, str]
    refusal: str | None

    @property
    def id(self) -> str:
        """The argument of ``accept``; stable as long as the difference exists."""
        return f"{self.feature}.{self.kind}"

    def to_dict(self) -> dict[str, Any]:
        """Returns the form that ``--json`` has."""
        return {"id": self.id, **asdict(self)}


@dataclass(frozen=True)
class Compared:
    """The differences between a schema and the data of a run.

    Attributes:
      run_id: of the last run with statistics.
      statistics: its own, by split.
      changes: by feature and kind.
    """

    run_id: str
    statistics: Mapping[str, _Statistics]
    changes: list[Change]


def compare_schema(schema: schema_pb2.Schema, config: Config) -> Compared:
    """Returns the differences between a schema and the data of the last run.

    Raises:
      UsageError: no run of the pipeline has statistics.
    """
    run_id, statistics = _last_statistics(config)
    failed_rows: dict[tuple[str, str], list[Check]] = {}
    for split, data in statistics.items():
        if number_of_examples(data):
            anomalies = validate_in(TRAINING, data, schema)
            rows = schema_rows(split, anomalies, data, schema, config.sensitive)
            for row in (row for row in rows if not row.passed):
                key = row.feature or "data set", str(row.kind)
                failed_rows.setdefault(key, []).append(row)
    changes = [
        Change(*key, {row.slice: row.why for row in rows}, _refusal(*key, config))
        for key, rows in failed_rows.items()
    ]
    return Compared(run_id, statistics, changes)


def _last_statistics(config: Config) -> tuple[str, dict[str, _Statistics]]:
    """Returns the last run that has statistics, and these by split."""
    workspace = workspace_of(config)
    update_records(workspace)
    for record in readable_runs(workspace):
        for node in record.nodes:
            if node.id == STATISTICS:
                for uri in node.outputs.get("statistics", []):
                    if statistics := read_statistics(uri):
                        return record.run_id, statistics
    raise UsageError(
        f"no run of {config.name} has statistics",
        where=workspace.runs,
        hint=next_command("run", *config_words(config), "--to", STATISTICS),
    )


def _refusal(name: str, kind: str, config: Config) -> str | None:
    """Returns why a difference is not written into the schema; None if it can be."""
    if kind == "missing" and name == config.label.feature:
        return "it is the label"
    if kind in ("new_value", "out_of_range") and name in config.sensitive:
        return "the feature is sensitive: its values are not written to a schema"
    if kind not in ACCEPTABLE:
        return "correct the data, or edit the schema by hand"
    return None
