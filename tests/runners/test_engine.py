"""Operations, record and terminal with an in-memory engine, without TFX."""

from __future__ import annotations

import importlib.util
import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from runners.cli.main import main
from runners.engine import Capabilities, Engine, Observer
from runners.operations.cancel import CancelRequest, cancel
from runners.operations.complete_killed_runs import complete_killed_runs
from runners.operations.logs import START, LogsRequest, logs
from runners.operations.resume import ResumeRequest, resume
from runners.operations.run import RunRequest, run
from runners.operations.status import StatusRequest, status
from sluice.errors import UsageError
from sluice.record.events import Event
from sluice.record.fold import fold
from sluice.record.journal import Journal
from sluice.record.run_record import RunRecord
from sluice.workspace import locate

pytestmark = pytest.mark.unit


def _memory_engine(*capabilities: Capabilities, **options: Any) -> Engine:
    path = Path(__file__).with_name("memory_engine.py")
    spec = importlib.util.spec_from_file_location("memory_engine", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.MemoryEngine(*capabilities, **options)


class Seen(Observer):
    def __init__(self) -> None:
        self.events: list[str] = []
        self.progress: list[str] = []

    def on_event(self, event: Event, record: RunRecord) -> None:
        self.events.append(event.event)

    def on_progress(self, node: str, facts: dict[str, Any]) -> None:
        self.progress.append(node)


@pytest.fixture
def root(root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The project, in a Python without TFX and processes."""
    for name in ("tfx", "tensorflow", "ml_metadata"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setattr("subprocess.Popen", None)
    return root


def test_an_operation_returns_the_record_of_any_engine(root: Path) -> None:
    engine, seen = _memory_engine(), Seen()
    record = run(RunRequest(name="digits", forced=("Trainer",)), seen, engine)
    assert (record.status, record.exit_code) == ("succeeded", 0)
    assert [node.state for node in record.nodes] == ["ran"] * 3
    events = Journal(engine.plans[0].run_dir).events()  # type: ignore[attr-defined]
    assert seen.events == [event.event for event in events]
    assert seen.events[-2:] == ["run_ended", "report_written"]
    assert "spans_chosen" in seen.events and "inputs_read" in seen.events
    assert seen.progress == ["Read", "Train", "Push"]
    (plan,) = engine.plans  # type: ignore[attr-defined]
    assert plan.forced == ("Trainer",)
    assert plan.project_root == root
    assert RunRecord.load(plan.run_dir) == record
    assert not locate(root, "digits").is_running()


def test_the_terminal_draws_it(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["run", "digits", "--json"], engine=_memory_engine(fails="Train"))
    assert ended.value.code == 7
    shown = capsys.readouterr()
    document = json.loads(shown.out)
    assert document["status"] == "failed"
    lines = shown.err.splitlines()
    for line in ("Read works", "Train is broken", "stopped by Train"):
        assert any(line in text for text in lines), shown.err
    assert "resume" not in shown.err
    assert document["resume_command"] is None


def test_a_push_to_a_bucket_is_never_up_to_date(root: Path) -> None:
    """Whether a bucket still has the model is not known without a request to it."""
    uri = "gs://models/digits/1"
    for _ in range(2):
        record = run(RunRequest(name="digits"), engine=_memory_engine(pushes=uri))
        assert (record.status, record.pushes[0].uri) == ("succeeded", uri)


def test_a_schema_deleted_during_a_run_does_not_fail_it(
    root: Path,
) -> None:
    def delete(name: str) -> None:
        Path("schemas/digits/schema.pbtxt").unlink(missing_ok=True)

    record = run(RunRequest(name="digits"), engine=_memory_engine(act=delete))
    assert (record.status, record.exit_code) == ("succeeded", 0)


def _boom(name: str) -> None:
    if name == "Train":
        raise RuntimeError("boom")


def _refuse(name: str) -> None:
    raise UsageError("no such machine", hint="choose another")


def test_an_engine_that_raises_ends_its_run(root: Path) -> None:
    record = run(RunRequest(name="digits"), engine=_memory_engine(act=_boom))
    assert (record.status, record.exit_code) == ("failed", 7)
    assert record.node("Train").state == "failed"
    assert record.error and "RuntimeError: boom" in record.error.message
    assert record.error.log and "in _boom" in Path(record.error.log).read_text()
    _check_closed(root, record)


def test_a_usage_error_of_an_engine_is_the_error_of_the_run(root: Path) -> None:
    record = run(RunRequest(name="digits"), engine=_memory_engine(act=_refuse))
    assert (record.status, record.exit_code) == ("failed", 2)
    assert record.error and "try:      choose another" in record.error.message
    _check_closed(root, record)


def test_a_record_that_an_engine_leaves_open_is_closed(root: Path) -> None:
    record = run(RunRequest(name="digits"), engine=_memory_engine(ends=False))
    assert (record.status, record.exit_code) == ("failed", 7)
    assert record.error and "MemoryEngine" in record.error.message
    _check_closed(root, record)


@pytest.mark.parametrize("can_cancel", [False, True])
def test_sigint_ends_the_run_of_any_engine(root: Path, can_cancel: bool) -> None:
    """As ``sluice cancel`` sends it."""

    def cancel_it(name: str) -> None:
        cancel(CancelRequest(name="digits"))
        time.sleep(10)

    engine = _memory_engine(Capabilities(cancel=can_cancel), act=cancel_it)
    record = run(RunRequest(name="digits"), engine=engine)
    assert (record.status, record.exit_code) == ("interrupted", 130)
    assert record.node("Read").state == "interrupted"
    may_go_on = [note for note in record.notes if "may still run" in note]
    assert bool(may_go_on) is not can_cancel
    _check_closed(root, record)


def test_resume_needs_an_engine_that_can(root: Path) -> None:
    able = Capabilities(resume=True)
    run(RunRequest(name="digits"), engine=_memory_engine(fails="Train"))
    with pytest.raises(UsageError, match="its engine cannot resume"):
        resume(ResumeRequest(name="digits"), engine=_memory_engine(able))
    with pytest.raises(UsageError, match="no failed or interrupted run"):
        resume(ResumeRequest(), engine=_memory_engine(able))
    failed = run(RunRequest(name="digits"), engine=_memory_engine(able, fails="Train"))
    assert failed.resume_command
    with pytest.raises(UsageError, match="MemoryEngine cannot resume"):
        resume(ResumeRequest(name="digits"), engine=_memory_engine())
    engine = _memory_engine(able)
    record = resume(ResumeRequest(name="digits"), engine=engine)
    assert (record.run_id, record.status) == (failed.run_id, "succeeded")
    assert engine.plans[0].resumed  # type: ignore[attr-defined]


def test_status_and_logs_of_an_engine_without_logs(root: Path) -> None:
    run(RunRequest(name="digits"), engine=_memory_engine(fails="Train"))
    (record,) = status(StatusRequest(name="digits"))
    assert record.status == "failed"
    for node in ("Train", "Push", START):
        with pytest.raises(UsageError, match=f"{node} has no log in run"):
            logs(LogsRequest(name="digits", node=node))
    with pytest.raises(UsageError, match="there is no node 'Trian'"):
        logs(LogsRequest(name="digits", node="Trian"))


def _check_closed(root: Path, record: RunRecord) -> None:
    """The record is closed and folded, and the lock is free."""
    workspace = locate(root, "digits")
    run_dir = workspace.run_dir(record.run_id)
    assert RunRecord.load(run_dir) == record == fold(Journal(run_dir).events())
    assert not workspace.is_running()
    assert complete_killed_runs(workspace) == []
