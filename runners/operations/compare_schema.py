"""Compares the reviewed schema of a pipeline with the data of a run, or of now.

The differences are what the data gate would find: TFDV's anomalies, in its words.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from tensorflow_metadata.proto.v0 import schema_pb2, statistics_pb2

from components.data_verdict.schema_rows import features_of, schema_rows
from components.tfrecord_gen.scan import scan
from pipeline.config.config import Config
from pipeline.graph.choose_spans import choose_data
from pipeline.graph.node_registry import STATISTICS
from pipeline.scaffold.find_examples import find_examples
from runners.operations.find_run import find_run, readable_runs, update_records
from runners.operations.pipeline_request import (
    config_words,
    next_command,
    workspace_of,
)
from schemas import loader
from schemas.data_statistics import (
    compute_statistics,
    import_tfdv,
    read_statistics,
)
from schemas.edit_schema import ACCEPTABLE
from schemas.loader import TRAINING, string_domain
from sluice.errors import DataError, UsageError
from sluice.record.run_record import RunRecord
from sluice.record.verdict import Check
from sluice.splits import number_of_examples
from sluice.tfrecords.frame_reader import RecordError

# The records of files without splits, before they are hashed into some.
_HASHED = "all"
# TFDV's placeholders for bytes that are not text and for long text (its constants.py).
_PLACEHOLDERS = ("__BYTES_VALUE__", "__LARGE_BYTES__")

_SENSITIVE = "the feature is sensitive: its values are not written to a schema"
_REFUSED = {
    "wrong_type": "correct the data, or edit the schema by hand",
    "not_finite": "a schema cannot allow it; a rule in the config's validate can",
}
_Statistics: TypeAlias = statistics_pb2.DatasetFeatureStatisticsList


@dataclass(frozen=True)
class Source:
    """The statistics of each split, and where they come from.

    ``text`` says where, for a line; ``facts``, for ``--json``.
    """

    statistics: Mapping[str, _Statistics]
    text: str
    facts: dict[str, Any]

    @property
    def splits(self) -> dict[str, int]:
        """The number of records of each split."""
        return {
            split: number_of_examples(found) for split, found in self.statistics.items()
        }


@dataclass(frozen=True)
class Change:
    """A difference between schema and data.

    Attributes:
      feature: its name.
      kind: of the anomaly, as in the data gate's rows.
      text: TFDV's description.
      refusal: why it cannot be accepted; None if it can.
      values: of ``new_value``, the count of each, unless the feature is sensitive.
    """

    feature: str
    kind: str
    text: str
    refusal: str | None = None
    values: Mapping[str, int] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """The argument of ``accept``; stable as long as the difference exists."""
        return f"{self.feature}.{self.kind}"

    def to_dict(self) -> dict[str, Any]:
        """Returns the form that ``--json`` has."""
        facts = {"id": self.id, **vars(self), "acceptable": self.refusal is None}
        return {**facts, "values": dict(self.values)}


@dataclass(frozen=True)
class Compared:
    """The differences between a schema's file, with its text, and data."""

    config: Config
    path: Path
    text: str
    schema: schema_pb2.Schema
    source: Source
    changes: tuple[Change, ...]

    def head(self) -> dict[str, Any]:
        """Returns the JSON form of the two sides."""
        return {
            "pipeline": self.config.name,
            "schema": str(self.path),
            "source": {**self.source.facts, "splits": self.source.splits},
        }


def compare_schema(
    config: Config, *, run_id: str | None = None, data: bool = False
) -> Compared:
    """Returns the differences between the reviewed schema and data.

    Args:
      config: of the pipeline.
      run_id: compare with the statistics of this run; None for the last with some.
      data: read all records of the config's files instead, as they are now.

    Raises:
      UsageError: the schema is invalid, or there is no such data.
      DataError: there are no records.
      WorkspaceError: the run's statistics are damaged.
    """
    if run_id and data:
        raise UsageError("--run and --data exclude each other")
    path = config.schema_path
    text = loader.read_text(path)
    schema = loader.parse(text, path)
    source = from_data(config) if data else from_run(config, run_id)
    if not sum(source.splits.values()):
        raise DataError(
            "there are no records to compare the schema with",
            where=source.text,
            hint=next_command("run", *config_words(config)),
        )
    found = _rows(schema, source.statistics, config)
    changes = [_change(rows, schema, source, config) for rows in found]
    places = {name: at for at, name in enumerate(loader.feature_names(schema))}
    changes.sort(key=lambda change: places.get(change.feature, len(places)))
    return Compared(config, path, text, schema, source, tuple(changes))


