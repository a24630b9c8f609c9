"""A supervised training that needs no TensorFlow, as a script of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

from sluice import progress
from sluice.project import own_root

PRELUDE = """
import json, os, signal, sys, time
from pathlib import Path
from pipeline.training.strategy.supervisor import ProcessSettings, supervise
from pipeline.training.strategy.task_process import beat, set_fitting
from sluice import interrupt

def task():
    config = json.loads(os.environ["TF_CONFIG"])["task"]
    return f"{config['type']}{config['index']}"

def kill(number=signal.SIGKILL):
    os.kill(os.getpid(), number)

def first(name):
    try:
        Path(name).touch(exist_ok=False)
        return True
    except FileExistsError:
        return False

def serve():
    while True:
        beat()
        time.sleep(0.05)

def wait_for(name):
    while not Path(name).exists():
        beat()
        time.sleep(0.01)
"""
DEADLINE_S = 60.0


class Supervised:
    """A script that supervises a training, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._progress = folder / "progress.jsonl"

    def start(self, body: str) -> subprocess.Popen[str]:
        """Starts the script; a child of it runs in the test's folder."""
        return subprocess.Popen(
            [sys.executable, "-c", PRELUDE + textwrap.dedent(body)],
            cwd=self.folder,
            env={
                **os.environ,
                "PYTHONPATH": str(own_root()),
                progress.PROGRESS_FILE: str(self._progress),
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, body: str) -> tuple[int, str, str]:
        """Returns exit status, output and error output of the script."""
        with self.start(body) as script:
            try:
                output, errors = script.communicate(timeout=DEADLINE_S)
            finally:
                script.kill()
        return script.returncode, output, errors

    @property
    def notes(self) -> list[str]:
        """What ends in the record."""
        return [
            line["line"] for line in progress.read(self._progress)[0] if line["note"]
        ]

    def wait_for(self, condition: Callable[[], bool]) -> None:
        """Waits until a condition holds."""
        deadline = time.monotonic() + DEADLINE_S
        while not condition():
            assert time.monotonic() < deadline
            time.sleep(0.02)

    def wait_for_file(self, name: str) -> None:
        """Waits for a file that the training writes."""
        self.wait_for((self.folder / name).exists)
