"""Writes the record's documents (``record/``) from a node's output artifacts.

``docs/run_record.md`` describes the files.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from sluice.node_kinds import DOCUMENTS
from sluice.record.documents.epochs_document import epochs_document
from sluice.record.documents.metrics_document import metrics_document
from sluice.record.documents.statistics_document import statistics_document
from sluice.record.run_record import DocumentRecord
from sluice.storage import atomic, digest
from sluice.storage.local_copy import local_copy

SCHEMA_VERSION = 1
RECORD_DIR = "record"
MAX_ARTIFACTS = 10
# The files of an artifact that its document is computed from.
_FILES = {
    "epochs": ("history.json", "training.json", "events.out.tfevents.*"),
    "ingestion": ("report.json",),
    "metrics": ("eval_config.json", "metrics*", "plots*"),
    "statistics": ("FeatureStats.pb",),
}


def write_documents(
    node_id: str,
    outputs: dict[str, list[dict[str, Any]]],
    run_dir: Path,
    *,
    sensitive: Collection[str] = (),
) -> list[DocumentRecord]:
    """Writes ``record/<node>.<kind>.json`` for each kind of content that a node made.

    Args:
      node_id: the node.
      outputs: its artifacts, as ``node_status.outputs_of`` returns them.
      run_dir: the run's folder.
      sensitive: features of which only counts are shown in the statistics.

    Returns:
      A reference to each file; none for a node that made nothing of these kinds.

    Raises:
      SluiceError: an artifact is damaged.
      OSError: an artifact cannot be read, or the record cannot be written.
    """
    artifacts: dict[str, list[dict[str, Any]]] = {}
    for key, items in outputs.items():
        for item in items:
            if kind := DOCUMENTS.get(item["type"]):
                artifacts.setdefault(kind, []).append({"output": key, **item})
    records = []
    for kind, items in artifacts.items():
        described = [
            {"output": item["output"], "id": item["id"], "uri": item["uri"], **content}
            for item in items[:MAX_ARTIFACTS]
            if (content := _content(kind, item, sensitive)) is not None
        ]
        if not described:
            continue
        document = {
            "schema_version": SCHEMA_VERSION,
            "kind": kind,
            "node": node_id,
            "artifacts": described,
            "artifacts_left_out": max(0, len(items) - MAX_ARTIFACTS),
        }
        path = run_dir / RECORD_DIR / f"{node_id}.{kind}.json"
        path.parent.mkdir(exist_ok=True)
        atomic.write_json(path, document)
        relative = path.relative_to(run_dir).as_posix()
        records.append(DocumentRecord(kind, node_id, relative, digest.of_file(path)))
    return records


def _content(
    kind: str, item: dict[str, Any], sensitive: Collection[str]
) -> Mapping[str, Any] | None:
    with local_copy(item["uri"], _FILES[kind]) as folder:
        if kind == "metrics":
            return metrics_document(folder)
        if kind == "epochs":
            return epochs_document(folder)
        if kind == "ingestion":
            from components.tfrecord_gen.report import document_ingestion

            return document_ingestion(folder)
        split_names = json.loads(item["properties"].get("split_names") or "[]")
        return statistics_document(folder, split_names, sensitive=sensitive)
