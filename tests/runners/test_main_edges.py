"""The command line where its surroundings are broken."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sluice.project import own_root

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    "arguments",
    [
        "status",
        "run digits",
        "runs digits",
        "resume digits",
        "validate digits",
        "gc digits",
    ],
)
def test_a_deleted_directory_is_told_as_such(tmp_path: Path, arguments: str) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    command = f'cd "{gone}" && rmdir "{gone}" && exec "$0" -m runners.cli.main'
    done = subprocess.run(
        ["bash", "-c", f"{command} {arguments}", sys.executable],
        env={**os.environ, "PYTHONPATH": str(own_root())},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("error: the current directory cannot be found")
    assert str(gone) in done.stderr
    assert "cd to the project" in done.stderr
