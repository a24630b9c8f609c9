"""Writes the record's documents (``record/``) from the artifacts of a node.

``docs/run_record.md`` describes the files.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from runners.local.document_content import CONTENTS, DescribedNode, Source
from sluice.node_kinds import DOCUMENTS
from sluice.record.documents.privacy import Privacy
from sluice.record.run_record import DocumentRecord
from sluice.storage import atomic, digest

SCHEMA_VERSION = 1
RECORD_DIR = "record"
MAX_ARTIFACTS = 10
# Documents of the node that made the artifact, not of those that look it up.
_OF_MAKER = ("samples", "model", "mistakes", "lineage")
# Those that take up to a second. Where the node is cached, they are of an earlier run.
_COSTLY = ("samples", "model", "mistakes")
_EARLIER_RUNS = 20


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
                if not (node.is_resolver and kind in _OF_MAKER):
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
    described = []
    for item in items[:MAX_ARTIFACTS]:
        content = CONTENTS[kind](Source(item, node, path.parent, privacy))
        if content is not None:
            head = {key: item[key] for key in ("output", "id", "uri")}
            described.append({**head, **content})
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
