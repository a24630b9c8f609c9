"""Scheduler: starts nodes in topological order, in parallel, and records their results.

Each node runs in its own process. A failed node stops only the nodes that depend on it.
TFX is not imported here: the result of a node is read from the report of its process,
or, if that was killed, from ML Metadata.
"""

from __future__ import annotations

import signal
import time
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from runners.engine import Plan
from runners.local.follow_progress import FollowProgress, OnProgress, progress_file
from runners.local.graph_file import GRAPH_FILE, GraphFile, PlannedNode
from runners.local.job_result import forget_result, read_result
from runners.local.limit_memory import LimitMemory
from runners.local.node_event import node_finished
from runners.local.processes.job import Job
from runners.local.processes.process_pool import POLL_S, ProcessPool
from runners.local.read_node_result import read_node_result
from runners.local.run_result import (
    NOT_ASKED_FOR,
    NodeResult,
    OnEvent,
    RunResult,
)
from runners.local.stop_request import StopRequest
from runners.metadata.read_metadata import open_store
from sluice import secrets
from sluice.errors import ExitCode, NodeError, WorkspaceError
from sluice.process_tree import describe_end
from sluice.progress import PROGRESS_FILE
from sluice.record.events import NodeFailure, NodeRetried, NodeStarted, Stopping
from sluice.record.journal import Journal
from sluice.workspace import check_not_deleted

_TAIL_LINES = 8
# How Python's fault handler begins; the stack of each thread follows.
_CRASH = "Fatal Python error:"
_CRASHED_THREAD = "Current thread"
_STOPPED = ("failed", "blocked", "not_reached", "interrupted")


