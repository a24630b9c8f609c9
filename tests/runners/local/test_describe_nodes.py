"""A node's outputs are described while the nodes after it run."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from runners.engine import Observer
from runners.local.processes import Child, Surroundings, wait_until_ready
from runners.local.scheduler import Scheduler
from runners.local.stop_request import StopRequest
from sluice import secrets
from sluice.record.parts import DocumentRecord, NodeEnd, NodeRecord
from sluice.record.run_record import RunOptions, RunRecord
from tests.kit.wait import wait_for

pytestmark = pytest.mark.tf

SECRET = "hunter2secret"


def first(folder: Path, dies: bool) -> Iterator[tuple[NodeEnd, None]]:
    """Ends, and is described when the node after it has begun, or dies instead."""
    end = NodeEnd("First", "ran")
    yield end, None
    wait_for((folder / "begun").exists)
    if dies:
        os.kill(os.getpid(), signal.SIGKILL)
    end.documents = [DocumentRecord("statistics", "First", "first.json")]
    yield end, None


def second(folder: Path, dies: bool) -> Iterator[tuple[NodeEnd, None]]:
    (folder / "begun").touch()
    yield from [(NodeEnd("Second", "ran"), None)] * 2


def prints_and_dies(folder: Path, dies: bool) -> None:
    os.write(2, b"the password is " + SECRET.encode())
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.fixture
def run(server: Any, tmp_path: Path) -> Callable[..., RunRecord]:
    """Runs nodes in a row with one worker."""

    def run(*functions: str, dies: bool = False) -> RunRecord:
        assert wait_until_ready(lambda: None, lambda: False)
        record = RunRecord("run", "pipeline", options=RunOptions(workers=1))
        for name in functions:
            before = [node.id for node in record.nodes[-1:]]
            record.nodes.append(NodeRecord(name.title(), name, upstream=before))
        around = Surroundings(tmp_path, tmp_path)

        def start(node: NodeRecord) -> Child:
            function = f"{__name__}:{node.kind}"
            return Child(node.id, tmp_path / "log", around, function, tmp_path, dies)

        assert Scheduler(record, tmp_path, start, Observer(), StopRequest()).run()
        return record

    return run


def test_the_next_node_does_not_wait_for_documents(run):
    record = run("first", "second")
    assert {node.state for node in record.nodes} == {"ran"}
    assert [item.path for item in record.documents] == ["first.json"]
    assert record.notes == []


@pytest.mark.fault
def test_a_killed_description_is_noted(run):
    record = run("first", "second", dies=True)
    assert {node.state for node in record.nodes} == {"ran"}
    assert record.documents == []
    (note,) = record.notes
    assert note.startswith("First: its outputs could not be described: was killed by")


@pytest.mark.fault
def test_a_secret_of_a_process_that_dies_is_not_recorded(run, tmp_path, monkeypatch):
    monkeypatch.setattr(secrets, "_resolved", {})
    monkeypatch.setenv("PASSWORD", SECRET)
    secrets.remember("${env:PASSWORD}")
    (node,) = run("prints_and_dies").nodes
    assert node.error is not None
    assert "the password is" in "".join(node.error.log_tail)
    assert SECRET not in "".join(node.error.log_tail)
    assert SECRET not in (tmp_path / "log").read_text()
