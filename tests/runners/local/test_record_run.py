"""From the runner's events to status, exit code and pushes."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from runners.local.record_run import RecordRun
from sluice.errors import ExitCode
from sluice.record.run_record import RunRecord

pytestmark = pytest.mark.unit

NODES = ("DataGate", "Trainer", "ModelVerdict", "Pusher")


@pytest.fixture
def recorder(tmp_path: Path) -> RecordRun:
    record = RunRecord("20260101T000000Z-aaaa", "p", "t", "sluice run p")
    recorder = RecordRun(record, tmp_path, tmp_path / "serving")
    nodes = [{"id": name, "kind": name, "upstream": []} for name in NODES]
    started = {"event": "run_started", "resume_command": "sluice resume p"}
    recorder.apply(started)
    recorder.apply({"event": "graph", "nodes": nodes})
    return recorder


def _end(recorder: RecordRun, node: str, state: str = "ran", **facts: Any) -> None:
    recorder.apply({"event": "node_started", "node": node})
    recorder.apply(
        {
            "event": "node_finished",
            "node": node,
            "state": state,
            "duration_s": 1.0,
            "reason": None,
            "error": None,
            "outputs": {},
            "inputs": {},
            "peak_memory_bytes": None,
            **facts,
        }
    )


def _error(message: str, exit_code: int) -> dict[str, Any]:
    return {"message": message, "exit_code": exit_code, "gate": False, "log_tail": []}


def _pushed(state: str) -> dict[str, Any]:
    served = {"pushed_version": "3", "pushed_destination": "/s/3"}
    properties = {"state": state, **(served if state != "blocked" else {})}
    artifact = {"id": 7, "type": "PushedModel", "uri": "u", "properties": properties}
    return {"pushed_model": [artifact]}


def _verdict(folder: Path, passed: bool) -> dict[str, Any]:
    row = {
        "check": "auc",
        "slice": "overall",
        "limit": ">= 0.9",
        "baseline": None,
        "actual": 0.5,
        "passed": passed,
        "why": "",
    }
    folder.mkdir()
    document = {"gate": "model", "passed": passed, "override": None, "rows": [row]}
    (folder / "verdict.json").write_text(json.dumps(document))
    artifact = {
        "id": 6,
        "type": "components.ModelVerdict",
        "uri": str(folder),
        "properties": {},
    }
    return {"verdict": [artifact]}


def test_a_push(recorder: RecordRun, tmp_path: Path) -> None:
    _end(recorder, "DataGate")
    _end(recorder, "Trainer")
    _end(recorder, "ModelVerdict", outputs=_verdict(tmp_path / "v", True))
    _end(recorder, "Pusher", outputs=_pushed("pushed"))
    recorder.apply({"event": "finished"})
    recorder.close()
    record = recorder.record
    assert (record.status, record.exit_code) == ("succeeded", 0)
    assert (record.pushes[0].state, record.pushes[0].version) == ("pushed", 3)
    assert RunRecord.load(tmp_path) == record


def test_everything_cached_is_nothing_to_do(recorder: RecordRun) -> None:
    for node in NODES[:-1]:
        _end(recorder, node, "cached")
    _end(recorder, "Pusher", "cached", outputs=_pushed("pushed"))
    recorder.apply({"event": "finished"})
    recorder.close()
    record = recorder.record
    assert (record.status, record.exit_code) == ("up_to_date", 0)
    assert (record.pushes[0].state, record.pushes[0].uri) == ("already_served", "/s/3")


def test_a_refused_model_is_blocked_with_exit_4(
    recorder: RecordRun, tmp_path: Path
) -> None:
    _end(recorder, "ModelVerdict", outputs=_verdict(tmp_path / "v", False))
    _end(recorder, "Pusher", outputs=_pushed("blocked"))
    recorder.apply({"event": "finished"})
    recorder.close()
    record = recorder.record
    assert (record.status, record.exit_code) == ("blocked", 4)
    assert record.node("Pusher").state == "blocked"
    assert record.pushes[0].version is None
    assert record.gates[0]["passed"] is False


def test_the_data_gate_blocks_with_exit_3(recorder: RecordRun) -> None:
    error = {
        "message": "the data gate has not passed",
        "exit_code": 3,
        "gate": True,
        "log_tail": [],
    }
    _end(recorder, "DataGate", "failed", error=error)
    _end(recorder, "Pusher", "blocked", reason="stopped by DataGate")
    recorder.apply({"event": "finished"})
    recorder.close()
    record = recorder.record
    assert (record.status, record.exit_code) == ("blocked", 3)
    assert record.pushes[0].state == "blocked"
    assert record.error and record.error.node == "DataGate"


def test_a_failed_node_is_failed_with_its_exit_code(recorder: RecordRun) -> None:
    error = {
        "message": "Trainer failed: boom",
        "exit_code": 7,
        "gate": False,
        "log_tail": [],
    }
    _end(recorder, "Trainer", "failed", error=error)
    _end(recorder, "Pusher", "not_reached")
    recorder.apply({"event": "finished"})
    recorder.close()
    record = recorder.record
    assert (record.status, record.exit_code) == ("failed", 7)
    assert record.pushes[0].state == "not_reached"


def test_a_failed_push_is_a_failed_push(recorder: RecordRun) -> None:
    error = _error("disk full", 5)
    _end(recorder, "Pusher", "failed", error=error)
    recorder.apply({"event": "finished"})
    recorder.close()
    assert recorder.record.exit_code == 5
    assert recorder.record.pushes[0].state == "failed"


def test_a_node_that_dies_with_its_process_has_failed(recorder: RecordRun) -> None:
    recorder.apply({"event": "node_started", "node": "Trainer"})
    recorder.close(reason="was killed by signal 9")
    record = recorder.record
    assert (record.status, record.exit_code) == ("failed", 7)
    assert record.error and record.error.message == "Trainer was killed by signal 9"


def test_a_running_node_tells_its_epoch(
    recorder: RecordRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runners.local.record_run._PROGRESS_EVERY_S", 600.0)
    recorder.apply({"event": "node_started", "node": "Trainer"})
    metrics = {"loss": math.nan, "val_accuracy": 0.5}
    facts = {"event": "epoch", "epoch": 3, "epochs": 8, "duration_s": 1.5}
    recorder.keep_progress("Trainer", {**facts, "metrics": metrics})
    recorder.tick()
    kept = RunRecord.load(tmp_path).node("Trainer").progress
    assert kept == {**facts, "metrics": {"loss": "NaN", "val_accuracy": 0.5}}

    recorder.keep_progress("Trainer", {**facts, "epoch": 4, "metrics": {}})
    recorder.tick()
    kept = RunRecord.load(tmp_path).node("Trainer").progress
    assert kept and kept["epoch"] == 3  # Written every few seconds only.
    monkeypatch.setattr("runners.local.record_run._PROGRESS_EVERY_S", 0.0)
    recorder.tick()
    kept = RunRecord.load(tmp_path).node("Trainer").progress
    assert kept and kept["epoch"] == 4  # But then all that was said.

    _end(recorder, "Trainer")
    assert RunRecord.load(tmp_path).node("Trainer").progress is None


def test_an_interrupt_is_not_a_failure(recorder: RecordRun) -> None:
    recorder.apply({"event": "node_started", "node": "Trainer"})
    recorder.close(ExitCode.INTERRUPTED, "interrupted by SIGINT")
    record = recorder.record
    assert (record.status, record.exit_code) == ("interrupted", 130)
    assert record.node("Trainer").state == "interrupted"


def test_a_run_that_never_starts_says_why(recorder: RecordRun) -> None:
    recorder.apply({"event": "stopped", "message": "no TFX", "exit_code": 2})
    recorder.close()
    assert (recorder.record.status, recorder.record.exit_code) == ("failed", 2)


@pytest.mark.parametrize("started", [[], ["DataGate", "Trainer"]])
def test_a_process_that_dies_between_nodes_is_a_failure(
    recorder: RecordRun, started: list[str]
) -> None:
    for node in started:
        _end(recorder, node)
    recorder.close(reason="was killed by SIGSEGV")
    record = recorder.record
    assert (record.status, record.exit_code) == ("failed", 7)
    assert record.error
    assert record.error.message == "the run was killed by SIGSEGV"
    assert record.resume_command == "sluice resume p"
