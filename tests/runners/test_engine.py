"""Operations, record and terminal with an in-memory engine, without TFX."""

import json
import os
import signal
import sys
import time

import pytest

from pipeline.config.load import load_config
from runners.cli.main import main
from runners.engine import Observer
from runners.operations.find_run import find_run
from runners.operations.resume import resume
from runners.operations.run import run
from sluice.errors import UsageError
from sluice.record.run_record import RunOptions, RunRecord
from sluice.workspace import locate
from tests.runners.memory_engine import MemoryEngine

pytestmark = pytest.mark.unit


class Seen(Observer):
    def __init__(self):
        self.seen: list[str] = []

    def on_node(self, record, node):
        self.seen.append(f"{node.id} {node.state}")

    def on_progress(self, node, facts):
        self.seen.append(facts["line"])


@pytest.fixture
def root(root, monkeypatch):
    """The project, in a Python without TFX and processes."""
    for name in ("tfx", "tensorflow", "ml_metadata"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setattr("subprocess.Popen", None)
    return root


def run_digits(engine, observer=None, **options):
    return run(
        load_config("digits"), RunOptions(**options), observer=observer, engine=engine
    )


def test_an_operation_returns_the_record_of_any_engine(root):
    engine, observer = MemoryEngine(), Seen()
    record = run_digits(engine, observer, forced=["Trainer"])
    assert (record.status, record.exit_code) == ("succeeded", 0)
    assert [node.state for node in record.nodes] == ["ran"] * 3
    assert observer.seen[:2] == ["Read works", "Read ran"]
    assert observer.seen[-1] == "Push ran"
    assert record.spans and record.digests and record.report_uri
    (plan,) = engine.plans
    assert plan.project_root == root
    assert record.options.forced == ["Trainer"]
    assert RunRecord.load(plan.run_dir) == record
    assert not locate(root, "digits").is_running()


def test_the_terminal_draws_it(root, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["run", "digits", "--json"], engine=MemoryEngine(fails="Train"))
    assert ended.value.code == 7
    shown = capsys.readouterr()
    document = json.loads(shown.out)
    assert document["status"] == "failed"
    for line in ("Read works", "Train is broken", "stopped by Train", "resume: "):
        assert line in shown.err, shown.err
    assert document["resume_command"].endswith(document["run_id"])


def test_an_error_of_an_engine_is_the_error_of_the_run(root):
    def refuse(name):
        raise UsageError("no such machine", hint="choose another")

    record = run_digits(MemoryEngine(act=refuse))
    assert (record.status, record.exit_code) == ("failed", 2)
    assert record.error and "try:      choose another" in record.error.message
    _check_closed(root, record)


def test_sigint_ends_the_run_of_any_engine(root):
    """As ``sluice cancel`` sends it."""

    def cancel(name):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(10)

    record = run_digits(MemoryEngine(act=cancel))
    assert (record.status, record.exit_code) == ("interrupted", 130)
    assert record.node("Read").state == "interrupted"
    _check_closed(root, record)


def test_a_failed_run_is_resumed(root):
    failed = run_digits(MemoryEngine(fails="Train"))
    assert find_run("digits").record == failed
    engine, observer = MemoryEngine(), Seen()
    record = resume("digits", observer=observer, engine=engine)
    assert (record.run_id, record.status) == (failed.run_id, "succeeded")
    assert engine.plans[0].resumed
    assert "Read works" not in observer.seen
    assert "Train works" in observer.seen


def test_a_run_refused_in_its_last_node_can_be_resumed(root):
    """Found: after a Pusher's exit 2, resume named an older run."""

    def refuse(name):
        if name == "Push":
            raise UsageError("no right to write")

    run_digits(MemoryEngine())
    refused = run_digits(MemoryEngine(act=refuse), forced=["Trainer"])
    assert refused.exit_code == 2
    record = resume("digits", engine=MemoryEngine())
    assert (record.run_id, record.exit_code) == (refused.run_id, 0)


def _check_closed(root, record):
    """The record is closed, and the lock is free."""
    workspace = locate(root, "digits")
    assert RunRecord.load(workspace.run_dir(record.run_id)) == record
    assert not workspace.is_running()
