"""Runs on disk whose values the command line compares."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sluice.record.run_record import DocumentRecord, RunRecord


@pytest.fixture
def write_run(root: Path) -> Callable[..., Path]:
    """Writes a run of digits.

    ``metrics`` are those of all examples; ``documents`` have one artifact per kind.
    """

    def write(
        run_id: str,
        metrics: dict[str, Any] | None = None,
        documents: dict[str, Any] | None = None,
        **facts: Any,
    ) -> Path:
        at = f"{run_id[:4]}-01-01T00:00:00+00:00"
        values: dict[str, Any] = {"started_at": at, "command": "sluice run digits"}
        values |= {"status": "succeeded", "exit_code": 0, **facts}
        record = RunRecord(run_id, "digits", **values)
        run_dir = root / "workspace" / "digits" / "runs" / run_id
        (run_dir / "record").mkdir(parents=True)
        artifacts = dict(documents or {})
        if metrics:
            row: dict[str, Any] = {"slice": {}, "compared_with": None, "output": ""}
            row |= {"model": "candidate", "sub_key": {}, "aggregation": None}
            row |= {"change": False, "metrics": metrics}
            artifacts["metrics"] = {"metrics": [row]}
        for kind, artifact in artifacts.items():
            path = f"record/Node.{kind}.json"
            content = {"node": "Node", "artifacts": [artifact]}
            (run_dir / path).write_text(json.dumps(content))
            record.documents.append(DocumentRecord(kind, "Node", path, ""))
        record.save(run_dir)
        return run_dir

    return write
