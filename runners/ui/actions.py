"""The buttons of a run: each starts a command that could as well be typed.

A page asks first and shows the command. It runs in a process of its own and goes on
when the server ends: the run's record shows what becomes of it.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from runners.cloud.submitted_job import is_service_run
from runners.operations.find_run import RESUMABLE, FoundRun, last_real_run
from sluice.record.states import Tone
from sluice.workspace import Workspace

_TAIL_BYTES = 100_000


@dataclass(frozen=True)
class Action:
    """A button of a run.

    Attributes:
      name: in the address of its page.
      label: on the button.
      text: what will happen, on the page that asks.
      words: the command.
    """

    name: str
    label: str
    text: str
    words: list[str]


def possible_actions(found: FoundRun) -> list[Action]:
    """Returns the buttons of a run."""
    record, workspace = found.record, found.workspace
    own = f"--run={record.run_id}"
    place = f"--workspace={workspace.root.parent}"
    if record.status == "running":
        # Several may be in progress in a service.
        which = [own] if is_service_run(found.run_dir) else []
        words = ["sluice", "cancel", record.pipeline, *which, place]
        return [Action("cancel", "Stop", _CANCEL, words)]
    if workspace.is_running():
        return []
    actions = []
    last = last_real_run(workspace)
    is_last = last is not None and last.run_id == record.run_id
    if is_last and record.status in RESUMABLE and record.resume_command:
        words = ["sluice", "resume", record.pipeline, own, place]
        actions.append(Action("resume", "Resume", _RESUME, words))
    return actions


def first_action(name: str, workspace: Workspace) -> Action:
    """Returns the button that runs a pipeline as its config is."""
    words = ["sluice", "run", name, f"--workspace={workspace.root.parent}"]
    return Action("run", "Run", _FIRST, words)


_CANCEL = (
    "Running nodes may finish their work; asked a second time, they are killed. "
    "The run can be resumed."
)
_RESUME = "The nodes that have not finished run again, with the config of this run."
_FIRST = "A new run begins, with the config as it is; the cache has what is the same."


@dataclass(frozen=True)
class Child:
    """A started command.

    Attributes:
      title: what it does.
      run_url: of the run that it was started from; None if from none.
      command: as one would type it.
    """

    title: str
    run_url: str | None
    command: str
    process: subprocess.Popen[bytes]
    output_file: Path

    @property
    def exit_code(self) -> int | None:
        """None while it runs."""
        return self.process.poll()

    @property
    def state(self) -> str:
        """What becomes of it, in words."""
        code = self.exit_code
        return "running" if code is None else f"ended with exit code {code}"

    @property
    def tone(self) -> Tone:
        return (
            "active" if self.exit_code is None else "bad" if self.exit_code else "good"
        )

    def output(self) -> str:
        """Returns the end of what it has printed."""
        return self.output_file.read_bytes()[-_TAIL_BYTES:].decode(errors="replace")


class ChildProcesses:
    """The commands that the server has started, and their output."""

    def __init__(self) -> None:
        self.started: list[Child] = []
        self._folder = tempfile.TemporaryDirectory(prefix="sluice-ui-")

    def start(self, title: str, words: list[str], run_url: str | None) -> int:
        """Starts a command of Sluice in a session of its own; returns its index."""
        output_file = Path(self._folder.name) / f"{len(self.started)}.log"
        with open(output_file, "wb") as output:
            process = subprocess.Popen(
                [Path(sys.executable).with_name(words[0]), *words[1:]],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        command = shlex.join(words)
        self.started.append(Child(title, run_url, command, process, output_file))
        return len(self.started) - 1
