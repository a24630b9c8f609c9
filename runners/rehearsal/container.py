"""Runs the command line of a container task, without a container or in Docker.

Without one, the process gets what the image would give it and nothing of the shell:
this Python, the project on the module search path, an empty folder to run in.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from runners.rehearsal.supervisor import POLL_S
from sluice.project import own_root

_BIN = Path(sys.executable).parent
# The emulator's files, which the container reads under the same path.
_FILE_VARIABLES = ("CURL_CA_BUNDLE", "GOOGLE_APPLICATION_CREDENTIALS")


@dataclass(frozen=True)
class Ended:
    """How a process has ended: status as in ``subprocess``, and its memory."""

    status: int | None
    peak_memory_bytes: int | None = None


@dataclass(frozen=True)
class Containers:
    """Where and how the commands of container tasks run.

    Attributes:
      scratch: a folder for the files of running tasks.
      project_root: its packages are importable, as in the image.
      emulator: variables by which a process finds the emulated services.
      image: run the commands in this image by Docker; None for plain processes.
    """

    scratch: Path
    project_root: Path
    emulator: Mapping[str, str]
    image: str | None = None

    def with_variables(self, variables: Mapping[str, str]) -> Containers:
        """Returns these with more variables of emulated services."""
        return replace(self, emulator={**self.emulator, **variables})

    def environment(self, env: Mapping[str, str], home: Path) -> dict[str, str]:
        """Returns the whole environment of a task's process.

        Args:
          env: the container's, by the spec.
          home: an empty folder.
        """
        paths = dict.fromkeys([str(self.project_root), str(own_root())])
        return {
            "PATH": f"{_BIN}:/usr/local/bin:/usr/bin:/bin",
            "PYTHONPATH": os.pathsep.join(paths),
            "HOME": str(home),
            "TMPDIR": str(home),
            "LANG": "C.UTF-8",
            **self.emulator,
            **env,
        }

    def docker_command(
        self, command: Sequence[str], env: Mapping[str, str], name: str
    ) -> list[str]:
        """Returns the command line that runs a command in the image.

        Args:
          command: of the container.
          env: the container's, by the spec.
          name: of the new container.
        """
        assert self.image is not None
        variables = {**self.emulator, **env}
        options = [
            x for key, value in variables.items() for x in ("-e", f"{key}={value}")
        ]
        folders = {
            os.path.dirname(self.emulator[key])
            for key in _FILE_VARIABLES
            if key in self.emulator
        }
        mounts = [
            x for folder in sorted(folders) for x in ("-v", f"{folder}:{folder}:ro")
        ]
        # The emulator listens on this machine's loopback interface, and its files are
        # readable by this user only, who need not exist in the image.
        run = ["docker", "run", "--rm", "--init", "--network=host", f"--name={name}"]
        run += [f"--user={os.getuid()}:{os.getgid()}", "-e", "HOME=/tmp"]
        entry, *arguments = command
        return [*run, *options, *mounts, "--entrypoint", entry, self.image, *arguments]

    def run(
        self,
        command: Sequence[str],
        env: Mapping[str, str],
        log: Path,
        name: str,
        stopping: Callable[[], str | None],
    ) -> Ended:
        """Runs a command until it ends.

        Args:
          command: of the container.
          env: the container's, by the spec.
          log: its output is appended to this file.
          name: of the task, for people.
          stopping: returns ``"term"`` to ask it to stop, ``"kill"`` to kill it.
        """
        self.scratch.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f"{name}-", dir=self.scratch) as folder:
            home, result = Path(folder) / "home", Path(folder) / "result.json"
            home.mkdir()
            unique = ""
            if self.image is None:
                line, variables = list(command), self.environment(env, home)
            else:
                unique = f"sluice-{Path(folder).name}".lower()
                line = self.docker_command(command, env, unique)
                variables = dict(os.environ)
            log.parent.mkdir(parents=True, exist_ok=True)
            with log.open("ab") as output:
                output.write(f"$ {shlex.join(line[:3])} ...\n".encode())
                output.flush()
                process = subprocess.Popen(
                    [
                        *(sys.executable, "-m", "runners.rehearsal.supervisor"),
                        *(str(home), str(result), unique, *line),
                    ],
                    cwd=own_root(),
                    env=variables,
                    stdin=subprocess.PIPE,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            with process:
                _wait(process, stopping)
            try:
                return Ended(**json.loads(result.read_text(encoding="utf-8")))
            except (OSError, ValueError):
                return Ended(None)


def _wait(process: subprocess.Popen[bytes], stopping: Callable[[], str | None]) -> None:
    """Waits for the end of a supervisor, and passes on requests to stop."""
    assert process.stdin is not None
    asked = False
    while True:
        with suppress(subprocess.TimeoutExpired):
            process.wait(POLL_S)
            return
        request = stopping()
        # It may have ended meanwhile.
        with suppress(BrokenPipeError):
            if request == "kill":
                process.stdin.close()
                process.wait()
                return
            if request == "term" and not asked:
                asked = True
                process.stdin.write(b"t")
                process.stdin.flush()
