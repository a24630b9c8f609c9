"""Keeps the record of a run up to date from the runner's events."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sluice import workspace
from sluice.errors import ExitCode
from sluice.run_record import ErrorRecord, NodeRecord, PushRecord, RunRecord
from sluice.verdict import Verdict

_VERDICTS = ("components.DataVerdict", "components.ModelVerdict")
_SERVED = ("pushed", "already_served")


class RecordRun:
    """Applies events to a record and saves it after each."""

    def __init__(self, record: RunRecord, run_dir: Path, serving_dir: Path) -> None:
        self.record = record
        self._run_dir = run_dir
        self._failures: list[tuple[ErrorRecord, int, bool]] = []
        self._finished = False
        record.pushes = [PushRecord(destination=str(serving_dir))]
        record.save(run_dir)

    def apply(self, event: dict[str, Any]) -> None:
        """Takes in one event; see ``runners.local.run_result``."""
        getattr(self, f"_on_{event['event']}")(event)
        self.record.save(self._run_dir)

    def close(self, exit_code: ExitCode | None = None, reason: str = "") -> None:
        """Decides the run's status and exit code.

        Args:
          exit_code: INTERRUPTED or TERMINATED if a signal ended the run; it does not
            count if the run had finished before.
          reason: why nodes that were running have no end, such as a signal.
        """
        record = self.record
        if self._finished:
            exit_code = None
        for node in record.nodes:
            if node.state == "running":
                node.state = "interrupted" if exit_code else "failed"
                node.reason = reason
                if not exit_code:
                    self._fail(node.id, f"{node.id} {reason}", int(ExitCode.NODE))
        if not (self._finished or self._failures or exit_code):
            self._fail(None, f"the run's process {reason}", int(ExitCode.NODE))
        record.ended_at = workspace.utc_now()
        if exit_code:
            record.status, record.exit_code = "interrupted", int(exit_code)
        elif self._failures:
            record.error, record.exit_code, gate = self._failures[0]
            record.status = "blocked" if gate else "failed"
        elif not all(gate["passed"] for gate in record.gates):
            record.status, record.exit_code = "blocked", int(ExitCode.MODEL)
        else:
            quiet = all(node.state in ("cached", "skipped") for node in record.nodes)
            record.status = "nothing_to_do" if quiet else "succeeded"
            record.exit_code = int(ExitCode.DONE)
        if record.status in ("failed", "interrupted"):
            # The same command goes on: what has finished is taken from the cache.
            record.resume_command = record.command
        record.save(self._run_dir)

    def _on_graph(self, event: dict[str, Any]) -> None:
        self.record.nodes = [
            NodeRecord(node["id"], node["kind"]) for node in event["nodes"]
        ]

    def _on_node_started(self, event: dict[str, Any]) -> None:
        self.record.node(event["node"]).state = "running"

    def _on_node_finished(self, event: dict[str, Any]) -> None:
        node = self.record.node(event["node"])
        node.state = event["state"]
        node.duration_s = round(event["duration_s"], 3)
        node.reason = event["reason"]
        node.outputs = {
            key: [artifact["uri"] for artifact in artifacts]
            for key, artifacts in event["outputs"].items()
        }
        for artifacts in event["outputs"].values():
            for artifact in artifacts:
                if artifact["type"] in _VERDICTS:
                    self.record.gates.append(Verdict.load(artifact["uri"]).to_dict())
                elif artifact["type"] == "PushedModel":
                    self._on_push(node, artifact["properties"])
        if error := event["error"]:
            self._fail(node.id, error["message"], error["exit_code"], error["gate"])
            if node.kind == "Pusher":
                self.record.pushes[0].state = "failed"
        elif node.kind == "Pusher" and node.state == "blocked":
            self.record.pushes[0].state = "blocked"

    def _on_stopped(self, event: dict[str, Any]) -> None:
        self._fail(None, event["message"], event["exit_code"])

    def _on_finished(self, event: dict[str, Any]) -> None:
        self._finished = True

    def _on_push(self, node: NodeRecord, properties: dict[str, Any]) -> None:
        push = self.record.pushes[0]
        push.state = properties.get("state", "failed")
        if push.state == "blocked":
            node.state, node.reason = "blocked", "stopped by ModelVerdict"
        if push.state in _SERVED:
            push.version = int(properties["pushed_version"])
            push.uri = properties["pushed_destination"]
            if node.state == "cached":
                push.state = "already_served"

    def _fail(
        self, node: str | None, message: str, exit_code: int, gate: bool = False
    ) -> None:
        log = self._run_dir / "logs" / f"{node or 'start'}.log"
        record = ErrorRecord(node, message, str(log) if log.exists() else None)
        self._failures.append((record, exit_code, gate))
