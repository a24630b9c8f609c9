"""Ctrl-C while a command is being imported."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest

from sluice.project import own_root

pytestmark = pytest.mark.unit

_PROGRAM = """
import time
from runners.cli.options import exit_on_sigint

class Swallows:
    def __del__(self):
        print("ready", flush=True)
        time.sleep(60)

with exit_on_sigint():
    thing = Swallows()
    del thing
print("went on")
"""


def test_sigint_ends_the_process_during_an_import():
    process = subprocess.Popen(
        [sys.executable, "-c", _PROGRAM],
        cwd=own_root(),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    rest, _ = process.communicate(timeout=30)
    assert (process.returncode, rest) == (130, "")