class Scheduler:
    """Runs the nodes of one prepared run."""

    def __init__(
        self,
        plan: Plan,
        graph: GraphFile,
        process_pool: ProcessPool | None,
        callbacks: RunCallbacks,
        *,
        finished: Mapping[str, NodeResult],
        environment: Mapping[str, str],
        nodes: Collection[str] | None = None,
        may_start: Collection[str] | None = None,
    ) -> None:
        """Prepares to run nodes; starts none.

        Nodes that are ``finished`` do not run again. Only ``nodes`` are considered and
        only ``may_start`` started, None for all; if that is empty, there need be no
        ``process_pool``.
        """
        self._plan = plan
        self._run_dir = plan.run_dir
        self._graph = graph
        self._pool = process_pool
        self._callbacks = callbacks
        self._environment = environment
        self._may_be_started = may_start
        self._progress = FollowProgress(plan.run_dir, callbacks.on_progress)
        self._memory = LimitMemory(
            plan.memory, lambda node_id: self._process_pool.pid_of(node_id)
        )
        self._nodes = [
            node for node in graph.nodes if nodes is None or node.id in nodes
        ]
        self._results: dict[str, NodeResult] = dict(finished)
        self._running: dict[str, float] = {}
        # Of this run before it was resumed.
        self._earlier = _attempts(plan.run_dir) if plan.resumed else Counter[str]()
        self._attempts = Counter(self._earlier)
        self._log_starts: dict[str, int] = {}
        self._due: dict[str, float] = {}

    @property
    def _process_pool(self) -> ProcessPool:
        assert self._pool is not None  # Else ``may_start`` is empty.
        return self._pool

    def run(self) -> RunResult:
        """Runs until every node has ended or cannot be reached.

        Raises:
          NodeError: the zygote has ended unexpectedly.
          WorkspaceError: the run's folder was deleted.
        """
        try:
            self._run_nodes()
        except NodeError:
            # The zygote has ended, and its children with it.
            for node_id in list(self._running):
                self._end({"ended": node_id, "status": None, "peak_memory_bytes": None})
            raise
        results = [self._results.get(node.id) for node in self._graph.nodes]
        return RunResult(self._run_dir.name, tuple(filter(None, results)))

    def _run_nodes(self) -> None:
        stopping = killed = False
        while any(node.id not in self._results for node in self._nodes):
            stop = self._callbacks.stop
            if stop.signal is None:
                self._start_ready_nodes()
            elif not stopping:
                stopping = True
                self._stop_nodes()
            elif stop.urgent and not killed:
                killed = True
                for node_id in self._running:
                    self._process_pool.signal(node_id, signal.SIGKILL)
            if not self._running and (stopping or not self._due):
                break
            for message in self._process_pool.messages(POLL_S):
                if message.get("started") in self._running:
                    # The zygote may have imported TFX first.
                    self._running[message["started"]] = time.monotonic()
                elif "ended" in message:
                    self._end(message)
            self._progress.poll()
            self._memory.poll(self._running)
            self._callbacks.on_tick()

    def _stop_nodes(self) -> None:
        stop = self._callbacks.stop
        assert stop.signal is not None
        nodes = list(self._running)
        self._callbacks.on_event(Stopping(signal=stop.signal.name, nodes=tuple(nodes)))
        for node_id in nodes:
            self._process_pool.signal(node_id, signal.SIGTERM)

    def _start_ready_nodes(self) -> None:
        for node in self._nodes:
            if node.id in self._results or node.id in self._running:
                continue
            upstream = [self._results.get(name) for name in node.upstream]
            if stopped := _stopped_by_upstream(node, upstream):
                self._record_end(stopped)
            elif None in upstream:
                continue
            elif node.action != "run":
                self._record_end(self._unselected_result(node))
            elif missing := self._skipped_producers(node):
                reason = f"upstream {missing} was skipped"
                self._record_end(NodeResult(node.id, "skipped", reason=reason))
            elif self._may_start(node):
                self._start(node)

    def _skipped_producers(self, node: PlannedNode) -> str | None:
        """Returns the skipped producers of a required input, None if there are none."""
        for makers in node.needs.values():
            if all(self._results[maker].state == "skipped" for maker in makers):
                return " or ".join(makers)
        return None

    def _may_start(self, node: PlannedNode) -> bool:
        if self._may_be_started is not None and node.id not in self._may_be_started:
            return False
        free = len(self._running) < self._plan.workers
        return free and self._due.get(node.id, 0.0) <= time.monotonic()

    def _start(self, node: PlannedNode) -> None:
        self._due.pop(node.id, None)
        self._attempts[node.id] += 1
        attempt = self._attempts[node.id]
        forget_result(self._run_dir, node.id)
        self._callbacks.on_event(NodeStarted(node=node.id, attempt=attempt))
        self._running[node.id] = time.monotonic()
        self._progress.begin(node.id)
        log = self._log_of(node.id)
        self._log_starts[node.id] = log.stat().st_size if log.exists() else 0
        use_cache = self._plan.use_cache and node.id not in self._plan.forced
        job = Job(
            function="runners.local.node_job:run_node",
            arguments={
                "run_dir": str(self._run_dir),
                "node_id": node.id,
                "use_cache": use_cache,
                # Later attempts resume the training that the first one began.
                "from_scratch": not use_cache and attempt == 1,
            },
            log=str(log),
            environment={
                **self._environment,
                PROGRESS_FILE: str(progress_file(self._run_dir, node.id)),
            },
        )
        self._process_pool.start(node.id, job)

    def _end(self, message: dict[str, Any]) -> None:
        node_id, peak = message["ended"], message["peak_memory_bytes"]
        if node_id not in self._running:
            return
        check_not_deleted(self._run_dir / GRAPH_FILE)
        self._progress.end(node_id)
        duration_s = time.monotonic() - self._running.pop(node_id)
        exceeded = self._memory.take(node_id)
        secrets.redact_file(self._log_of(node_id))
        node = self._graph.node(node_id)
        facts = read_result(self._run_dir, node_id)
        if facts is None:
            end = exceeded or f"{node_id} {describe_end(message['status'], peak)}"
            result = self._result_without_report(
                node, str(end), message["status"], duration_s
            )
        else:
            result = result_of(facts)
        if result.state == "failed" and self._callbacks.stop.signal:
            reason = self._callbacks.stop.reason
            result = replace(result, state="interrupted", reason=reason, error=None)
        result = replace(result, duration_s=duration_s, peak_memory_bytes=peak)
        if not self._retry(result):
            self._record_end(result, facts)

    def _result_without_report(
        self, node: PlannedNode, text: str, status: int | None, duration_s: float
    ) -> NodeResult:
        """Returns the result of a node whose process wrote no report."""
        stopping = self._callbacks.stop.signal is not None or status is None
        reason = text.splitlines()[0]
        try:
            with open_store(self._graph.connection_config()) as store:
                result = read_node_result(
                    store, node, duration_s, None, stopped=stopping
                )
            if result.state in ("ran", "cached"):
                # It was killed after publishing its outputs.
                return result
        except WorkspaceError as unread:
            text += f"; {unread}"
        if stopping:
            reason = self._callbacks.stop.reason or reason
            return NodeResult(node.id, "interrupted", reason=reason)
        tail = _tail(self._log_of(node.id), self._log_starts[node.id])
        error = NodeFailure(text, int(ExitCode.NODE), log_tail=tail)
        return NodeResult(node.id, "failed", reason=reason, error=error)

    def _retry(self, result: NodeResult) -> bool:
        error, attempt = result.error, self._attempts[result.node]
        started = attempt - self._earlier[result.node]
        if (
            not error
            or not error.transient
            or error.gate
            or self._callbacks.stop.signal
        ):
            return False
        if started > self._plan.retries.of(result.node):
            return False
        wait_s = self._plan.retries.wait_s(started)
        self._due[result.node] = time.monotonic() + wait_s
        self._callbacks.on_event(
            NodeRetried(
                node=result.node, attempt=attempt, wait_s=wait_s, reason=result.reason
            )
        )
        return True

    def _unselected_result(self, node: PlannedNode) -> NodeResult:
        """Returns the result of a node outside the selected part of the graph."""
        if node.action == "reuse":
            with open_store(self._graph.connection_config()) as store:
                found = read_node_result(store, node, 0.0, None)
            if found.state in ("ran", "cached"):
                reason = f"taken from run {self._graph.base_run_id}"
                return replace(found, state="cached", reason=reason)
        return NodeResult(node.id, "skipped", reason=NOT_ASKED_FOR)

    def _record_end(
        self, result: NodeResult, facts: dict[str, Any] | None = None
    ) -> None:
        self._results[result.node] = result
        node = self._graph.node(result.node)
        self._callbacks.on_event(node_finished(self._run_dir, node, result, facts))

    def _log_of(self, node_id: str) -> Path:
        return self._run_dir / "logs" / f"{node_id}.log"


