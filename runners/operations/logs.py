"""Finds, reads and follows the log of a node, with TensorFlow's output."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.config.serialize import read_stored_config
from runners.cloud.submitted_job import SubmittedJob, is_service_run
from runners.operations.find_run import FoundRun, find_run, readable_runs
from runners.operations.pipeline_request import next_command
from sluice.errors import UsageError, unknown_node
from sluice.record.run_record import RunRecord

if TYPE_CHECKING:
    from runners.vertex.client import VertexService

_POLL_S, _SERVICE_POLL_S = 0.3, 10.0
# Stands for the log of a run's start, instead of a node.
START = "start"


@dataclass(frozen=True)
class Log:
    """The log of one node in one run."""

    run: FoundRun
    node: str

    @property
    def path(self) -> Path:
        """The file, which may not exist yet while the run is in progress."""
        return self.run.run_dir / "logs" / f"{self.node}.log"

    def read(self, position: int = 0) -> bytes:
        """Returns the log so far, from a position."""
        if not self.path.exists():
            return b""
        with open(self.path, "rb") as file:
            file.seek(position)
            return file.read()

    def follow(self) -> Iterator[bytes]:
        """Yields whole lines as they are written, until the run ends."""
        position = 0
        while is_running(self.run):
            data = self.read(position)
            data = data[: data.rfind(b"\n") + 1]
            position += len(data)
            yield data
            time.sleep(_POLL_S)
        yield self.read(position)


def find_log(
    name: str, node: str = START, run_id: str | None = None, *, follow: bool = False
) -> Log:
    """Finds the log of a node.

    Args:
      name: a config's name or path.
      node: a node of the graph; ``START`` for the log of the run's start.
      run_id: see ``find_run``; None for the newest run with a log.
      follow: whether the log of a run in progress need not exist yet.

    Raises:
      UsageError: there is no such pipeline, run, node or log.
      WorkspaceError: the run's record cannot be read.
      RemoteError: the run's service refuses or does not answer.
    """
    found = find_run(name, run_id)
    if is_service_run(found.run_dir):
        return _log_of_service(found, node, follow)
    log = Log(found, node)
    if Path(node).name != node:
        raise unknown_node(node, [START, *_nodes(found)], found.run_dir)
    is_open = is_running(found)
    if run_id is None and node != START and not is_open:
        log = _newest_log(found, node) or log
    if not log.path.exists() and not (follow and is_open):
        raise _no_log(log)
    return log


@dataclass(frozen=True)
class ServiceLog(Log):
    """The log of a task in a service: its last ``LOG_LINES`` lines."""

    service: VertexService
    job: str

    def fetch(self) -> Sequence[str]:
        """Stores the log as it is now in the run's folder, and returns its lines."""
        from runners.cloud.refresh import fetch_log

        return fetch_log(self.run.run_dir, self.service, self.job, self.node)

    def follow(self) -> Iterator[bytes]:
        """Yields new lines until the run ends."""
        from runners.cloud.refresh import refresh

        seen: Sequence[str] = ()
        is_open = True
        while is_open:
            record = refresh(self.run.run_dir, self.service)
            is_open = record.status == "running"
            lines = self.fetch()
            new = _lines_after(seen, lines)
            yield "".join(f"{line}\n" for line in new).encode()
            seen = lines
            if is_open:
                time.sleep(_SERVICE_POLL_S)


def _lines_after(seen: Sequence[str], lines: Sequence[str]) -> Sequence[str]:
    """Returns what has been added to the end of a log of bounded length."""
    for start in range(len(seen)):
        if lines[: len(seen) - start] == seen[start:]:
            return lines[len(seen) - start :]
    return lines


def _log_of_service(found: FoundRun, node: str, follow: bool) -> Log:
    """Returns the log of a task, which is fetched."""
    from runners.vertex.client import service_of

    run_id = found.record.run_id
    job = SubmittedJob.load(found.run_dir)
    config = read_stored_config(found.run_dir / "config.json")
    log = ServiceLog(found, node, service_of(config), job.name)
    if node not in _nodes(found):
        raise unknown_node(node, _nodes(found), f"run {run_id} in the service")
    if not (log.fetch() or log.path.exists() or follow):
        raise _no_log(log)
    return log


def is_running(found: FoundRun) -> bool:
    """Whether a run is in progress, by its record as it is now and by the lock."""
    is_open = RunRecord.load(found.run_dir).status == "running"
    return is_open and found.workspace.is_running()


def _newest_log(found: FoundRun, node: str) -> Log | None:
    """Returns the log of the newest run in which a node was not cached."""
    for record in readable_runs(found.workspace):
        log = Log(FoundRun(found.workspace, record), node)
        states = {item.id: item.state for item in record.nodes}
        if log.path.exists() and states.get(node) != "cached":
            return log
    return None


def _nodes(found: FoundRun) -> list[str]:
    return [item.id for item in found.record.nodes]


def _no_log(log: Log) -> UsageError:
    record = log.run.record
    states = {node.id: node.state for node in record.nodes}
    if log.node not in (START, *states):
        return unknown_node(log.node, [START, *states], log.run.run_dir)
    state = states.get(log.node, record.status).replace("_", " ")
    return UsageError(
        f"{log.node} has no log in run {record.run_id}: {state}",
        where=log.path,
        hint=next_command("runs", record.pipeline),
    )
