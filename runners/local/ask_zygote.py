"""Runs one job that answers a question about a pipeline, such as what its graph is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from runners.local.job import Job
from runners.local.job_result import read_result
from runners.local.nursery import Nursery, describe_end
from runners.local.scheduler import POLL_S
from sluice.errors import ExitCode, NodeError, UsageError


def ask_zygote(job: Job, run_dir: Path, name: str, *, cwd: Path) -> dict[str, Any]:
    """Returns the result that a job writes under ``name``; imports TFX for it.

    Raises:
      UsageError: the job found the config or the question to be wrong.
      NodeError: it failed otherwise.
    """
    with Nursery(run_dir / "logs" / "start.log", cwd=cwd) as nursery:
        nursery.start(name, job)
        ended: dict[str, Any] | None = None
        while ended is None:
            for message in nursery.messages(POLL_S):
                if message.get("ended") == name:
                    ended = message
    result = read_result(run_dir, name)
    if result is None:
        log = Path(job.log)
        text = log.read_text(errors="replace") if log.exists() else ""
        raise NodeError(
            f"the process that should answer {describe_end(ended['status'])}",
            examples=text.splitlines()[-5:],
        )
    if error := result["error"]:
        usage = error["exit_code"] == ExitCode.USAGE
        raise (UsageError if usage else NodeError)(error["message"])
    return result
