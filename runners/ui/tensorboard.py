"""TensorBoard of a run, as a child process on a free port of 127.0.0.1.

It has no password: whoever can connect to this machine's 127.0.0.1 can read the logs
meanwhile. The page that asks says so.
"""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from pathlib import Path

from runners.local.processes.zygote import python_command
from runners.operations.find_run import FoundRun
from sluice.process_tree import die_with
from sluice.record.run_record import NodeRecord

_ADDRESS = re.compile(r"http://(?:127\.0\.0\.1|localhost):\d+/")
_ARTIFACT = "ModelRun"


def log_dir(found: FoundRun) -> Path | None:
    """Returns the folder with the logs of a run's last training.

    Returns:
      None if there is none, or if TensorBoard is not installed.
    """
    if importlib.util.find_spec("tensorboard") is None:
        return None
    dirs = [path for node in found.record.nodes for path in _log_dirs(found, node)]
    return dirs[-1] if dirs else None


def _log_dirs(found: FoundRun, node: NodeRecord) -> list[Path]:
    if node.state == "running":
        # The record has the outputs of a node only after its end.
        made = (found.workspace.artifacts / node.id).glob("*/*/tensorboard")
        return sorted(made, key=lambda path: path.stat().st_mtime)
    known = found.record.artifacts
    return [
        Path(uri)
        for uris in node.outputs.values()
        for uri in uris
        if uri in known and known[uri].type == _ARTIFACT and Path(uri).is_dir()
    ]


def command(logs: Path) -> list[str]:
    """Returns the command that serves logs on a free port, until this process ends."""
    return python_command(__name__, str(os.getpid()), str(logs))


def address(output: str) -> str | None:
    """Returns where TensorBoard serves, from what it has printed; None before."""
    found = _ADDRESS.search(output)
    return found[0] if found else None


def main(arguments: list[str]) -> None:
    """Runs TensorBoard; the arguments are the parent's pid and the folder."""
    parent, logs = arguments
    die_with(int(parent))
    from tensorboard.main import run_main

    sys.argv = ["tensorboard", "--logdir", logs, "--host=127.0.0.1", "--port=0"]
    run_main()
