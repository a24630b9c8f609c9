"""Job of one process: a function, its arguments, and its environment."""

from __future__ import annotations

import faulthandler
import importlib
import json
import os
import random
import sys
import traceback
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TextIO

from sluice import interrupt
from sluice.process_tree import die_with

# Set in every process of a run.
INSIDE_JOB = "SLUICE_INSIDE_JOB"


@dataclass(frozen=True)
class Job:
    """A function call in its own process.

    Attributes:
      function: ``module:function``; imported in the process that runs it.
      arguments: JSON values, by name.
      log: the file to which the process' output is appended.
      environment: variables added to those of the parent.
    """

    function: str
    arguments: dict[str, Any]
    log: str
    environment: dict[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Returns the JSON form."""
        return asdict(self)


def main(arguments: list[str]) -> None:
    """Runs one job in a fresh interpreter, in the mode ``spawn``.

    Args:
      arguments: the pid of the parent, and the job as JSON.
    """
    die_with(int(arguments[0]))
    os._exit(run_job(Job(**json.loads(arguments[1]))))


def run_job(job: Job) -> int:
    """Runs a job in this process and returns the exit status.

    The function reports through files; the status only says whether it returned.
    """
    log = Path(job.log)
    log.parent.mkdir(parents=True, exist_ok=True)
    with open(log, "ab", buffering=0) as file:
        redirect_output(file.fileno())
    faulthandler.enable(file=2)
    os.environ.update(job.environment)
    os.environ[INSIDE_JOB] = "1"
    # Beam parses sys.argv.
    sys.argv = sys.argv[:1]
    _reseed()
    status = 0
    try:
        module, _, name = job.function.partition(":")
        getattr(importlib.import_module(module), name)(**job.arguments)
    except interrupt.Interrupted as asked:
        os.write(2, f"{asked}\n".encode())
        status = 1
    except BaseException:
        os.write(2, traceback.format_exc().encode())
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    return status


def redirect_output(descriptor: int) -> None:
    """Sends the descriptors 1 and 2 to a file, since native code writes to them too.

    Standard input is empty then.
    """
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    # Line by line, so that what was printed before a crash is there; and new, since
    # the inherited ones may hold text of the parent, or be something else altogether.
    sys.stdout = _text_file(1)
    sys.stderr = _text_file(2)


def _text_file(descriptor: int) -> TextIO:
    return open(
        descriptor,
        "w",
        buffering=1,
        encoding="utf-8",
        errors="backslashreplace",
        closefd=False,
    )


def _reseed() -> None:
    """Seeds the random numbers of a forked process anew."""
    random.seed()
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()
