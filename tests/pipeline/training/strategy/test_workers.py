"""The processes of ``train.processes``, with tasks that need no TensorFlow."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import time
from pathlib import Path

import psutil
import pytest

from sluice.errors import NodeError
from tests.kit.forked_command import call_as_node

pytestmark = [pytest.mark.tf, pytest.mark.fault]


def succeed(started, task):
    started()
    Path(f"{task}.json").write_text(os.environ["TF_CONFIG"])


def serve(started, task):
    started()
    if not task.startswith("chief"):
        time.sleep(1000)
    Path("trained").touch()


def be_killed(started, task):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    started()
    if task == "worker 1":
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(1000)


def raise_ours(started, task):
    started()
    if task == "worker 1":
        raise NodeError("the loss is nan", where="epoch 1")
    time.sleep(1000)


def raise_another(started, task):
    started()
    if task == "worker 0":
        raise ValueError("no such layer\nin detail")
    time.sleep(1000)


def never_start(started, task):
    if task == "worker 0":
        started()
    time.sleep(1000)


CASES = {
    succeed: "",
    serve: "",
    be_killed: "worker 1 was killed by signal 9",
    raise_ours: "the loss is nan\n  where: epoch 1",
    raise_another: "worker 0 failed: ValueError: no such layer",
    never_start: "not all processes have started in 2 s",
}


def run_cases():
    """Runs each case in the working directory, and writes how it ended."""
    from pipeline.training.strategy import choice, workers

    workers.START_S = 2.0
    ends = {}
    for case in CASES:

        def task(started, case=case):
            place = json.loads(os.environ[choice.TF_CONFIG])["task"]
            case(started, f"{place['type']} {place['index']}")

        try:
            workers.run_tasks(task, 2, parameter_servers=case is serve)
            ends[case.__name__] = ""
        except NodeError as error:
            assert error.exit_code == 7
            ends[case.__name__] = str(error)
        assert psutil.Process().children() == []
    Path("ends.json").write_text(json.dumps(ends))


def test_all_end_with_the_first_that_fails(server, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    process = multiprocessing.get_context("forkserver").Process(
        target=call_as_node,
        args=(f"{__name__}:run_cases", dict(os.environ), tmp_path / "log"),
    )
    process.start()
    process.join(100)
    assert process.exitcode == 0, (tmp_path / "log").read_text()
    ends = json.loads((tmp_path / "ends.json").read_text())
    for case, end in CASES.items():
        found = " ".join(ends[case.__name__].split())
        assert found.startswith(" ".join(end.split()))
        assert bool(found) == bool(end)
    assert (tmp_path / "trained").exists()
    first, second = (
        json.loads((tmp_path / f"worker {index}.json").read_text()) for index in (0, 1)
    )
    assert first["cluster"] == second["cluster"]
    assert len(set(first["cluster"]["worker"])) == 2
    assert second["task"] == {"type": "worker", "index": 1}
