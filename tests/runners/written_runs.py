"""Runs of digits on disk, written without running anything."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from pipeline.config.load import load_config
from pipeline.config.serialize import write_stored_config
from pipeline.config.validate import validate_config
from pipeline.graph.choose_spans import choose_spans
from runners.cache.run_inputs import run_inputs
from sluice.project import own_root
from sluice.record.events import (
    Finished,
    GraphCompiled,
    GraphNode,
    NodeFailure,
    NodeFinished,
    NodeStarted,
    RunStarted,
)
from sluice.record.recorder import Recorder
from sluice.storage.stat_cache import FileDigests
from sluice.workspace import Workspace

GRAPH = GraphCompiled(
    nodes=(
        GraphNode("Examples", "TFRecordGen", ()),
        GraphNode("Trainer", "Trainer", ("Examples",)),
    )
)


class WrittenRuns:
    """A project with the digits config, its schema and files for its patterns.

    Attributes:
      root: of the project; the current directory.
      workspace: of the pipeline.
    """

    FIRST, SECOND = "20260101T000000Z-aaaa", "20260102T000000Z-bbbb"

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

    def begin(self, run_id: str, **given: Any) -> Recorder:
        """Begins a run as the command line does, up to its first node.

        Args:
          run_id: of the run.
          **given: attributes of its ``RunStarted``.
        """
        run_dir = self.workspace.run_dir(run_id)
        (run_dir / "logs").mkdir(parents=True)
        config = validate_config(load_config("digits")).config
        write_stored_config(config, run_dir / "config.json")
        digests = FileDigests(self.workspace.digests_file)
        choice = choose_spans(config)
        inputs = run_inputs(
            config, self.workspace.root, str(self.workspace.serving), choice, digests
        )
        (run_dir / "inputs.json").write_text(json.dumps(inputs.to_dict()))
        recorder = Recorder(run_dir)
        started = RunStarted(
            run_id=run_id,
            pipeline="digits",
            command="sluice run digits",
            destination=str(self.workspace.serving),
            config={},
            workers=1,
            use_cache=True,
            forced=(),
            from_nodes=(),
            to_nodes=(),
            accept_data=None,
            resume_command=f"sluice resume digits --run {run_id}",
        )
        recorder.apply(replace(started, **given))
        recorder.apply(GRAPH)
        return recorder

    def fail(self, run_id: str) -> Path:
        """Writes a run whose first node has failed; returns its folder."""
        recorder = self.begin(run_id)
        recorder.apply(NodeStarted(node="Examples", attempt=1))
        (self.workspace.run_dir(run_id) / "logs" / "Examples.log").write_text(
            "one\ntwo\n"
        )
        recorder.apply(
            NodeFinished(
                node="Examples",
                state="failed",
                duration_s=61.0,
                reason="Examples failed: boom",
                error=NodeFailure("Examples failed: boom", 7, log_tail=("two",)),
                peak_memory_bytes=3_100_000_000,
            )
        )
        recorder.apply(Finished())
        recorder.end()
        return self.workspace.run_dir(run_id)

    def write_untyped_journal(self, run_dir: Path) -> None:
        """Makes the journal of a run one that Sluice wrote before events had types."""
        events: list[dict[str, Any]] = [
            {"event": "run_started", "command": "sluice run digits", "workers": 1},
            {"event": "graph", "nodes": [{"id": "Trainer", "kind": "Trainer"}]},
        ]
        lines = [json.dumps({"at": "2026-01-01T00:00:00+00:00", **e}) for e in events]
        (run_dir / "journal.jsonl").write_text("\n".join(lines) + "\n")
