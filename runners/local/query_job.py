"""Runs a job that answers a query about a pipeline, such as its graph."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pipeline.config.config import Config
from pipeline.config.serialize import write_stored_config
from runners.local.job_environment import JobEnvironment
from runners.local.job_result import read_result
from runners.local.processes.job import Job
from runners.local.processes.process_pool import ProcessPool
from sluice.errors import ExitCode, NodeError, UsageError
from sluice.process_tree import describe_end
from sluice.workspace import new_run_id


@contextmanager
def temporary_run_dir(config: Config) -> Iterator[Path]:
    """Yields the folder of a run that executes no node; it is deleted afterwards."""
    with tempfile.TemporaryDirectory(prefix="sluice-query-") as folder:
        run_dir = Path(folder) / new_run_id()
        run_dir.mkdir()
        write_stored_config(config, run_dir / "config.json")
        JobEnvironment(project_root=str(config.root)).save(run_dir)
        yield run_dir


def run_query_job(job: Job, run_dir: Path, name: str, *, cwd: Path) -> dict[str, Any]:
    """Runs a job in a process that imports TFX, and returns its result ``name``.

    Raises:
      UsageError: the config or an argument is wrong.
      NodeError: the job failed otherwise.
    """
    with ProcessPool(run_dir / "logs" / "start.log", cwd=cwd) as process_pool:
        ended = process_pool.run(name, job)
    assert ended is not None
    result = read_result(run_dir, name)
    if result is None:
        log = Path(job.log)
        text = log.read_text(errors="replace") if log.exists() else ""
        raise NodeError(
            f"the process of the query {describe_end(ended['status'])}",
            examples=text.splitlines()[-5:],
        )
    if error := result["error"]:
        usage = error["exit_code"] == ExitCode.USAGE
        raise (UsageError if usage else NodeError).from_text(error["message"])
    return result
