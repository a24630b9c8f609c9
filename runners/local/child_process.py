"""The child process that runs a pipeline for the command line.

``python -m runners.local.child_process RUN_DIR EVENTS_FD WORKSPACE`` reads the resolved
config from ``RUN_DIR/config.json`` and writes events as JSON lines to the descriptor.
It dies with its parent: nobody would read the events of an orphan.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import traceback
from pathlib import Path
from typing import Any

from sluice.compat import prepare_environment
from sluice.errors import ExitCode, SluiceError, UsageError
from sluice.workspace import Workspace

_PR_SET_PDEATHSIG = 1


def main(arguments: list[str]) -> int:
    """Runs the pipeline; the events say how it went, not the exit status."""
    run_dir, events_fd = Path(arguments[0]), int(arguments[1])
    workspace = Workspace(Path(arguments[2]))
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    # Beam parses sys.argv for options of its own.
    sys.argv = sys.argv[:1]

    def emit(event: dict[str, Any]) -> None:
        os.write(events_fd, json.dumps(event).encode() + b"\n")

    try:
        _run(run_dir, workspace, emit)
        emit({"event": "finished"})
    except SluiceError as error:
        emit(_stopped(str(error), error.exit_code))
    except ModuleNotFoundError as error:
        traceback.print_exc()
        missing = UsageError(
            f"this Python lacks the package {error.name!r}",
            where=sys.executable,
            hint="make setup, then .venv/bin/sluice",
        )
        emit(_stopped(str(missing), missing.exit_code))
    except Exception as error:
        traceback.print_exc()
        message = f"{type(error).__name__}: {error}"
        emit(_stopped(f"Sluice itself failed: {message}", ExitCode.BUG))
    return 0


def _run(run_dir: Path, workspace: Workspace, emit: Any) -> None:
    from pipeline.stored_config import read_stored_config

    config = read_stored_config(run_dir / "config.json")
    prepare_environment()

    from pipeline.create_pipeline import create_pipeline
    from pipeline.places import local_places
    from runners.local.run import run
    from sluice.project import activate

    activate(config.root)
    pipeline = create_pipeline(config, local_places(config, workspace))
    run(pipeline, run_dir.name, emit, run_dir=run_dir)


def _stopped(message: str, exit_code: ExitCode) -> dict[str, Any]:
    """Returns the event of a run that ended before or between its nodes."""
    return {"event": "stopped", "message": message, "exit_code": int(exit_code)}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
