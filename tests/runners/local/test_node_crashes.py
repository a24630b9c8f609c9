"""Nodes whose process crashes, exits or is killed."""

from __future__ import annotations

import time

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


def test_a_crash_fails_its_node_and_others_finish(crashed, place):
    expected = {}
    for way in WAYS:
        expected[way] = "ran" if way in SURVIVED else "failed"
        expected[f"after_{way}"] = "ran" if way in SURVIVED else "not_reached"
    assert crashed.states == expected
    assert sorted(note["read"] for note in place.notes("follows")) == sorted(SURVIVED)
    assert isinstance(crashed.error, NodeError)
    assert place.execution_states()["COMPLETE"] == 2 * len(SURVIVED)


@pytest.mark.parametrize(
    ("way", "what"),
    [
        ("exit", "exit ended its process with status 3"),
        ("kill", "kill was killed by signal 9"),
        ("segfault", "segfault was killed by signal 11 (SIGSEGV, segmentation fault)"),
    ],
)
def test_the_end_of_the_process_is_named(crashed, way, what):
    assert crashed.reasons[way].startswith(what)
    error = crashed.record.node(way).error
    assert error.exit_code == 7
    if way != "segfault":
        assert error.log_tail[-1] == f"about to {way}"


def test_after_a_segfault_the_log_has_the_python_stack(crashed):
    log = crashed.log("segfault")
    stack = log.partition("Fatal Python error: Segmentation fault")[2]
    assert "in string_at" in stack and "misbehaving_component.py" in stack


def test_sys_exit_of_zero_is_a_failure(crashed):
    assert crashed.reasons["sys_exit"] == "sys_exit failed: SystemExit: 0"
    assert "in _sys_exit" in crashed.message("sys_exit")


def test_a_child_process_ends_with_its_node(crashed, place, is_gone):
    """It ignores SIGTERM and would sleep for minutes."""
    pid = int((place.root / "leave_a_child").read_text())
    deadline = time.monotonic() + DEADLINE_S
    while not is_gone(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert is_gone(pid)


def test_peak_memory_is_recorded(crashed):
    peaks = {way: crashed.record.node(way).peak_memory_bytes for way in SURVIVED}
    assert peaks["allocate"] - peaks["nothing"] > 200e6
    assert all(100e6 < peak < 20e9 for peak in peaks.values())


def test_output_of_a_node_is_only_in_its_log(crashed):
    lines = crashed.log("print").splitlines()
    printed = [line for line in lines if line.startswith("line ")]
    assert len(printed) == 60_000
    assert printed[-1].startswith("line 59999 of many")
    for way in WAYS:
        assert crashed.log(way).count("about to ") == 1
