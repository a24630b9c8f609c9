"""Kills and signals on a graph of three nodes: TFRecordGen, Slow, After."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import psutil
import pytest

from tests.kit.wait import wait_for

pytestmark = pytest.mark.fault

RUN = ("run", "clicks", "--to", "After", "--json")
RESUME = ("resume", "clicks", "--json")
INTERRUPTED = {signal.SIGINT: 130, signal.SIGTERM: 143}


def attempts(outcome):
    return [outcome.nodes[name]["attempts"] for name in ("TFRecordGen", "Slow")]


def check_resume(place, slow=2):
    """Resumes the run, which keeps what had finished and reads nothing half-made."""
    outcome = place.sluice(*RESUME)
    assert (outcome.code, outcome.document["status"]) == (0, "succeeded"), outcome.err
    assert attempts(outcome) == [1, slow]
    (out,) = outcome.nodes["After"]["outputs"]["out"]
    assert len(Path(out, "files").read_text().splitlines()) == 1
    assert outcome.document["resume_command"] is None
    assert not place.workspace.is_running()


def test_a_node_that_dies_stops_only_downstream_nodes(place):
    """Other ways to die: ``runners/local/test_node_crashes.py``."""
    place.act("kill")
    outcome = place.sluice(*RUN)
    assert outcome.code == 7
    document = outcome.document
    assert (document["status"], document["error"]["node"]) == ("failed", "Slow")
    assert document["error"]["message"].startswith("Slow was killed by signal 9")
    assert document["resume_command"] in outcome.err
    states = [outcome.nodes[n]["state"] for n in ("TFRecordGen", "Slow", "After")]
    assert states == ["ran", "failed", "not_reached"]
    assert place.record().to_dict() == document
    check_resume(place)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_interrupts_the_run(place, number):
    (place.project / "hold Slow").touch()
    process = place.start(*RUN)
    pids = place.hold(process)
    process.send_signal(number)
    outcome = place.end(process)
    document, code = outcome.document, INTERRUPTED[number]
    assert (outcome.code, document["exit_code"]) == (code, code)
    assert (document["status"], outcome.nodes["Slow"]["state"]) == ("interrupted",) * 2
    assert document["resume_command"] in outcome.err
    assert place.is_quiet(pids)
    place.let_go()
    check_resume(place)


def test_a_second_ctrl_c_kills_a_node_that_does_not_react(place):
    (place.project / "hold Slow").touch()
    place.act("ignore signals")
    process = place.start(*RUN)
    pids = place.hold(process)
    process.send_signal(signal.SIGINT)
    with pytest.raises(Exception, match="timed out"):
        process.communicate(timeout=1)
    process.send_signal(signal.SIGINT)
    outcome = place.end(process)
    assert outcome.code == 130
    assert outcome.nodes["Slow"]["state"] == "interrupted", outcome.err
    assert place.is_quiet(pids)


def test_a_killed_runner_leaves_no_process_and_no_lock(place):
    (place.project / "hold Slow").touch()
    process = place.launch(*RUN)
    pids = place.hold(process)
    assert len(pids) >= 2
    refused = place.sluice(*RUN)
    assert (refused.code, refused.document["run_id"]) == (6, "")
    assert f"process {process.pid} on {os.uname().nodename}, since 20" in refused.err
    process.kill()
    assert place.is_quiet(pids)
    assert place.record().status == "running"
    status = place.sluice("status", "clicks", "--json")
    assert status.document["status"] == "interrupted", status.err
    assert status.document["resume_command"].startswith("sluice resume clicks --run ")
    assert place.record().status == "running", "a command that reads has written"
    place.let_go()
    check_resume(place)


def test_the_process_that_starts_nodes_is_killed(place):
    (place.project / "hold Slow").touch()
    process = place.launch(*RUN)
    pids = place.hold(process)
    (node,) = (pid for pid in pids if psutil.Process(pid).name().endswith(":Slow"))
    os.kill(psutil.Process(node).ppid(), signal.SIGKILL)
    outcome = place.end(process)
    assert (outcome.code, outcome.document["status"]) == (7, "failed")
    assert place.is_quiet(pids)
    place.let_go()
    check_resume(place)


def test_ctrl_c_while_tfx_is_imported(place):
    process = place.launch(*RUN)

    def imports():
        pids = [child.pid for child in psutil.Process(process.pid).children(True)]
        maps = [Path(f"/proc/{pid}/maps") for pid in pids]
        begun = place.workspace.run_ids()
        return begun and any("tensorflow" in path.read_text() for path in maps) and pids

    pids = wait_for(imports, "the import of TensorFlow")
    process.send_signal(signal.SIGINT)
    outcome = place.end(process)
    assert (outcome.code, outcome.document["status"]) == (130, "interrupted")
    assert place.is_quiet(pids)
    check_resume(place, slow=1)


def test_a_run_that_waited_finds_nothing_to_do(place):
    """The first run of a part is not complete, but all of its nodes are cached."""
    (place.project / "hold Slow").touch()
    process = place.start(*RUN)
    place.hold(process)
    waiting, line = (
        place.start(*RUN, "--wait"),
        f"waiting for process {process.pid} on ",
    )
    wait_for(lambda: line in waiting.printed()[1], "the second run at the lock")
    place.let_go()
    assert place.end(process).code == 0
    outcome = place.end(waiting)
    assert (outcome.code, outcome.document["status"]) == (0, "up_to_date"), outcome.err
