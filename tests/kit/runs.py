"""Past runs on disk, written as records without running anything."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pipeline.checks.check_config import validate_config
from pipeline.config.load import load_config
from pipeline.graph.choose_spans import choose_spans
from runners.operations.prepared_run import PreparedRun
from sluice.project import own_root
from sluice.record.parts import DocumentRecord, ErrorRecord, NodeRecord, PushRecord
from sluice.record.run_record import RunRecord
from sluice.record.verdict import Check, Verdict
from sluice.workspace import Workspace

AT = "2026-01-01T00:01:00+00:00"
# What may be shown, as each document says it.
_SHOWN = {"privacy": {"private": False, "sensitive": [], "label": "label"}}
FIRST, SECOND = "20260101T000000Z-aaaa", "20260102T000000Z-bbbb"


def a_check(check: str = "accuracy", **changes: Any) -> Check:
    """Returns a row of a verdict that has passed."""
    values: dict[str, Any] = {
        "limit": 0.97,
        "comparison": ">=",
        "actual": 0.98,
    }
    return Check(check=check, **{**values, **changes})


def a_gate(name: str, *rows: Check, override: str | None = None) -> Verdict:
    """Returns the verdict of a gate."""
    return Verdict(name, rows, override)


def a_record(run_id: str = FIRST, **changes: Any) -> RunRecord:
    """Returns the record of a run of digits whose model was pushed, with changes."""
    day = f"{run_id[:4]}-{run_id[4:6]}-{run_id[6:8]}"
    values: dict[str, Any] = {
        "pipeline": "digits",
        "started_at": f"{day}T00:01:00+00:00",
        "ended_at": f"{day}T00:02:05+00:00",
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
    return RunRecord(run_id, **{**values, **changes})


def write_run(
    runs: Path,
    record: RunRecord,
    documents: Mapping[str, Any] | None = None,
    logs: Mapping[str, str] | None = None,
) -> Path:
    """Writes a run and returns its folder.

    Args:
      runs: the folder of the runs of a workspace.
      record: of the run; the documents are added to it.
      documents: their contents, by kind.
      logs: by node.
    """
    run_dir = runs / record.run_id
    run_dir.mkdir(parents=True, exist_ok=True)
    for kind, artifact in (documents or {}).items():
        path = f"documents/1.{kind}.json"
        (run_dir / path).parent.mkdir(exist_ok=True)
        (run_dir / path).write_text(json.dumps({"kind": kind, **_SHOWN, **artifact}))
        record.documents.append(DocumentRecord(kind, "Node", path))
    for node, text in (logs or {}).items():
        (run_dir / "logs").mkdir(exist_ok=True)
        (run_dir / "logs" / f"{node}.log").write_text(text)
    record.save(run_dir)
    return run_dir


class WrittenRuns:
    """A project with the digits config, its schema and files for its patterns.

    Attributes:
      root: of the project; the current directory.
      workspace: of the pipeline.
    """

    FIRST, SECOND = FIRST, SECOND

    def __init__(self, root: Path) -> None:
        for path in ("configs/digits.yaml", "schemas/digits/schema.pbtxt"):
            target = root / path
            target.parent.mkdir(parents=True)
            target.write_text((own_root() / path).read_text())
        data = root / "data" / "digits"
        data.mkdir(parents=True)
        for split in ("train", "eval", "test"):
            (data / f"{split}-0").write_bytes(split.encode())
        self.root = root
        self.workspace = Workspace(root / "workspace" / "digits")
        self.workspace.prepare()

    @staticmethod
    def nodes() -> list[NodeRecord]:
        """Returns the nodes before a run."""
        return [
            NodeRecord("Examples", "TFRecordGen"),
            NodeRecord("Trainer", "Trainer", upstream=["Examples"]),
        ]

    def run_dir(self, run_id: str = FIRST) -> Path:
        return self.workspace.run_dir(run_id)

    def write(self, run_id: str = FIRST, **changes: Any) -> RunRecord:
        """Writes a run that was started from the command line, with its inputs.

        Args:
          run_id: of the run.
          **changes: attributes of its record; without any it has succeeded.
        """
        values: dict[str, Any] = {
            "nodes": self.nodes(),
            "gates": [],
            "pushes": [PushRecord(str(self.workspace.serving))],
        }
        record = a_record(run_id, **{**values, **changes})
        (self.run_dir(run_id) / "logs").mkdir(parents=True)
        config = validate_config(load_config("digits")).config
        serving_dir = str(self.workspace.serving)
        run = PreparedRun(config, choose_spans(config), self.workspace, serving_dir)
        run.record_inputs(replace(record))
        run.save(record)
        return record

    def save(self, record: RunRecord) -> Path:
        """Writes a changed record and returns the folder of its run."""
        record.save(self.run_dir(record.run_id))
        return self.run_dir(record.run_id)

    def begin(
        self, run_id: str = FIRST, running: str | None = None, **changes: Any
    ) -> RunRecord:
        """Writes a run in progress, in which a node may be running."""
        nodes = self.nodes()
        for node in nodes:
            if node.id == running:
                node.state, node.attempts = "running", 1
                node.started_at = AT
        values: dict[str, Any] = {"status": "running", "nodes": nodes}
        values |= {"exit_code": None, "ended_at": None}
        return self.write(run_id, **{**values, **changes})

    def fail(self, run_id: str = FIRST) -> Path:
        """Writes a run whose first node has failed; returns its folder."""
        said, run_dir = "Examples failed: boom", self.run_dir(run_id)
        log = run_dir / "logs" / "Examples.log"
        record = self.write(
            run_id,
            status="failed",
            exit_code=7,
            error=ErrorRecord("Examples", said, str(log), ["two"]),
            resume_command=f"sluice resume digits --run {run_id}",
        )
        node = record.node("Examples")
        node.state, node.reason, node.attempts = "failed", said, 1
        node.started_at = AT
        node.duration_s, node.peak_memory_bytes = 61.0, 3_100_000_000
        log.write_text("one\ntwo\n")
        return self.save(record)
