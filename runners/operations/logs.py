"""Operation: reads or follows the log of a node, with TensorFlow's output."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runners.cloud.service import Service
from runners.cloud.submitted_job import SubmittedJob, is_service_run
from runners.operations.find_run import (
    FoundRun,
    Warn,
    find_run,
    ignore,
    readable_runs,
)
from runners.operations.pipeline_request import next_command
from runners.operations.service_runs import service_of
from sluice.errors import UsageError, unknown_node
from sluice.record.load_record import load_record

_POLL_S, _SERVICE_POLL_S = 0.3, 10.0
START = "start"


@dataclass(frozen=True, kw_only=True)
class LogsRequest:
    """The log to read.

    Attributes:
      name: a config's name or path.
      node: a node of the graph; ``START`` for the log of the run's start.
      run_id: the id of a run, or its beginning; None for the newest run with a log.
      follow: whether to wait for a log that does not exist yet.
      workspace_dir: the folder that holds one workspace per pipeline.
    """

    name: str
    node: str = START
    run_id: str | None = None
    follow: bool = False
    workspace_dir: str | None = None


@dataclass(frozen=True)
class Log:
    """The log of one node in one run."""

    run: FoundRun
    node: str

    @property
    def path(self) -> Path:
        """The file, which may not exist yet while the run is in progress."""
        return self.run.run_dir / "logs" / f"{self.node}.log"

    def read(self) -> Iterator[bytes]:
        """Yields the log so far."""
        yield self._read_from(0)

    def follow(self) -> Iterator[bytes]:
        """Yields whole lines as they are written, until the run ends."""
        position = 0
        while is_running(self.run):
            data = self._read_from(position)
            data = data[: data.rfind(b"\n") + 1]
            position += len(data)
            yield data
            time.sleep(_POLL_S)
        yield self._read_from(position)

    def _read_from(self, position: int) -> bytes:
        if not self.path.exists():
            return b""
        with open(self.path, "rb") as file:
            file.seek(position)
            return file.read()

    def to_dict(self) -> dict[str, Any]:
        """Returns the JSON form, with all lines so far."""
        text = b"".join(self.read()).decode(errors="replace")
        return {
            "schema_version": 1,
            "run_id": self.run.record.run_id,
            "node": self.node,
            "log": str(self.path),
            "lines": text.splitlines(),
        }


def logs(request: LogsRequest, warn: Warn = ignore) -> Log:
    """Finds the log of a node.

    Raises:
      UsageError: there is no such pipeline, run, node or log.
      WorkspaceError: the run's record cannot be read.
      RemoteError: the run's service refuses or does not answer.
    """
    where, run_id, node = request.workspace_dir, request.run_id, request.node
    found = find_run(request.name, where, run_id=run_id, warn=warn)
    if is_service_run(found.run_dir):
        return _log_of_service(found, request)
    if Path(node).name != node:
        raise UsageError(
            f"{node!r} is a path, not a node",
            where=found.run_dir,
            expected="one of " + ", ".join([START, *_nodes(found)]),
        )
    if run_id is None and node != START and not is_running(found):
        found = _newest_with_log(found, node, warn)
    log = Log(found, node)
    if not log.path.exists() and not (request.follow and is_running(found)):
        raise _no_log(log, request)
    return log


@dataclass(frozen=True)
class ServiceLog(Log):
    """The log of a task in a service: its last ``LOG_LINES`` lines."""

    service: Service
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


def _log_of_service(found: FoundRun, request: LogsRequest) -> Log:
    """Returns the log of a task, which is fetched.

    Raises:
      UsageError: there is no such task, or its log is empty.
    """
    node, known, run_id = request.node, _nodes(found), found.record.run_id
    job = SubmittedJob.load(found.run_dir)
    if job.name is None:
        raise UsageError(
            f"it is not known yet whether the service has taken run {run_id}",
            where=found.run_dir,
            hint=next_command(
                "status", request.name, workspace_dir=request.workspace_dir
            ),
        )
    if node not in known:
        raise unknown_node(node, known, f"run {run_id} in the service")
    log = ServiceLog(found, node, service_of(found.run_dir), job.name)
    if not (log.fetch() or log.path.exists() or request.follow):
        raise _no_log(log, request)
    return log


def is_running(found: FoundRun) -> bool:
    """Whether a run is in progress, by its record as it is now and by the lock."""
    is_open = load_record(found.run_dir).status == "running"
    return is_open and found.workspace.is_running()


def _newest_with_log(found: FoundRun, node: str, warn: Warn) -> FoundRun:
    """Returns the newest run that has a log of the node, which was not cached."""
    workspace = found.workspace
    for record in readable_runs(workspace, warn):
        log = workspace.run_dir(record.run_id) / "logs" / f"{node}.log"
        states = {item.id: item.state for item in record.nodes}
        if log.exists() and states.get(node) != "cached":
            return FoundRun(workspace, record)
    return found


def _nodes(found: FoundRun) -> list[str]:
    return [item.id for item in found.record.nodes]


def _no_log(log: Log, request: LogsRequest) -> UsageError:
    found = log.run
    known = sorted(item.stem for item in log.path.parent.glob("*.log"))
    states = {node.id: node.state for node in found.record.nodes}
    if log.node not in (START, *states):
        return unknown_node(log.node, [START, *states], found.run_dir)
    state = states.get(log.node, found.record.status)
    return UsageError(
        f"{log.node} has no log in run {found.record.run_id}: "
        + state.replace("_", " "),
        where=log.path,
        expected="one of " + ", ".join(known) if known else None,
        hint=next_command(
            "runs", found.record.pipeline, workspace_dir=request.workspace_dir
        ),
    )
