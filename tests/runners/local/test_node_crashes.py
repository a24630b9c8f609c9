"""Nodes whose process crashes, exits or is killed."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

import pytest

from sluice.errors import NodeError

pytestmark = [pytest.mark.tf, pytest.mark.fault]

DEADLINE_S = 60.0
WAYS = (
    "segfault",
    "exit",
    "kill",
    "sys_exit",
    "leave_a_child",
    "allocate",
    "print",
    "nothing",
)
SURVIVED = ("leave_a_child", "allocate", "print", "nothing")


@pytest.fixture(scope="module")
def place(make_foreign):
    return make_foreign()


@pytest.fixture(scope="module")
def crashed(place, own):
    """A run with a node for each way to misbehave, and one that follows each."""
    nodes = []
    for way in WAYS:
        node = own.Misbehave(way=way, scratch=str(place.root / way)).with_id(way)
        follows = own.Read(data=node.outputs["out"], trace=place.trace("follows"))
        nodes += [node, follows.with_id(f"after_{way}")]
    return place.run(nodes)


def test_a_crash_fails_its_node_and_others_finish(crashed, place) -> None:
    expected = {}
    for way in WAYS:
        expected[way] = "ran" if way in SURVIVED else "failed"
        expected[f"after_{way}"] = "ran" if way in SURVIVED else "not_reached"
    assert crashed.states == expected
    assert sorted(note["read"] for note in place.notes("follows")) == sorted(SURVIVED)
    assert isinstance(crashed.error, NodeError)
    survived, failed = 2 * len(SURVIVED), len(WAYS) - len(SURVIVED)
    assert place.execution_states() == {"COMPLETE": survived, "FAILED": failed}


@pytest.mark.parametrize(
    ("way", "what"),
    [
        ("exit", r"exit ended its process with status 3: peak \d+\.\d GB"),
        (
            "kill",
            r"kill was killed by signal 9, by hand or since the machine was out of "
            r"memory: peak \d+\.\d GB",
        ),
        (
            "segfault",
            r"segfault was killed by signal 11 \(SIGSEGV, segmentation fault\)"
            r": peak \d+\.\d GB",
        ),
    ],
)
def test_the_end_of_the_process_is_named(crashed, way: str, what: str) -> None:
    assert re.fullmatch(what, crashed.reasons[way])
    assert crashed.nodes[way].error.exit_code == 7


@pytest.mark.parametrize("way", ["exit", "kill"])
def test_the_log_tail_has_the_last_lines(crashed, way: str) -> None:
    assert crashed.nodes[way].error.log_tail[-1] == f"about to {way}"
    (event,) = [event for event in crashed.of("node_finished") if event["node"] == way]
    assert event["error"]["log_tail"][-1] == f"about to {way}"


def test_the_error_that_is_raised_shows_the_log_tail(crashed) -> None:
    shown = str(crashed.error).splitlines()
    # Nodes run side by side: the error names the one that failed first.
    finished = [event["node"] for event in crashed.of("node_finished")]
    failed = next(
        node for name in finished if (node := crashed.nodes[name]).error is not None
    )
    assert shown[0] == failed.error.message.splitlines()[0]
    assert shown[-1] == f"  log:      {crashed.run_dir}/logs/{failed.node}.log"
    assert [line for line in shown if line.startswith("  | ")] == [
        f"  | {line}" for line in failed.error.log_tail
    ]


def test_after_a_segfault_the_tail_has_the_python_stack(crashed) -> None:
    tail = crashed.nodes["segfault"].error.log_tail
    assert tail[0] == "Fatal Python error: Segmentation fault"
    assert any("in string_at" in line for line in tail)
    assert any("misbehaving_component.py" in line for line in tail)


def test_sys_exit_of_zero_is_a_failure(crashed) -> None:
    assert crashed.reasons["sys_exit"] == "sys_exit failed: SystemExit: 0"
    assert "in _sys_exit" in crashed.message("sys_exit")


def test_a_child_process_ends_with_its_node(
    crashed, place, is_gone: Callable[[int], bool]
) -> None:
    """It ignores SIGTERM and would sleep for minutes."""
    pid = int((place.root / "leave_a_child").read_text())
    deadline = time.monotonic() + DEADLINE_S
    while not is_gone(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert is_gone(pid)


def test_peak_memory_is_recorded(crashed) -> None:
    peaks = {way: crashed.nodes[way].peak_memory_bytes for way in WAYS}
    assert peaks["allocate"] - peaks["nothing"] > 200e6
    assert all(100e6 < peak < 20e9 for peak in peaks.values())


def test_output_of_a_node_is_only_in_its_log(crashed) -> None:
    lines = crashed.log("print").splitlines()
    printed = [line for line in lines if line.startswith("line ")]
    assert len(printed) == 60_000
    assert printed[-1].startswith("line 59999 of many")
    for way in WAYS:
        assert crashed.log(way).count("about to ") == 1
