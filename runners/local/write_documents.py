"""Writes the record's documents (``record/``) from the artifacts of a node.

``docs/run_record.md`` describes the files.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sluice.node_kinds import CANDIDATE, DOCUMENTS
from sluice.record.documents.anomalies_document import anomalies_document
from sluice.record.documents.epochs_document import epochs_document
from sluice.record.documents.example_request import ExampleRequests
from sluice.record.documents.metrics_document import metrics_document
from sluice.record.documents.mistakes_document import Evaluated, mistakes_document
from sluice.record.documents.model_document import model_document
from sluice.record.documents.privacy import Privacy
from sluice.record.documents.samples_document import samples_document
from sluice.record.documents.schema_document import schema_document
from sluice.record.documents.statistics_document import (
    baseline_document,
    statistics_document,
)
from sluice.record.run_record import DocumentRecord
from sluice.storage import atomic, digest
from sluice.storage.local_copy import local_copy

SCHEMA_VERSION = 1
RECORD_DIR = "record"
MAX_ARTIFACTS = 10
MAX_SUGGESTIONS = 200
# The files of an artifact that its document is computed from.
_FILES = {
    "anomalies": ("SchemaDiff.pb",),
    "baseline_statistics": ("FeatureStats.pb", "record.json"),
    "distances": ("distances.json",),
    "epochs": ("history.json", "training.json", "events.out.tfevents.*"),
    "ingestion": ("report.json",),
    "metrics": ("eval_config.json", "metrics*", "plots*"),
    "schema": ("*.pbtxt",),
    "statistics": ("FeatureStats.pb",),
}
# Documents of the node that made the artifact, not of those that look it up.
_OF_MAKER = ("samples", "model", "mistakes", "lineage")
# Those that take up to a second. Where the node is cached, they are of an earlier run.
_COSTLY = ("samples", "model", "mistakes")
_EARLIER_RUNS = 20

Artifacts = Mapping[str, list[dict[str, Any]]]


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

    def output(self, kind: str) -> str | None:
        """Returns the URI of its first output of an artifact type, if there is one."""
        found = (
            item["uri"]
            for items in self.outputs.values()
            for item in items
            if item["type"] == kind
        )
        return next(found, None)

    def is_described_by(self, kind: str) -> bool:
        """Whether its artifacts get documents of a kind, and not those of others."""
        if kind == "samples" and any(
            item["type"] == "Examples"
            for items in self.inputs.values()
            for item in items
        ):
            return False
        return not (self.is_resolver and kind in _OF_MAKER)


def write_documents(
    node: DescribedNode,
    run_dir: Path,
    privacy: Privacy | None = None,
    on_error: Callable[[Exception], None] | None = None,
) -> list[DocumentRecord]:
    """Writes ``record/<node>.<kind>.json`` for each kind of content that a node made.

    Args:
      node: the node.
      run_dir: the run's folder.
      privacy: what of the data may be shown; None for everything.
      on_error: called if a document cannot be written; the others are. None to raise.

    Returns:
      A reference to each file; none for a node that made nothing of these kinds.

    Raises:
      SluiceError: an artifact is damaged.
      OSError: an artifact cannot be read, or the record cannot be written.
    """
    artifacts: dict[str, list[dict[str, Any]]] = {}
    for key, items in node.outputs.items():
        for item in items:
            for kind in DOCUMENTS.get(item["type"], ()):
                if node.is_described_by(kind):
                    artifacts.setdefault(kind, []).append({"output": key, **item})
    records = []
    for kind, items in artifacts.items():
        try:
            path = _write(kind, items, node, run_dir, privacy or Privacy())
        except Exception as error:
            if on_error is None:
                raise
            on_error(error)
            continue
        if path:
            relative = path.relative_to(run_dir).as_posix()
            found = DocumentRecord(kind, node.id, relative, digest.of_file(path))
            records.append(found)
    return records


def _write(
    kind: str,
    items: list[dict[str, Any]],
    node: DescribedNode,
    run_dir: Path,
    privacy: Privacy,
) -> Path | None:
    """Writes a document; None if there is nothing to describe."""
    path = run_dir / RECORD_DIR / f"{node.id}.{kind}.json"
    inputs = [item["id"] for given in node.inputs.values() for item in given]
    outputs = [[item["output"], item["id"], item["uri"]] for item in items]
    shown = [privacy.private, sorted(privacy.sensitive), privacy.label]
    source = json.dumps([kind, outputs, inputs, shown])
    made_from = digest.of_bytes(source.encode())
    if node.is_cached and kind in _COSTLY:
        earlier = _earlier_document(path, made_from)
        if earlier is not None:
            path.parent.mkdir(exist_ok=True)
            atomic.write_bytes(path, earlier)
            return path
    described = [
        {"output": item["output"], "id": item["id"], "uri": item["uri"], **content}
        for item in items[:MAX_ARTIFACTS]
        if (content := _content(kind, item, node, path.parent, privacy)) is not None
    ]
    if not described:
        return None
    document = {
        "schema_version": SCHEMA_VERSION,
        "kind": kind,
        "node": node.id,
        "made_from": made_from,
        "artifacts": described,
        "artifacts_left_out": max(0, len(items) - MAX_ARTIFACTS),
    }
    path.parent.mkdir(exist_ok=True)
    atomic.write_json(path, document)
    return path


def _earlier_document(path: Path, made_from: str) -> bytes | None:
    """Returns the document of one of the last runs that was made from the same."""
    runs = sorted(path.parents[2].iterdir(), reverse=True)
    for run_dir in runs[:_EARLIER_RUNS]:
        try:
            content = (run_dir / RECORD_DIR / path.name).read_bytes()
            if json.loads(content)["made_from"] == made_from:
                return content
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return None


def _content(
    kind: str,
    item: dict[str, Any],
    node: DescribedNode,
    record_dir: Path,
    privacy: Privacy,
) -> Mapping[str, Any] | None:
    uri, properties = item["uri"], item["properties"]
    if kind == "samples":
        return samples_document(uri, properties, privacy)
    if kind == "model":
        make_request = ExampleRequests(record_dir, privacy).make
        return model_document(uri, node.output("ModelRun"), make_request)
    if kind == "lineage":
        return node.lineage_of(item["id"]) if node.lineage_of else None
    if kind == "mistakes":
        evaluated = _evaluated(node)
        return mistakes_document(uri, evaluated, privacy) if evaluated else None
    with local_copy(uri, _FILES[kind]) as folder:
        if kind == "metrics":
            return metrics_document(folder)
        if kind == "epochs":
            return epochs_document(folder)
        if kind == "distances":
            # A verdict of an earlier version has none.
            path = folder / "distances.json"
            return json.loads(path.read_text("utf-8")) if path.exists() else None
        if kind == "ingestion":
            from components.tfrecord_gen.report import document_ingestion

            return document_ingestion(folder)
        if kind == "baseline_statistics":
            return baseline_document(folder, sensitive=privacy.sensitive)
        if kind == "schema":
            return schema_document(folder, privacy.sensitive)
        split_names = json.loads(properties.get("split_names") or "[]")
        if kind == "anomalies":
            found = anomalies_document(folder, split_names, privacy.sensitive)
            config = record_dir.parent / "config.json"
            suggested = _suggestions(node, config) if config.exists() else None
            left_out = max(0, len(suggested or ()) - MAX_SUGGESTIONS)
            return {
                **found,
                "suggestions": suggested and suggested[:MAX_SUGGESTIONS],
                "suggestions_left_out": left_out,
            }
        return statistics_document(folder, split_names, sensitive=privacy.sensitive)


def _evaluated(node: DescribedNode) -> Evaluated | None:
    """Returns what an Evaluator has read, by TFX's names; None if it is another's."""
    models, examples = node.inputs.get(CANDIDATE), node.inputs.get("examples")
    if not (models and examples and models[0]["type"] == "Model"):
        return None
    splits = json.loads(node.properties.get("example_splits") or "null")
    found = examples[0]
    return Evaluated(models[0]["uri"], found["uri"], found["properties"], splits)


def _suggestions(node: DescribedNode, config: Path) -> list[dict[str, Any]] | None:
    """Returns what the statistics suggest to change in the schema, its two inputs."""
    statistics, schema = node.inputs.get("statistics"), node.inputs.get("schema")
    if not (statistics and schema):
        return None
    # In a pipeline of a script, these names may be other packages.
    from pipeline.config.expectations import expectations
    from pipeline.config.serialize import read_stored_config
    from schemas.diff.diff_schema import diff_schema
    from schemas.diff.statistics import observe_statistics, read_statistics
    from schemas.loader import load

    with local_copy(schema[0]["uri"], _FILES["schema"]) as folder:
        reviewed = load(next(folder.glob(_FILES["schema"][0])))
    observed = observe_statistics(read_statistics(statistics[0]["uri"]) or {})
    expected = expectations(read_stored_config(config))
    return [
        {key: item[key] for key in ("feature", "kind", "text", "refusal")}
        for change in diff_schema(reviewed, observed, expected).changes
        for item in [change.to_dict()]
    ]