def _rows(
    schema: schema_pb2.Schema, statistics: Mapping[str, _Statistics], config: Config
) -> list[list[Check]]:
    """Returns the data gate's rows, those of all splits on one thing together."""
    declared = schema_pb2.Schema()
    declared.CopyFrom(schema)
    declared.default_environment.append(TRAINING)  # A schema need not declare it.
    found: dict[tuple[str | None, str | None], list[Check]] = {}
    for split, data in statistics.items():
        if not number_of_examples(data):
            continue
        anomalies = import_tfdv().validate_statistics(
            data, declared, environment=TRAINING
        )
        for row in schema_rows(split, anomalies, data, schema, config.sensitive):
            found.setdefault((row.feature, row.kind), []).append(row)
    return list(found.values())


def _change(
    rows: list[Check], schema: schema_pb2.Schema, source: Source, config: Config
) -> Change:
    name, kind = rows[0].feature or "data set", str(rows[0].kind)
    splits: dict[str, list[str]] = {}
    for row in rows:
        splits.setdefault(row.why.rstrip(". "), []).append(row.slice)
    text = "; ".join(f"{why} (in {', '.join(where)})" for why, where in splits.items())
    refusal = _refusal(name, kind, config)
    values = {}
    if kind == "new_value" and refusal is None:
        values = _new_values(schema, name, source.statistics)
    return Change(name, kind, text, refusal, values)


def _refusal(name: str, kind: str, config: Config) -> str | None:
    """Returns why a difference is not written into the schema; None if it can be."""
    spec = (config.features or {}).get(name)
    if kind == "missing" and name == config.label.feature:
        return "it may not be missing: it is the label"
    if kind == "missing" and spec is not None and spec.kind == "image":
        return "it may not be missing: it is an image, which has no stand-in"
    if kind in ("new_value", "out_of_range") and name in config.sensitive:
        return _SENSITIVE
    if kind not in ACCEPTABLE:
        return _REFUSED.get(kind, "correct the data, or edit the schema by hand")
    return None


def _new_values(
    schema: schema_pb2.Schema, name: str, statistics: Mapping[str, _Statistics]
) -> dict[str, int]:
    """Returns the values outside a feature's domain, the most frequent first."""
    feature = next(item for item in schema.feature if item.name == name)
    domain = string_domain(feature, schema)
    known = set(domain.value if domain is not None else ())
    counts: dict[str, int] = {}
    for data in statistics.values():
        stats = features_of(data).get(name)
        for bucket in stats.string_stats.rank_histogram.buckets if stats else ():
            if bucket.label not in known and bucket.label not in _PLACEHOLDERS:
                count = counts.get(bucket.label, 0) + round(bucket.sample_count)
                counts[bucket.label] = count
    return dict(sorted(counts.items(), key=lambda item: -item[1]))


def from_run(config: Config, run_id: str | None = None) -> Source:
    """Returns the statistics of a run; by default of the last that has some.

    Raises:
      UsageError: there is no such run, or it has no statistics.
      WorkspaceError: the statistics are damaged.
    """
    name, workspace = config.name, workspace_of(config)
    update_records(workspace)
    records: Iterable[RunRecord] = readable_runs(workspace)
    if run_id:
        records = [find_run(name, run_id, workspace).record]
    for record in records:
        for node in record.nodes:
            for uri in node.outputs.get("statistics", []) * (node.id == STATISTICS):
                if (statistics := read_statistics(uri)) is not None:
                    text = f"run {record.run_id} of {record.started_at[:10]}"
                    facts = {"kind": "run", "run_id": record.run_id, "path": uri}
                    return Source(statistics, text, facts)
    run = next_command("run", *config_words(config), "--to", STATISTICS)
    raise UsageError(
        f"run {run_id} has no statistics"
        if run_id
        else f"no run of {name} has statistics",
        where=workspace.runs,
        hint=f"{run}, or read the records: --data",
    )


def from_data(
    config: Config, examples: str | None = None, *, as_one: bool = False
) -> Source:
    """Returns the statistics of all records as they are now, damaged ones left out.

    Args:
      config: whose files are read.
      examples: a pattern of other files, which are read as one split.
      as_one: read the config's files as one split, too.

    Raises:
      UsageError: there are no such files, or one cannot be read.
      DataError: no span is complete, or the records cannot be decoded.
    """
    where, paths = examples or config.data_uri, dict[str, list[str]]()
    if examples is not None:
        found = find_examples(examples, None, Path.cwd())
        paths[_HASHED] = [str(found.directory / file) for file in found.files]
    else:
        for file in choose_data(config).files:
            split = _HASHED if as_one else file.split or _HASHED
            paths.setdefault(split, []).append(file.path)
    damaged = 0

    def records(files: list[str]) -> Iterator[bytes]:
        nonlocal damaged
        for path in files:
            for item in scan(path):
                if isinstance(item, RecordError):
                    damaged += 1
                else:
                    yield item.data

    statistics = {
        split: compute_statistics(records(files)) for split, files in paths.items()
    }
    left_out = f", {damaged:,} damaged left out" if damaged else ""
    facts = {"kind": "data", "path": where, "faults": damaged}
    return Source(statistics, f"records in {where}{left_out}", facts)
