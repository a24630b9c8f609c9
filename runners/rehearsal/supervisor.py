"""Runs one command, and ends all of its processes with it or with the parent.

The parent holds this process's standard input open: ``t`` asks the command to stop, and
the end of the input, as when the parent is killed, kills whatever it has started.
"""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from sluice.process_tree import adopt_orphans, kill_descendants

POLL_S = 0.05
_KB = 1024


def main() -> None:
    """Runs ``supervisor FOLDER RESULT_FILE CONTAINER COMMAND...`` in the folder.

    The name of a Docker container that the command runs is empty where there is none.
    """
    folder, result_file, container, *command = sys.argv[1:]
    adopt_orphans()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    try:
        child = subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=_default_signals,
        )
    except OSError as error:
        print(f"{command[0]}: {error.strerror}", file=sys.stderr, flush=True)
        _report(result_file, 127)
        return
    while child.poll() is None:
        if not select.select([0], [], [], POLL_S)[0]:
            continue
        if os.read(0, 1) != b"t":
            kill_descendants()
            if container:
                # It outlives Docker's client.
                kill = ["docker", "kill", container]
                subprocess.run(kill, capture_output=True, check=False)
            return
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGTERM)
    kill_descendants()
    _report(result_file, child.returncode)


def _default_signals() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def _report(result_file: str, status: int) -> None:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    peak = usage.ru_maxrss * _KB
    result = {"status": status, "peak_memory_bytes": peak}
    # The parent reads it when this process has ended.
    Path(result_file).write_text(json.dumps(result), encoding="utf-8")


if __name__ == "__main__":
    main()
