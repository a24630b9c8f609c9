"""``sluice logs NAME NODE``: all that a node has printed, TensorFlow's too."""

from __future__ import annotations

import time
from pathlib import Path

import click

from runners.cli.next_command import next_command
from runners.cli.options import json_option, workspace_option
from runners.cli.say import say_json, say_output, say_warning
from runners.operations.find_run import FoundRun, find_run, load_run, readable_runs
from sluice.errors import UsageError, unknown_node

_POLL_S = 0.3
START = "start"


@click.command()
@click.argument("name")
@click.argument("node", default=START)
@click.option("run_id", "--run", metavar="ID", help="Which run; default: the last.")
@click.option("--follow", "-f", is_flag=True, help="Go on until the run has ended.")
@workspace_option
@json_option
def logs(
    name: str,
    node: str,
    run_id: str | None,
    follow: bool,
    workspace_dir: str | None,
    as_json: bool,
) -> None:
    """Print the log of NODE in a run of NAME; without NODE, how the run started.

    With --json: the log's path and its lines, in one object.
    """
    found = find_run(name, workspace_dir, run_id=run_id, warn=say_warning)
    if Path(node).name != node:
        raise UsageError(
            f"{node!r} is a path, not a node",
            where=found.run_dir,
            expected="one of " + ", ".join([START, *_nodes(found)]),
        )
    if run_id is None and node != START and not _is_running(found):
        found = _newest_with_log(found, node)
    path = found.run_dir / "logs" / f"{node}.log"
    if not path.exists() and not (follow and _is_running(found)):
        _refuse(found, node, path)
    if as_json:
        lines = path.read_text(errors="replace").splitlines() if path.exists() else []
        document = {
            "schema_version": 1,
            "run_id": found.record.run_id,
            "node": node,
            "log": str(path),
            "lines": lines,
        }
        say_json(document)
        return
    position = 0
    while follow and _is_running(found):
        position = _print_from(path, position, to_the_end=False)
        time.sleep(_POLL_S)
    _print_from(path, position)


def _newest_with_log(found: FoundRun, node: str) -> FoundRun:
    """Returns the newest run in which the node has a log and was not only cached."""
    workspace = found.workspace
    for record in readable_runs(workspace, say_warning):
        log = workspace.run_dir(record.run_id) / "logs" / f"{node}.log"
        states = {item.id: item.state for item in record.nodes}
        if log.exists() and states.get(node) != "cached":
            return FoundRun(workspace, record)
    return found


def _is_running(found: FoundRun) -> bool:
    record = load_run(found.workspace, found.record.run_id)
    return record.status == "running" and found.workspace.is_running()


def _nodes(found: FoundRun) -> list[str]:
    return [item.id for item in found.record.nodes]


def _refuse(found: FoundRun, node: str, path: Path) -> None:
    known = sorted(item.stem for item in path.parent.glob("*.log"))
    if node not in _nodes(found):
        raise unknown_node(node, [START, *_nodes(found)], found.run_dir)
    raise UsageError(
        f"{node} has no log in run {found.record.run_id}: "
        + found.record.node(node).state.replace("_", " "),
        where=path,
        expected="one of " + ", ".join(known) if known else None,
        hint=next_command("runs", found.record.pipeline),
    )


def _print_from(path: Path, position: int, *, to_the_end: bool = True) -> int:
    """Prints what follows ``position`` (bytes) and returns the position after it.

    Args:
      path: the log, which need not be there yet.
      position: where to begin.
      to_the_end: whether a last line that has not ended is printed as well.
    """
    if not path.exists():
        return position
    with open(path, "rb") as file:
        file.seek(position)
        data = file.read()
    if not to_the_end:
        data = data[: data.rfind(b"\n") + 1]
    say_output(data.decode(errors="backslashreplace"))
    return position + len(data)
