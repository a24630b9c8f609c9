"""A component whose process crashes, exits, hangs or uses too much memory."""

# No `from __future__ import annotations`: TFX reads the annotations as objects.

import ctypes
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from tfx.dsl.component.experimental.annotations import OutputArtifact, Parameter
from tfx.dsl.component.experimental.decorators import component
from tfx.types.standard_artifacts import Examples

FILE = "data.txt"
OUTLIVES_S = 300


def _segfault(scratch: str) -> None:
    ctypes.string_at(0)


def _exit(scratch: str) -> None:
    os._exit(3)


def _kill(scratch: str) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _sys_exit(scratch: str) -> None:
    sys.exit(0)


def _leave_a_child(scratch: str) -> None:
    program = (
        "import pathlib, signal, sys, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "pathlib.Path(sys.argv[1]).touch()\n"
        f"time.sleep({OUTLIVES_S})\n"
    )
    child = subprocess.Popen([sys.executable, "-c", program, f"{scratch}.ready"])
    while not Path(f"{scratch}.ready").exists():
        time.sleep(0.01)
    Path(scratch).write_text(str(child.pid))


def _allocate(scratch: str) -> None:
    size = 300 << 20
    Path(scratch).write_text(str(len(b"x" * size)))


def _print(scratch: str) -> None:
    for number in range(60_000):
        print(f"line {number} of many " + 60 * "-")


def _nothing(scratch: str) -> None:
    pass


_WAYS = {
    "segfault": _segfault,
    "exit": _exit,
    "kill": _kill,
    "sys_exit": _sys_exit,
    "leave_a_child": _leave_a_child,
    "allocate": _allocate,
    "print": _print,
    "nothing": _nothing,
}


@component
def Misbehave(
    way: Parameter[str], scratch: Parameter[str], out: OutputArtifact[Examples]
):
    print(f"about to {way}")
    _WAYS[way](scratch)
    Path(out.uri, FILE).write_text(way)
