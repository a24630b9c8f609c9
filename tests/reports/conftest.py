"""A run's folder as the reports read it, without a run."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reports.read_run import RunData
from sluice.record.run_record import DocumentRecord, NodeRecord, PushRecord, RunRecord
from sluice.record.verdict import Check, Verdict


def a_record(**changes: Any) -> RunRecord:
    """Returns the record of a run whose model was pushed, with changes."""
    values: dict[str, Any] = {
        "run_id": "20260101T000100Z-aaaa",
        "pipeline": "digits",
        "started_at": "2026-01-01T00:01:00+00:00",
        "ended_at": "2026-01-01T00:02:05+00:00",
        "command": "sluice run digits",
        "status": "succeeded",
        "exit_code": 0,
        "nodes": [
            NodeRecord("TFRecordGen", "TFRecordGen", "ran", 2.0),
            NodeRecord("Trainer", "Trainer", "ran", 30.0, upstream=["TFRecordGen"]),
        ],
        "gates": [a_gate("model", a_check())],
        "pushes": [PushRecord("/serving", "pushed", 3, "/serving/3")],
    }
    return RunRecord(**{**values, **changes})


def a_check(check: str = "accuracy", **changes: Any) -> Check:
    values: dict[str, Any] = {
        "slice": "overall",
        "limit": ">= 0.97",
        "baseline": None,
        "actual": 0.98,
        "passed": True,
    }
    return Check(check, **{**values, **changes})


def a_gate(name: str, *rows: Check, override: str | None = None) -> dict[str, Any]:
    return Verdict(name, rows, override).to_dict()


def save(run: RunData) -> Path:
    run.run_dir.mkdir(parents=True, exist_ok=True)
    run.record.save(run.run_dir)
    return run.run_dir


@pytest.fixture
def run_with(tmp_path: Path) -> Callable[..., RunData]:
    """Makes a run from changes to the record, and ``kind=artifact`` of documents."""

    def make(documents: dict[str, Any] | None = None, **changes: Any) -> RunData:
        record = a_record(**changes)
        run_dir = tmp_path / "runs" / record.run_id
        (run_dir / "record").mkdir(parents=True)
        for kind, artifact in (documents or {}).items():
            path = f"record/Node.{kind}.json"
            content = {"kind": kind, "node": "Node", "artifacts": [artifact]}
            (run_dir / path).write_text(json.dumps(content))
            record.documents.append(DocumentRecord(kind, "Node", path, "digest"))
        run = RunData(run_dir, record)
        save(run)
        return run

    return make


@pytest.fixture(scope="session")
def write_run() -> Callable[..., Path]:
    """Writes a run that has every document; see ``generated_run``."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(Path(__file__).parent))
        return importlib.import_module("generated_run").write_run
