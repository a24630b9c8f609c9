"""Requests to stop, with real signals to real processes."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

from sluice.project import own_root

STOPPED = 42
PROGRAM = """
import os, signal, sys, threading, time
from sluice import interrupt
def term(): os.kill(os.getpid(), signal.SIGTERM)
try:
{}
except interrupt.Interrupted as error:
    print(error)
    sys.exit(42)
"""


def run(code, timeout_s=20.0):
    """Runs code that may end in Interrupted, which is exit code 42."""
    program = PROGRAM.format(textwrap.indent(textwrap.dedent(code), "    "))
    return subprocess.run(
        [sys.executable, "-c", program],
        cwd=own_root(),
        capture_output=True,
        text=True,
        timeout=timeout_s,
    )


CODE = {
    "plain code is interrupted and cleans up": """
        interrupt.listen()
        try:
            try:
                term()
                time.sleep(30)
            except Exception:
                print("swallowed")
        finally:
            term()  # a second one must not disturb this
            print("cleaned up")
        """,
    "deferred code runs to its end": """
        interrupt.listen()
        with interrupt.deferred():
            for step in range(2):
                if step == 1:
                    term()
                print(step, interrupt.requested())
        if interrupt.requested():
            raise interrupt.Interrupted
        """,
    "ctrl-c is ignored and a fork's old request is reset": """
        interrupt.listen()
        os.kill(os.getpid(), signal.SIGINT)
        with interrupt.deferred():
            term()
            if os.fork() == 0:
                interrupt.listen()
                print("child", interrupt.requested(), flush=True)
                try:
                    term()
                except interrupt.Interrupted:
                    print("stopped", flush=True)
                os._exit(0)
            os.wait()
        raise interrupt.Interrupted
        """,
}


@pytest.mark.unit
@pytest.mark.parametrize(
    ("what", "printed"),
    zip(
        CODE,
        [["cleaned up"], ["0 False", "1 True"], ["child False", "stopped"]],
        strict=True,
    ),
)
def test_a_stop(what, printed):
    done = run(CODE[what])
    assert done.returncode == STOPPED, done.stderr
    assert done.stdout.splitlines() == [*printed, "the node was asked to stop"]


@pytest.mark.fault
def test_beam_can_raise_it_again_with_its_place():
    done = run(
        """
        import apache_beam as beam
        interrupt.listen()
        def slow(x):
            if x == 3:
                term()
            return x
        with beam.Pipeline() as pipeline:
            pipeline | beam.Create(range(100)) | "Slow" >> beam.Map(slow)
        """,
        timeout_s=120.0,
    )
    assert done.returncode == STOPPED, done.stderr
    assert done.stdout == "the node was asked to stop [while running 'Slow']\n"
