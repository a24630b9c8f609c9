"""``status`` and ``runs``: choice of the run, damaged records, killed runs."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runners.operations.status import StatusRequest, runs, status
from sluice import project
from sluice.errors import UsageError, WorkspaceError
from sluice.record.events import NodeStarted
from sluice.record.run_record import RunRecord

pytestmark = pytest.mark.unit

DIGITS = StatusRequest(name="digits")


def test_the_last_run_is_the_default(written: Any) -> None:
    written.fail(written.FIRST)
    run_dir = written.fail(written.SECOND)
    (record,) = status(DIGITS)
    assert record == RunRecord.load(run_dir)
    (first,) = status(StatusRequest(name="digits", run_id="20260101"))
    assert first.run_id == written.FIRST
    with pytest.raises(UsageError, match="several runs") as several:
        status(StatusRequest(name="digits", run_id="2026"))
    assert written.FIRST in str(several.value) and written.SECOND in str(several.value)
    with pytest.raises(UsageError, match="there is no run '2027'"):
        status(StatusRequest(name="digits", run_id="2027"))


def test_without_a_name_the_last_run_of_every_pipeline(written: Any) -> None:
    assert status(StatusRequest()) == []
    written.fail(written.FIRST)
    written.fail(written.SECOND)
    assert [record.run_id for record in status(StatusRequest())] == [written.SECOND]


def test_runs_are_found_despite_a_broken_config(written: Any) -> None:
    written.fail(written.FIRST)
    (written.root / "configs" / "digits.yaml").write_text("version: [")
    assert [record.run_id for record in status(DIGITS)] == [written.FIRST]
    with pytest.raises(UsageError, match="other"):
        status(StatusRequest(name="other"))


def test_a_pipeline_without_runs_names_the_command(written: Any) -> None:
    with pytest.raises(UsageError, match="has not run yet") as raised:
        status(StatusRequest(name="digits", workspace_dir="elsewhere"))
    hint = raised.value.hint or ""
    assert hint.endswith(f"run digits --workspace {written.root / 'elsewhere'}")


def _cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def _write_garbage(path: Path) -> None:
    path.write_bytes(b"\xff\x00")


def _drop_a_key(path: Path) -> None:
    path.write_text(json.dumps({"schema_version": 1, "artifacts": []}))


@pytest.mark.parametrize("damage", [Path.unlink, _cut, _write_garbage, _drop_a_key])
def test_a_damaged_record_is_folded_from_the_journal_and_rewritten(
    written: Any, damage: Callable[[Path], None]
) -> None:
    written.fail(written.FIRST)
    path = written.fail(written.SECOND) / "run.json"
    before = path.read_bytes()
    damage(path)
    with written.workspace.exclusive("sluice run digits"):
        # Only the holder of the lock may write.
        damaged = path.read_bytes() if path.exists() else None
        (record,) = status(DIGITS)
        assert record.run_id == written.SECOND
        assert [item.run_id for item in runs("digits")] == [
            written.SECOND,
            written.FIRST,
        ]
        assert (path.read_bytes() if path.exists() else None) == damaged
    assert [item.run_id for item in status(StatusRequest())] == [written.SECOND]
    assert path.read_bytes() == before


def test_a_missing_record_of_a_killed_run_is_completed(written: Any) -> None:
    written.begin(written.FIRST).apply(NodeStarted(node="Examples", attempt=1))
    (written.workspace.run_dir(written.FIRST) / "run.json").unlink()
    (record,) = runs("digits")
    assert (record.status, record.node("Examples").state) == (
        "interrupted",
        "interrupted",
    )
    assert record == RunRecord.load(written.workspace.run_dir(written.FIRST))


def test_a_record_of_a_newer_version_is_not_overwritten(written: Any) -> None:
    path = written.fail(written.FIRST) / "run.json"
    path.write_text('{"schema_version": 2}')
    with pytest.raises(WorkspaceError, match="another format than 1"):
        status(DIGITS)
    assert path.read_text() == '{"schema_version": 2}'


def test_unreadable_records_are_an_error(written: Any) -> None:
    run_dir = written.fail(written.FIRST)
    (run_dir / "run.json").unlink()
    (run_dir / "journal.jsonl").write_text("{\n")
    warnings: list[str] = []
    with pytest.raises(WorkspaceError, match="none of its records can be read"):
        runs("digits", warn=warnings.append)
    (warning,) = warnings
    assert "run.json is missing" in warning
    assert "journal.jsonl does not replace it: the event run_started" in warning
    with pytest.raises(WorkspaceError) as raised:
        status(DIGITS)
    assert str(run_dir / "run.json") in str(raised.value)


def test_a_damaged_record_is_skipped_with_a_warning(written: Any) -> None:
    written.fail(written.FIRST)
    run_dir = written.fail(written.SECOND)
    (run_dir / "run.json").write_text("{")
    (run_dir / "journal.jsonl").unlink()
    warnings: list[str] = []
    assert [item.run_id for item in status(DIGITS, warnings.append)] == [written.FIRST]
    assert [item.run_id for item in runs("digits")] == [written.FIRST]
    assert len(warnings) == 1 and written.SECOND in warnings[0]
    with pytest.raises(WorkspaceError, match="cannot be read"):
        status(StatusRequest(name="digits", run_id=written.SECOND))


def test_a_killed_run_is_completed_by_the_next_command(written: Any) -> None:
    recorder = written.begin(written.FIRST)
    recorder.apply(NodeStarted(node="Examples", attempt=1))
    with written.workspace.exclusive("sluice run digits"):
        assert [item.status for item in runs("digits")] == ["running"]
    (record,) = runs("digits")
    assert record.status == "interrupted" and record.exit_code is None
    assert record.node("Examples").state == "interrupted"
    assert record.error and record.error.message == "the run was killed"
    assert record.resume_command == f"sluice resume digits --run {written.FIRST}"
    assert record == RunRecord.load(written.workspace.run_dir(written.FIRST))


def test_a_killed_run_of_an_earlier_version_is_completed(
    written: Any,
) -> None:
    recorder = written.begin(written.FIRST)
    recorder.apply(NodeStarted(node="Trainer", attempt=1))
    node = {
        "id": "Trainer",
        "kind": "Trainer",
        "upstream": ["Examples"],
        "contexts": [["pipeline", "digits"]],
        "gate": False,
        "resolver": False,
        "action": "run",
        "needs": [["Examples"]],
    }
    graph = {
        "pipeline": "digits",
        "nodes": [node],
        "connection": "",
        "base_run_id": None,
        "has_history": True,
    }
    run_dir = written.workspace.run_dir(written.FIRST)
    (run_dir / "graph.json").write_text(json.dumps(graph))
    (record,) = runs("digits")
    assert record.status == "interrupted"
    assert [(node.id, node.state) for node in record.nodes][-1] == (
        "Trainer",
        "interrupted",
    )
    assert record.notes[-1].startswith("the record is incomplete: ")
    assert "started by another version of Sluice" in record.notes[-1]


def test_a_killed_run_with_an_untyped_journal_is_completed(written: Any) -> None:
    recorder = written.begin(written.FIRST)
    recorder.apply(NodeStarted(node="Trainer", attempt=1))
    written.write_untyped_journal(written.workspace.run_dir(written.FIRST))
    (record,) = runs("digits")
    assert (record.status, record.node("Trainer").state) == (
        "interrupted",
        "interrupted",
    )
    assert record.error is not None
    assert "written by another version of Sluice" in record.error.message


def test_outside_a_project_every_command_works_on_the_checkout(
    tmp_path_factory: pytest.TempPathFactory,
    written: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    written.fail(written.FIRST)
    monkeypatch.setattr(project, "own_root", lambda: written.root)
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    for name in (None, "digits"):
        (record,) = status(StatusRequest(name=name))
        assert record.run_id == written.FIRST
