"""Contents of the record's documents, by kind: what is read for each, and by whom."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sluice.node_kinds import BASELINE, CANDIDATE
from sluice.record.documents.anomalies_document import anomalies_document
from sluice.record.documents.epochs_document import epochs_document
from sluice.record.documents.example_request import ExampleRequests
from sluice.record.documents.metrics_document import metrics_document
from sluice.record.documents.mistakes_document import Evaluated, mistakes_document
from sluice.record.documents.model_document import model_document
from sluice.record.documents.privacy import Privacy
from sluice.record.documents.samples_document import samples_document
from sluice.record.documents.schema_document import FILE_PATTERN, schema_document
from sluice.record.documents.statistics_document import (
    baseline_document,
    statistics_document,
)
from sluice.storage.local_copy import local_copy

MAX_SUGGESTIONS = 200

Artifacts = Mapping[str, list[dict[str, Any]]]
Content = Mapping[str, Any] | None


@dataclass(frozen=True)
class DescribedNode:
    """A node whose artifacts are described.

    Attributes:
      id: the node.
      outputs: its artifacts, as ``node_status.outputs_of`` returns them.
      inputs: likewise.
      properties: exec properties.
      lineage_of: returns the lineage of an artifact, by its id.
      is_resolver: whether it only looks up artifacts.
      is_cached: whether its artifacts are those of an earlier run.
    """

    id: str
    outputs: Artifacts
    inputs: Artifacts = field(default_factory=dict)
    properties: Mapping[str, Any] = field(default_factory=dict)
    lineage_of: Callable[[int], Mapping[str, Any]] | None = None
    is_resolver: bool = False
    is_cached: bool = False

    def reads(self, artifact_type: str) -> bool:
        """Whether an input is of an artifact type."""
        return any(
            item["type"] == artifact_type
            for items in self.inputs.values()
            for item in items
        )


@dataclass(frozen=True)
class Source:
    """What a document of an artifact may be computed from.

    Attributes:
      item: the artifact, as in the node's outputs.
      node: the node.
      record_dir: the run's ``record/``, with the documents that exist so far.
      privacy: what of the data may be shown.
    """

    item: Mapping[str, Any]
    node: DescribedNode
    record_dir: Path
    privacy: Privacy

    @property
    def uri(self) -> str:
        return str(self.item["uri"])

    @property
    def split_names(self) -> list[str]:
        return json.loads(self.item["properties"].get("split_names") or "[]")

    def files(self, *patterns: str) -> AbstractContextManager[Path]:
        """Returns the artifact's folder, or a local copy of these files."""
        return local_copy(self.uri, patterns)


def _anomalies(source: Source) -> Content:
    with source.files("SchemaDiff.pb") as folder:
        sensitive = source.privacy.sensitive
        found = anomalies_document(folder, source.split_names, sensitive)
    suggested = _suggestions(source)
    return {
        **found,
        "suggestions": None if suggested is None else suggested[:MAX_SUGGESTIONS],
        "suggestions_left_out": max(0, len(suggested or ()) - MAX_SUGGESTIONS),
    }


def _suggestions(source: Source) -> list[dict[str, Any]] | None:
    """Returns what the statistics suggest to change in the schema; None if unknown."""
    config = source.record_dir.parent / "config.json"
    inputs = source.node.inputs
    statistics, schema = inputs.get("statistics"), inputs.get("schema")
    if not (statistics and schema and config.exists()):
        return None
    # Imported here: in a pipeline built elsewhere the names may be other packages.
    from pipeline.config.expectations import expectations
    from pipeline.config.serialize import read_stored_config
    from schemas.diff.diff_schema import diff_schema
    from schemas.diff.statistics import observe_statistics, read_statistics
    from schemas.loader import load

    with local_copy(schema[0]["uri"], (FILE_PATTERN,)) as folder:
        reviewed = load(next(folder.glob(FILE_PATTERN)))
    observed = observe_statistics(read_statistics(statistics[0]["uri"]) or {})
    expected = expectations(read_stored_config(config))
    return [
        {key: item[key] for key in ("feature", "kind", "text", "refusal")}
        for change in diff_schema(reviewed, observed, expected).changes
        for item in [change.to_dict()]
    ]


def _baseline_statistics(source: Source) -> Content:
    with source.files("FeatureStats.pb", "record.json") as folder:
        return baseline_document(folder, sensitive=source.privacy.sensitive)


def _distances(source: Source) -> Content:
    with source.files("distances.json") as folder:
        # A verdict of an earlier version has none.
        path = folder / "distances.json"
        return json.loads(path.read_text("utf-8")) if path.exists() else None


def _epochs(source: Source) -> Content:
    patterns = ("history.json", "training.json", "events.out.tfevents.*")
    with source.files(*patterns) as folder:
        return epochs_document(folder)


def _ingestion(source: Source) -> Content:
    from components.tfrecord_gen.report import document_ingestion

    with source.files("report.json") as folder:
        return document_ingestion(folder)


def _lineage(source: Source) -> Content:
    lineage_of = source.node.lineage_of
    return lineage_of(source.item["id"]) if lineage_of else None


def _metrics(source: Source) -> Content:
    with source.files("eval_config.json", "metrics*", "plots*") as folder:
        return metrics_document(folder)


def _mistakes(source: Source) -> Content:
    inputs = source.node.inputs
    # ML Metadata has one event of an artifact: a model that is its own baseline is only
    # found as such.
    models = inputs.get(CANDIDATE) or inputs.get(BASELINE)
    examples = inputs.get("examples")
    if not (models and examples and models[0]["type"] == "Model"):
        return None
    evaluated = Evaluated(
        model_uri=models[0]["uri"],
        examples_uri=examples[0]["uri"],
        examples_properties=examples[0]["properties"],
        splits=json.loads(source.node.properties.get("example_splits") or "null"),
    )
    return mistakes_document(source.uri, evaluated, source.privacy)


def _model(source: Source) -> Content:
    model_runs = (
        item["uri"]
        for items in source.node.outputs.values()
        for item in items
        if item["type"] == "ModelRun"
    )
    requests = ExampleRequests(source.record_dir, source.privacy)
    return model_document(source.uri, next(model_runs, None), requests.make)


def _samples(source: Source) -> Content:
    if source.node.reads("Examples"):
        return None
    return samples_document(source.uri, source.item["properties"], source.privacy)


def _schema(source: Source) -> Content:
    with source.files(FILE_PATTERN) as folder:
        return schema_document(folder, source.privacy.sensitive)


def _statistics(source: Source) -> Content:
    with source.files("FeatureStats.pb") as folder:
        sensitive = source.privacy.sensitive
        return statistics_document(folder, source.split_names, sensitive=sensitive)


# By kind, see ``sluice.node_kinds.DOCUMENTS``. A document that returns None has nothing
# to say of the artifact.
CONTENTS: Mapping[str, Callable[[Source], Content]] = {
    "anomalies": _anomalies,
    "baseline_statistics": _baseline_statistics,
    "distances": _distances,
    "epochs": _epochs,
    "ingestion": _ingestion,
    "lineage": _lineage,
    "metrics": _metrics,
    "mistakes": _mistakes,
    "model": _model,
    "samples": _samples,
    "schema": _schema,
    "statistics": _statistics,
}
