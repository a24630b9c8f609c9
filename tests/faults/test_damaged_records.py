"""Run records and journals after a power cut or on a full disk."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sluice import progress

pytestmark = pytest.mark.fault


def _cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def _empty(path: Path) -> None:
    os.truncate(path, 0)


@pytest.fixture
def power_cut(served: Any) -> Any:
    """A run whose journal ends in the middle of Evaluator's last event."""
    shutil.rmtree(served.run_dir)
    run_dir = served.run_dir
    data = json.loads((run_dir / "run.json").read_text())
    data.update(status="running", exit_code=None, ended_at=None)
    for node in data["nodes"]:
        if node["id"] == "Evaluator":
            node.update(state="running", outputs={}, duration_s=None)
        elif node["id"] in ("ModelVerdict", "Pusher"):
            node.update(state="not_reached", outputs={}, attempts=0)
    data["pushes"][0].update(state="not_reached", version=None, uri=None)
    (run_dir / "run.json").write_text(json.dumps(data))
    journal = run_dir / "journal.jsonl"
    text = journal.read_text()
    before, sign, _ = text.partition('"event": "node_finished", "node": "Evaluator"')
    journal.write_text(before + sign)
    return served


@pytest.mark.parametrize("damage", [_cut, _empty])
def test_a_damaged_record_hides_no_other(
    served: Any, damage: Callable[[Path], None]
) -> None:
    ids = served.workspace.run_ids()
    (served.run_dir / "journal.jsonl").unlink()
    damage(served.run_dir / "run.json")
    runs = served.here("runs", "digits", "--json")
    assert runs.code == 0
    assert [run["run_id"] for run in json.loads(runs.out)] == ids[-2::-1]
    assert "warning: " in runs.err and ids[-1] in runs.err
    for arguments in (["status", "digits"], ["status"]):
        status = served.here(*arguments)
        assert status.code == 0, status.err
        assert ids[-2] in status.out and ids[-1] not in status.out
        assert "warning: " in status.err and ids[-1] in status.err
    one = served.here("status", "digits", "--run", ids[-1])
    assert one.code == 2
    assert str(served.run_dir / "run.json") in one.err
    resumed = served.here("resume", "digits")
    assert resumed.code == 2
    assert "sluice run digits" in resumed.err
    outcome = served.here("run", "digits", "--json")
    assert outcome.code == 0, outcome.err
    assert outcome.document["status"] in ("up_to_date", "succeeded")
    ran = {name for name, state in outcome.states.items() if state == "ran"}
    assert ran <= {"LatestBlessedModel"}
    assert served.workspace.run_ids()[-1] == outcome.document["run_id"] > ids[-1]


def test_a_truncated_journal_is_completed_from_ml_metadata(power_cut: Any) -> None:
    executions = power_cut.executions()
    status = power_cut.here("status", "digits", "--json")
    assert status.code == 0, status.err
    assert status.document["status"] == "interrupted"
    assert status.states["Evaluator"] == "ran"
    assert status.states["Pusher"] == "not_reached"
    outcome = power_cut.here("resume", "digits", "--json")
    assert outcome.code == 0, outcome.err
    assert outcome.document["status"] == "succeeded"
    tries = {node["id"]: node["attempts"] for node in outcome.document["nodes"]}
    assert tries["Trainer"] == 1
    assert outcome.document["pushes"][0]["version"] == 1
    assert power_cut.executions() == executions
    power_cut.assert_sound(versions=[1])


@pytest.mark.parametrize("damage", [_empty, lambda path: path.unlink()])
def test_a_run_without_a_journal_cannot_be_resumed(
    power_cut: Any, damage: Callable[[Path], None]
) -> None:
    damage(power_cut.run_dir / "journal.jsonl")
    status = power_cut.here("status", "digits", "--json")
    assert status.document["status"] == "interrupted"
    assert status.states["Evaluator"] == "ran"
    resumed = power_cut.here("resume", "digits")
    assert resumed.code == 2
    assert str(power_cut.run_dir / "journal.jsonl") in resumed.err
    assert "sluice run" in resumed.err
    outcome = power_cut.here("run", "digits", "--json")
    assert outcome.code == 0, outcome.err
    power_cut.assert_sound(versions=[1])


def test_a_run_whose_journal_is_full_can_be_resumed(served: Any) -> None:
    node = ["--to", "TFRecordGen", "--no-cache"]
    served.kill("TFRecordGen", "with a full disk")
    outcome = served.here("run", "digits", *node, "--json")
    assert outcome.code == 2
    assert outcome.document["exit_code"] == 2
    assert "the record of the run could not be written" in outcome.err
    assert f"where:    {served.run_dir}" in outcome.err
    assert "found:    No space left on device" in outcome.err
    assert "try:      free some space, then: sluice resume" in outcome.err
    (served.run_dir / "journal.kept").replace(served.run_dir / "journal.jsonl")
    status = served.here("status", "digits", "--json")
    assert status.document["status"] == "interrupted"
    assert status.states["TFRecordGen"] == "interrupted"
    resumed = served.here("resume", "digits", "--json")
    assert (resumed.code, resumed.document["status"]) == (0, "succeeded"), resumed.err
    assert served.record().node("TFRecordGen").attempts == 2
    served.assert_sound(versions=[1])


def test_a_truncated_line_of_progress_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / "Trainer.jsonl"
    path.write_text('{"epoch": 1}\n{"epo{"epoch": 3}\n{"epoch": 4}\n{"epoch"')
    lines, offset = progress.read(path)
    assert lines == [{"epoch": 1}, {"epoch": 4}]
    assert path.read_bytes()[offset:] == b'{"epoch"'
