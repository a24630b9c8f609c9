"""Runs ``sluice`` in a fork of the tests' zygote, which has imported TFX.

The runner is a separate process, as when a user starts it, and forks its own zygote, as
a script that has imported TFX does. Both can be signalled and killed. Only the import
of TFX is saved: 10 to 20 seconds per command.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
from functools import partial

from runners.local.processes.job import INSIDE_JOB, redirect_output


def main(
    arguments: list[str], cwd: str, out: str, err: str, environment: dict[str, str]
) -> None:
    """Runs a command and ends the process with its exit code.

    Args:
      arguments: of ``sluice``.
      cwd: its working directory.
      out: file for its standard output.
      err: file for its standard error.
      environment: variables besides those of this process.
    """
    with open(out, "ab") as out_file, open(err, "ab") as err_file:
        redirect_output(out_file.fileno())
        os.dup2(err_file.fileno(), 2)
    os.environ.pop(INSIDE_JOB, None)
    os.environ.update(environment)
    os.chdir(cwd)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv = ["sluice", *arguments]
    code = 1
    try:
        from runners.cli import main as front_door
        from runners.local import engine, query_job
        from runners.local.processes.process_pool import ProcessPool, can_fork

        assert can_fork()
        forked = partial(ProcessPool, from_here=True)
        for module in (engine, query_job):
            vars(module)["ProcessPool"] = forked
        front_door.main(arguments)
    except SystemExit as end:
        code = int(end.code or 0)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
