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
from sluice.record.parts import DocumentRecord, NodeEnd, NodeRecord
from sluice.record.run_record import RunOptions, RunRecord
from tests.kit.wait import wait_for

pytestmark = pytest.mark.tf


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


@pytest.fixture
def run(server: Any, tmp_path: Path) -> Callable[[bool], RunRecord]:
    """Runs both nodes with one worker."""

    def run(dies: bool) -> RunRecord:
        assert wait_until_ready(lambda: None, lambda: False)
        record = RunRecord("run", "pipeline", options=RunOptions(workers=1))
        after = NodeRecord("Second", "Second", upstream=["First"])
        record.nodes = [NodeRecord("First", "First"), after]
        around = Surroundings(tmp_path, tmp_path)

        def start(node: NodeRecord) -> Child:
            function = f"{__name__}:{node.id.lower()}"
            return Child(node.id, tmp_path / "log", around, function, tmp_path, dies)

        scheduler = Scheduler(record, tmp_path, start, Observer(), StopRequest())
        assert scheduler.run()
        assert {node.state for node in record.nodes} == {"ran"}
        return record

    return run


def test_the_next_node_does_not_wait_for_documents(run):
    record = run(dies=False)
    assert [item.path for item in record.documents] == ["first.json"]
    assert record.notes == []


@pytest.mark.fault
def test_a_killed_description_is_noted(run):
    record = run(dies=True)
    assert record.documents == []
    (note,) = record.notes
    assert note.startswith("First: its outputs could not be described: was killed by")
