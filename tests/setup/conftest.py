"""A simulated machine for the setup script: a copy of its files, and its own PATH.

The script is the real one. Simulated are the installed tools, the output of ``uname``
and ``getconf``, and a ``uv`` that writes down its arguments.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOLS = (
    *("awk", "cat", "dirname", "flock", "head", "make", "mktemp", "pwd", "rm"),
    *("sed", "sh", "sha256sum", "sleep", "sort"),
)
NOTING_UV = """#!/bin/sh
case $1 in
    --version) exit 0 ;;
    python) exit 2 ;;
esac
echo "$* index=${UV_DEFAULT_INDEX:-}" >>"$NOTES"
"""


@dataclass(frozen=True)
class Machine:
    """Where the script runs.

    Attributes:
      project: the copy of the project's set-up files.
      bin: the only directory on PATH.
      home: the home directory, empty.
      notes: the file in which ``uv`` notes its arguments.
    """

    project: Path
    bin: Path
    home: Path
    notes: Path

    def tool(self, name: str, text: str) -> Path:
        """Puts a script on PATH."""
        return write_script(self.bin / name, text)

    def python(self, version: str, directory: Path | None = None) -> Path:
        """Puts a Python on PATH that only prints its version, path and header."""
        minor = version.rpartition(".")[0]
        header = self.home / "Python.h"
        header.touch()
        directory = directory or self.bin
        path = directory / f"python{minor}"
        return write_script(
            path, f"#!/bin/sh\nprintf '%s\\n' {version} {path} {header}\n"
        )

    def environ(self, **variables: str) -> dict[str, str]:
        """Returns the environment of the script, without that of this process."""
        return {
            "PATH": str(self.bin),
            "HOME": str(self.home),
            "NOTES": str(self.notes),
            **variables,
        }

    def set_up(self, *args: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Runs the real script to its end."""
        return subprocess.run(
            [self.project / "setup" / "environment.sh", *args],
            env=self.environ(**variables),
            capture_output=True,
            text=True,
            timeout=60,
        )

    def installs(self) -> list[str]:
        """Returns the arguments of every call of ``uv`` that installs."""
        return self.notes.read_text().splitlines() if self.notes.exists() else []


def write_script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture
def bare_machine(tmp_path: Path) -> Machine:
    """x86-64 Linux with glibc 2.36, without Python, compiler and uv."""
    project = tmp_path / "project"
    shutil.copytree(ROOT / "setup", project / "setup")
    shutil.copytree(ROOT / "requirements", project / "requirements")
    for name in ("setup.py", "Makefile"):
        shutil.copy(ROOT / name, project)
    machine = Machine(project, tmp_path / "bin", tmp_path / "home", tmp_path / "notes")
    machine.bin.mkdir()
    machine.home.mkdir()
    for name in TOOLS:
        found = shutil.which(name)
        assert found, f"this test needs {name}"
        (machine.bin / name).symlink_to(found)
    machine.tool("uname", "#!/bin/sh\n[ $1 = -s ] && echo Linux || echo x86_64\n")
    machine.tool("getconf", "#!/bin/sh\necho glibc 2.36\n")
    return machine


@pytest.fixture
def ready_machine(bare_machine: Machine) -> Machine:
    """The same with this test's Python, a compiler and a ``uv`` that only notes."""
    minor = f"{sys.version_info.major}.{sys.version_info.minor}"
    base = os.path.realpath(sys.executable)
    (bare_machine.bin / f"python{minor}").symlink_to(base)
    bare_machine.tool("getconf", "#!/bin/sh\necho glibc 2.39\n")
    bare_machine.tool("g++", "#!/bin/sh\n")
    bare_machine.tool("uv", NOTING_UV)
    return bare_machine
