"""Commands to go on with, as they can be copied from the terminal."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path


def next_command(*words: str, workspace_dir: str | None = None) -> str:
    """Returns a command of ours that finds what the current one has found.

    ``sluice`` is called as it was now, and in the same workspace.

    Args:
      words: the verb and its arguments.
      workspace_dir: the ``--workspace`` option of the current command;
        ``SLUICE_WORKSPACE`` counts where there is none.
    """
    given = workspace_dir or os.environ.get("SLUICE_WORKSPACE")
    place = ["--workspace", os.path.abspath(given)] if given else []
    return shlex.join([_program(), *words, *place])


def _program() -> str:
    called = Path(sys.argv[0])
    installed = called.name == "sluice" and called.parent != Path()
    return str(called) if installed else "sluice"
