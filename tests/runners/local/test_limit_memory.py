"""Memory limits of nodes."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.config.config import Memory
from runners.local.limit_memory import LimitMemory, MemoryLimits
from sluice.errors import UsageError

LIMITS = MemoryLimits(default_mb=1500, nodes_mb={"grow": 1200})


@pytest.mark.unit
def test_a_named_node_has_its_own_limit() -> None:
    assert [LIMITS.of(node) for node in ("grow", "Make")] == [
        (1_200_000_000, "MemoryLimits.nodes_mb['grow']"),
        (1_500_000_000, "MemoryLimits.default_mb"),
    ]
    in_config = replace(LIMITS, in_config=True)
    assert [in_config.of(node) for node in ("grow", "Make")] == [
        (1_200_000_000, "memory_mb.nodes.grow"),
        (1_500_000_000, "memory_mb.default"),
    ]
    assert MemoryLimits().of("Make") is None
    lifted = MemoryLimits(default_mb=1500, nodes_mb={"grow": None})
    assert lifted.of("grow") is None


@pytest.mark.unit
@pytest.mark.parametrize("wrong", [{"default": 0}, {"nodes": {"Trainer": 1.5}}])
def test_invalid_values_are_refused(wrong: dict) -> None:
    with pytest.raises(ValueError, match="1 validation error"):
        Memory.model_validate(wrong)


@pytest.mark.fault
def test_memory_that_processes_share_counts_once(tmp_path: Path) -> None:
    """As that of forks: five of them with 300 MB in common use little more than it."""
    program = (
        "import os, pathlib, sys, time\n"
        "held = b'x' * 300_000_000\n"
        "for number in range(4):\n"
        "    if os.fork() == 0:\n"
        "        break\n"
        "else:\n"
        "    pathlib.Path(sys.argv[1]).touch()\n"
        "sys.stdin.read()\n"
    )
    ready = tmp_path / "ready"
    forks = subprocess.Popen(
        [sys.executable, "-c", program, str(ready)], stdin=subprocess.PIPE
    )
    with forks:
        while not ready.exists():
            assert forks.poll() is None
        pids = {"forks": forks.pid}
        for limit_mb, exceeded in ((500, False), (200, True)):
            by_config = MemoryLimits(limit_mb, in_config=True)
            limits = LimitMemory(by_config, pids.get)
            limits.poll(["forks"])
            error = limits.take("forks")
            assert (error is not None) == exceeded, error
    assert error is not None
    assert re.search(r"found: +3\d\d MB in 5 processes", str(error))
    assert "raise memory_mb.default, or have the node use less, such as" in str(error)
    assert forks.returncode == -9


@pytest.mark.tf
@pytest.mark.fault
def test_a_node_over_its_limit_fails_and_others_finish(
    foreign, own, is_gone: Callable[[int], bool]
) -> None:
    alone, many = (
        own.Misbehave(way=way, scratch=str(foreign.root / way)).with_id(way)
        for way in ("grow", "grow_in_children")
    )
    make = own.Make(trace=foreign.trace("Make"))
    copy = own.Copy(data=make.outputs["out"], trace=foreign.trace("Copy"))
    read = own.Read(data=alone.outputs["out"], trace=foreign.trace("Read"))
    run = foreign.run([alone, many, make, copy, read], workers=3, memory=LIMITS)
    assert run.states == {
        **dict.fromkeys(("grow", "grow_in_children"), "failed"),
        **dict.fromkeys(("Make", "Copy"), "ran"),
        "Read": "not_reached",
    }
    for way, limit, processes in (
        ("grow", r"1,200 MB \(MemoryLimits\.nodes_mb\['grow'\]\)", "1 process"),
        (
            "grow_in_children",
            r"1,500 MB \(MemoryLimits\.default_mb\)",
            "[34] processes",
        ),
    ):
        error = run.nodes[way].error
        assert error is not None
        assert (error.exit_code, error.transient) == (7, False)
        assert re.match(
            rf"{way} was killed: it exceeded its memory limit\n"
            rf"  expected: at most {limit}\n"
            rf"  found:    [12],\d\d\d MB in {processes}\n"
            r"  try:      raise MemoryLimits\..*, or have the node use less; then",
            error.message,
        ), error.message
    pids = (foreign.root / "grow_in_children").read_text().split()
    assert all(is_gone(int(pid)) for pid in pids)
    assert foreign.execution_states() == {"COMPLETE": 2, "FAILED": 2}


@pytest.mark.tf
def test_a_limit_of_an_unknown_node_is_refused(foreign, own) -> None:
    limits = MemoryLimits(nodes_mb={"Trainor": 1})
    run = foreign.run([own.Make(trace=foreign.trace("Make"))], memory=limits)
    assert isinstance(run.error, UsageError)
    assert "there is no node 'Trainor'" in str(run.error)
