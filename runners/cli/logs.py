"""``sluice logs NAME NODE``: the log of a node, with TensorFlow's output."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from pipeline.config.serialize import read_stored_config
from runners.cli.echo import echo_output
from runners.cli.options import Result, verb
from runners.cloud.submitted_job import is_service_run, job_of
from runners.operations.find_run import FoundRun, find_run, readable_runs
from sluice.errors import UsageError, unknown_node
from sluice.record.run_record import RunRecord

# Stands for the log of a run's start, instead of a node.
START = "start"


@verb()
@click.argument("name")
@click.argument("node", default=START)
@click.option(
    "run_id", "--run", metavar="ID", help="The run; default: the last one with a log."
)
def command(name: str, node: str, run_id: str | None) -> Result:
    """Print the log of NODE in a run of NAME; without NODE, that of the run's start.

    With --json, one object with the log's path and its lines.
    """
    run, log = find_log(name, node, run_id)
    text = log.read_bytes()
    facts = {
        "run_id": run.record.run_id,
        "node": node,
        "log": str(log),
        "lines": text.decode(errors="replace").splitlines(),
    }
    shown = text.decode(errors="backslashreplace")
    return Result(facts, partial(echo_output, shown))


def find_log(
    name: str, node: str = START, run_id: str | None = None
) -> tuple[FoundRun, Path]:
    """Finds the log of a node.

    Args:
      name: a config's name or path.
      node: a node of the graph; ``START`` for the log of the run's start.
      run_id: see ``find_run``; None for the newest run with a log.

    Raises:
      UsageError: there is no such pipeline, run, node or log.
      WorkspaceError: the run's record cannot be read.
      RemoteError: the run's service refuses or does not answer.
    """
    run = find_run(name, run_id)
    log, states = _log_of(run, node), _states(run.record)
    if is_service_run(run.run_dir):
        _fetch(run.run_dir, node)
    elif run_id is None and node != START and not _is_running(run):
        # The newest run in which the node was not cached.
        for record in readable_runs(run.workspace):
            older = FoundRun(run.workspace, record)
            state = _states(record).get(node, "cached")
            if state != "cached" and _log_of(older, node).exists():
                return older, _log_of(older, node)
    if node not in states:
        raise unknown_node(node, list(states), run.run_dir)
    if log.exists():
        return run, log
    state = states[node].replace("_", " ")
    raise UsageError(
        f"{node} has no log in run {run.record.run_id}: {state}", where=log
    )


def _log_of(found: FoundRun, node: str) -> Path:
    return found.run_dir / "logs" / f"{node}.log"


def _is_running(found: FoundRun) -> bool:
    """Whether a run of this machine is in progress, by its record as it is now."""
    is_open = RunRecord.load(found.run_dir).status == "running"
    return is_open and found.workspace.is_running()


def _states(record: RunRecord) -> dict[str, str]:
    return {START: record.status, **{item.id: item.state for item in record.nodes}}


def _fetch(run_dir: Path, node: str) -> None:
    """Stores the last lines of a task's log in the run's folder."""
    from runners.cloud.refresh import fetch_log
    from runners.cloud.vertex_client import service_of

    service = service_of(read_stored_config(run_dir / "config.json"))
    fetch_log(run_dir, service, job_of(run_dir), node)
