"""Output to a closed pipe does not end a run."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.unit

SCRIPT = """
import sys, time
from runners.cli.rich_console import make_console
console = make_console()
sys.stdin.readline()
for number in range(3):
    console.print("x" * 100_000)
print("still here", file=sys.stderr)
"""


def test_a_closed_pipe_does_not_end_the_program():
    read, write = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT],
        stdin=subprocess.PIPE,
        stdout=write,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(write)
    os.close(read)
    _, err = process.communicate("go\n", timeout=60)
    assert process.returncode == 0, err
    assert "still here" in err
