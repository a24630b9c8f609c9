"""Writes the documents of a node's artifacts."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from runners.documents.kinds import LineageOf, Source, content_of
from sluice.node_kinds import DOCUMENTS
from sluice.privacy import Privacy
from sluice.record.parts import DocumentRecord, NodeEnd
from sluice.secrets import redact
from sluice.storage import atomic


def write_documents(
    end: NodeEnd,
    run_dir: Path,
    folder: Path,
    properties: Mapping[str, Any],
    *,
    lineage_of: LineageOf | None = None,
    on_error: Callable[[], None] = lambda: None,
) -> None:
    """Writes ``<artifact id>.<kind>.json`` for each kind of content of each output.

    A cached node only writes documents that do not exist, or were written when the
    config allowed to show other data. One that cannot be written becomes a note.

    Args:
      end: of a node, which gets references to the documents, relative to ``run_dir``.
      run_dir: the run's folder, whose ``config.json`` says what may be shown.
      folder: where the documents are.
      properties: exec properties of the node.
      lineage_of: None if the lineage is not known.
      on_error: called while the exception is handled.
    """
    described = [
        (kind, key, item)
        for key, items in end.outputs.items()
        for item in items
        for kind in DOCUMENTS.get(item.type, ())
    ]
    for kind, key, item in described:
        path = folder / f"{item.id}.{kind}.json"
        try:
            privacy = _privacy(run_dir)
            head = {"kind": kind, "output": key, "id": item.id, "uri": item.uri}
            head["privacy"] = asdict(privacy)
            if not (end.state == "cached" and _is_same(path, head)):
                source = Source(
                    item, end.inputs, properties, run_dir, privacy, lineage_of
                )
                content = content_of(kind, source)
                if content is None:
                    continue
                folder.mkdir(parents=True, exist_ok=True)
                atomic.write_json(path, {**head, **content})
        except Exception as error:
            on_error()
            text = f"{end.node}: its outputs could not be described: {kind} of "
            end.notes.append(redact(f"{text}{item.uri}: {error}").splitlines()[0])
            continue
        relative = os.path.relpath(path, run_dir)
        end.documents.append(DocumentRecord(kind, end.node, relative))


def _is_same(path: Path, head: Mapping[str, Any]) -> bool:
    """Whether a document exists, of this artifact and with the same data shown."""
    try:
        written = json.loads(path.read_bytes())
        return head.items() <= written.items()
    except (OSError, ValueError, AttributeError):
        return False


def _privacy(run_dir: Path) -> Privacy:
    config = run_dir / "config.json"
    if not config.exists():
        return Privacy()
    # Imported here: in a pipeline built elsewhere the name may be another package.
    from pipeline.config.serialize import privacy_of

    return privacy_of(config)
