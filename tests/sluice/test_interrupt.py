"""Requests to stop, with real signals to real processes."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap

import pytest

from sluice import interrupt
from sluice.project import own_root

STOPPED = 42


def _run(code: str, timeout_s: float = 20.0) -> subprocess.CompletedProcess[str]:
    """Runs code that may end in Interrupted, which is exit code 42."""
    program = (
        "import os, signal, sys, time\n"
        "from sluice import interrupt\n"
        "def term(): os.kill(os.getpid(), signal.SIGTERM)\n"
        "try:\n"
        + textwrap.indent(textwrap.dedent(code), "    ")
        + "except interrupt.Interrupted as error:\n"
        f"    print(error)\n    sys.exit({STOPPED})\n"
    )
    return subprocess.run(
        [sys.executable, "-c", program],
        cwd=own_root(),
        capture_output=True,
        text=True,
        timeout=timeout_s,
    )


@pytest.mark.unit
def test_without_listen_nothing_happens() -> None:
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    with interrupt.cooperative():
        assert not interrupt.requested()
        interrupt.check()
    after = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    assert after == before


@pytest.mark.unit
def test_plain_code_is_interrupted_and_cleans_up() -> None:
    done = _run(
        """
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
        """
    )
    assert done.returncode == STOPPED, done.stderr
    assert done.stdout == "cleaned up\nthe node was asked to stop\n"


@pytest.mark.unit
def test_cooperative_code_runs_until_it_polls() -> None:
    done = _run(
        """
        interrupt.listen()
        with interrupt.cooperative():
            for step in range(5):
                if step == 2:
                    term()
                print(step, interrupt.requested())
                if step == 3:
                    interrupt.check()
        """
    )
    assert done.returncode == STOPPED, done.stderr
    lines = ["0 False", "1 False", "2 True", "3 True", "the node was asked to stop"]
    assert done.stdout.splitlines() == lines


@pytest.mark.unit
def test_a_request_without_a_poll_ends_the_outermost_block() -> None:
    done = _run(
        """
        interrupt.listen()
        with interrupt.cooperative():
            with interrupt.cooperative():
                term()
            print("inner left")
        print("outer left")
        """
    )
    assert done.returncode == STOPPED, done.stderr
    assert done.stdout == "inner left\nthe node was asked to stop\n"


@pytest.mark.unit
def test_an_exception_in_the_block_is_not_replaced() -> None:
    done = _run(
        """
        interrupt.listen()
        try:
            with interrupt.cooperative():
                term()
                raise OSError("disk full")
        except OSError as error:
            print(error, interrupt.requested())
        """
    )
    assert (done.returncode, done.stdout) == (0, "disk full True\n"), done.stderr


@pytest.mark.unit
def test_listen_ignores_ctrl_c_and_resets_old_requests() -> None:
    done = _run(
        """
        interrupt.listen()
        os.kill(os.getpid(), signal.SIGINT)
        with interrupt.cooperative():
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
        """
    )
    assert done.returncode == STOPPED, done.stderr
    assert done.stdout == "child False\nstopped\nthe node was asked to stop\n"


@pytest.mark.unit
def test_only_the_main_thread_can_listen() -> None:
    done = _run(
        """
        import threading
        def listen():
            try:
                interrupt.listen()
            except ValueError as error:
                print(error)
        thread = threading.Thread(target=listen)
        thread.start()
        thread.join()
        """
    )
    assert "main thread" in done.stdout, done.stderr


@pytest.mark.fault
def test_beam_can_raise_it_again_with_its_place() -> None:
    done = _run(
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