@dataclass(frozen=True)
class RunCallbacks:
    """Callbacks of a run in progress, and the request to stop it.

    Unlike ``runners.engine.Observer`` they get no record.

    Attributes:
      on_event: called with each event, see ``sluice.record.events``.
      on_progress: called with the node and each progress report.
      on_tick: called a few times per second.
      stop: set by a signal.
    """

    on_event: OnEvent
    on_progress: OnProgress = lambda node, facts: None
    on_tick: Any = lambda: None
    stop: StopRequest = field(default_factory=StopRequest)


def _attempts(run_dir: Path) -> Counter[str]:
    """Returns how often each node was started in a run."""
    events = Journal(run_dir).events()
    return Counter(event.node for event in events if isinstance(event, NodeStarted))


def result_of(facts: dict[str, Any]) -> NodeResult:
    """Returns the result in the report of a node's process."""
    return TypeAdapter(NodeResult).validate_python(facts)


def _stopped_by_upstream(
    node: PlannedNode, upstream: list[NodeResult | None]
) -> NodeResult | None:
    """Returns the result of a node that an upstream node stops, None if none does."""
    for before in upstream:
        if before is None or before.state not in _STOPPED:
            continue
        unresolved = before.error is not None and before.error.unresolved
        if unresolved and before.node in node.optional:
            continue
        by_gate = before.state == "blocked" or (before.error and before.error.gate)
        return NodeResult(
            node.id,
            "blocked" if by_gate else "not_reached",
            reason=f"stopped by {before.node}" if before.error else before.reason,
        )
    return None


def _tail(log: Path, start: int) -> tuple[str, ...]:
    """Returns the last lines of a log, or those about the thread that crashed.

    Args:
      log: the file.
      start: the offset at which the process began to write.
    """
    try:
        data = log.read_bytes()[start:]
    except FileNotFoundError:
        return ()
    lines = data.decode(errors="replace").splitlines()
    crash = [line for line in lines if line.startswith(_CRASH)]
    if not crash:
        return tuple(lines[-_TAIL_LINES:])
    # The stacks of other threads, such as those of servers, are printed before it.
    rest = lines[lines.index(crash[0]) + 1 :]
    while rest and not rest[0].startswith(_CRASHED_THREAD):
        rest.pop(0)
    return (crash[0], *rest[: _TAIL_LINES - 1])
