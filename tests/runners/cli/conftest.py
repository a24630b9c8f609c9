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
    """Writes a run of digits; ``metrics`` are those of all examples."""

    def write(run_id: str, metrics: dict[str, Any] | None = None, **facts: Any) -> Path:
        values: dict[str, Any] = {"status": "succeeded", "exit_code": 0, **facts}
        record = RunRecord(run_id, "digits", f"{run_id[:4]}-01-01", "c", **values)
        run_dir = root / "workspace" / "digits" / "runs" / run_id
        (run_dir / "record").mkdir(parents=True)
        if metrics:
            row: dict[str, Any] = {"slice": {}, "compared_with": None}
            row |= {"model": "candidate", "output": "", "sub_key": {}}
            row |= {"aggregation": None, "change": False, "metrics": metrics}
            artifact = {"metrics": [row]}
            document = {"node": "Evaluator", "artifacts": [artifact]}
            path = "record/Evaluator.metrics.json"
            (run_dir / path).write_text(json.dumps(document))
            record.documents = [DocumentRecord("metrics", "Evaluator", path, "")]
        record.save(run_dir)
        return run_dir

    return write
