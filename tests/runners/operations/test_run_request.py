"""Requests that ``run`` refuses before a run begins, and notes on killed runs."""

from __future__ import annotations

import importlib
import multiprocessing
import os
import signal
from dataclasses import replace
from typing import Any

import pytest

from runners.engine import Capabilities
from runners.operations.resume import ResumeRequest, resume
from runners.operations.run import RunRequest, run
from sluice.errors import UsageError
from sluice.record.run_record import RunRecord

pytestmark = pytest.mark.unit


def test_a_part_without_nodes_is_refused(written: Any) -> None:
    """TFRecordGen is upstream of Trainer: no node is between them in that order."""
    request = RunRequest(
        name="digits", from_nodes=("Trainer",), to_nodes=("TFRecordGen",)
    )
    with pytest.raises(UsageError, match="no node is selected") as info:
        run(request)
    assert info.value.actual == "no path from Trainer to TFRecordGen"
    assert written.workspace.run_ids() == []


def test_a_tpu_on_another_machine_takes_no_local_workspace(
    written: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TPU_NAME", "grpc://10.0.0.1:8470")
    with pytest.raises(UsageError, match="reads no local files") as info:
        run(RunRequest(name="digits"))
    assert info.value.examples == (str(written.workspace.root),)
    assert written.workspace.run_ids() == []
    # Without it, the run begins.
    engine = importlib.import_module("memory_engine").MemoryEngine(Capabilities())
    override = ("train.strategy=one_device",)
    record = run(RunRequest(name="digits", overrides=override), engine=engine)
    assert record.status == "succeeded"


@pytest.mark.parametrize(
    ("strategy", "what"),
    [("tpu", "no TPU was found"), ("multi_worker", "there are no workers")],
)
def test_a_strategy_that_this_machine_lacks_begins_no_run(
    written: Any, strategy: str, what: str
) -> None:
    engines = importlib.import_module("memory_engine")
    request = RunRequest(name="digits", overrides=(f"train.strategy={strategy}",))
    here = engines.MemoryEngine(Capabilities(this_machine=True))
    with pytest.raises(UsageError, match=what) as info:
        run(request, engine=here)
    assert info.value.where == f"--set train.strategy={strategy}"
    assert written.workspace.run_ids() == []
    # Another engine may have it; so may whoever trains later.
    for allowed in (
        run(request, engine=engines.MemoryEngine(Capabilities())),
        run(replace(request, to_nodes=("Transform",)), engine=here),
    ):
        assert allowed.status == "succeeded"


def test_workers_on_this_machine_need_no_tf_config(written: Any) -> None:
    engines = importlib.import_module("memory_engine")
    overrides = ("train.strategy=multi_worker", "train.processes=2")
    engine = engines.MemoryEngine(Capabilities(this_machine=True))
    request = RunRequest(name="digits", overrides=overrides)
    assert run(request, engine=engine).status == "succeeded"


def test_each_kill_is_noted_once(written: Any) -> None:
    """Of a run that is resumed and killed again and again."""
    engines = importlib.import_module("memory_engine")
    able = Capabilities(resume=True)

    def kill(node: str) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def in_a_process_that_dies(operate: Any, request: Any) -> int | None:
        engine = engines.MemoryEngine(able, act=kill)
        context = multiprocessing.get_context("fork")
        process = context.Process(target=lambda: operate(request, engine=engine))
        process.start()
        process.join()
        assert process.exitcode == -signal.SIGKILL
        return process.pid

    pids = [in_a_process_that_dies(run, RunRequest(name="digits"))]
    request = ResumeRequest(name="digits")
    pids += [in_a_process_that_dies(resume, request) for _ in range(2)]
    record = resume(request, engine=engines.MemoryEngine(able))
    assert record.status == "succeeded"
    assert len(record.notes) == len(pids)
    for note, pid in zip(record.notes, pids, strict=True):
        assert note.startswith(f"took over the lock of a dead owner: process {pid} on ")


def test_tags_are_in_the_record(written: Any) -> None:
    engine = importlib.import_module("memory_engine").MemoryEngine(Capabilities())
    tags = ("night", "team=a=b", "note=")
    record = run(RunRequest(name="digits", tags=tags), engine=engine)
    assert record.tags == {"night": "", "team": "a=b", "note": ""}
    run_dir = written.workspace.run_dir(record.run_id)
    assert RunRecord.load(run_dir).tags == record.tags


@pytest.mark.parametrize(
    "tag", ["", "=a", "a b=c", "-x", "k" * 101, "k=" + "v" * 501, "k=\n", "k=\udcff"]
)
def test_tags_of_another_form_begin_no_run(written: Any, tag: str) -> None:
    with pytest.raises(UsageError, match="this is not a tag") as info:
        run(RunRequest(name="digits", tags=(tag,)))
    assert info.value.actual is not None and info.value.actual.startswith(tag[:80])
    assert written.workspace.run_ids() == []


def test_a_tag_has_one_value(written: Any) -> None:
    with pytest.raises(UsageError, match="the tag 'a' is given twice"):
        run(RunRequest(name="digits", tags=("a=1", "a=2")))
