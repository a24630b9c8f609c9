"""Events of a run in a service: what the service says, less what the journal has.

A service is asked again and again; each time, the events that are new are appended to
the run's journal. They follow from the journal and the service's answer alone, so that
none is appended twice, also by two terminals or after a kill. Times are the service's.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

from runners.cloud.service import ENDED, ServiceJob, ServiceTask
from runners.cloud.spec import Command, Resolver, Spec, Task
from runners.cloud.task_event import failure_in_log
from runners.local.graph_file import PlannedNode
from runners.local.node_event import node_finished
from runners.local.run_result import NodeResult
from sluice.errors import ExitCode
from sluice.graph import GraphNode
from sluice.node_kinds import NodeKind, find_kind
from sluice.record.events import (
    Artifact,
    Event,
    Finished,
    GraphCompiled,
    NodeFailure,
    NodeFinished,
    NodeRetried,
    NodeStarted,
    Note,
    RunEnded,
    RunResumed,
    Stopped,
)
from sluice.record.run_record import NodeState
from sluice.secrets import redact

_BEGUN = ("running", "succeeded", "failed", "cancelled")
_STATES: dict[str, NodeState] = {
    "succeeded": "ran",
    "cached": "cached",
    "skipped": "skipped",
    "failed": "failed",
    "cancelled": "interrupted",
}
# Returns lines of a task's log.
ReadLog = Callable[[str], Sequence[str]]

_STOPPED = ("failed", "blocked", "not_reached", "interrupted")


def planned_nodes(spec: Spec) -> tuple[PlannedNode, ...]:
    """Returns the nodes of a compiled pipeline in order, without the exit handler."""
    nodes = []
    for task in spec.tasks:
        if task.is_exit_handler:
            continue
        kind = _kind_of(task)
        node = PlannedNode(
            id=task.id,
            kind=kind.name,
            upstream=task.upstream,
            contexts=(),
            gate=kind.gate,
            resolver=kind.resolver,
            judges_data=kind.judges_data,
            pushes=kind.pushes,
            needs={key: (made.task,) for key, made in task.artifacts.items()},
            when_skipped=f"its condition does not hold: {task.condition}"
            if task.condition
            else "",
        )
        nodes.append(node)
    return tuple(nodes)


def graph_of(spec: Spec) -> GraphCompiled:
    """Returns the event ``graph`` of a compiled pipeline."""
    return GraphCompiled(
        nodes=tuple(
            GraphNode(node.id, node.kind, node.upstream, node.gate, node.judges_data)
            for node in planned_nodes(spec)
        )
    )


def new_events(
    run_dir: Path,
    spec: Spec,
    journal: Iterable[Event],
    job: ServiceJob,
    read_log: ReadLog = lambda task: (),
) -> Iterator[Event]:
    """Yields the events of a run that its journal does not have yet, oldest first.

    Verdicts are read from the artifacts; all else is in the service's answer.

    Args:
      run_dir: the run's folder.
      spec: what was submitted.
      journal: the events so far.
      job: the run as the service has it now.
      read_log: returns the last lines of a task's log, to explain a failure.
    """
    known = _Known(journal, read_log)
    if known.ended:
        return
    nodes = planned_nodes(spec)
    tasks = {task.name: task for task in job.tasks}
    found: list[Event] = []
    for node in nodes:
        if (task := tasks.get(node.id)) and node.id not in known.finished:
            at = job.created_at or ""
            for event in _events_of(run_dir, node, task, known):
                # The service may lack a time, or have an end before the start.
                at = max(at, event.at)
                found.append(replace(event, at=at))
    found.sort(key=lambda event: event.at)
    yield from found
    if job.state not in ENDED:
        return
    yield from _unreached(nodes, known.finished, job)
    yield from _end(spec, known.finished, job)


class _Known:
    """What a journal says about a run since it was begun or resumed.

    Attributes:
      read_log: see ``new_events``.
      started: how often each node was started.
      finished: the end of each node that has ended.
      ended: whether the run has.
    """

    def __init__(self, journal: Iterable[Event], read_log: ReadLog) -> None:
        self.read_log = read_log
        self.started: Counter[str] = Counter()
        self.finished: dict[str, NodeFinished] = {}
        self.ended = False
        for event in journal:
            match event:
                case GraphCompiled() | RunResumed():
                    self.started.clear()
                    self.finished.clear()
                    self.ended = False
                case NodeStarted():
                    self.started[event.node] += 1
                case NodeFinished():
                    self.finished[event.node] = event
                case RunEnded():
                    self.ended = True


def _events_of(
    run_dir: Path, node: PlannedNode, task: ServiceTask, known: _Known
) -> Iterator[Event]:
    """Yields the new events of one node."""
    started = known.started[node.id]
    if task.state in _BEGUN:
        if not started:
            first = task.started_at or ""
            yield NodeStarted(at=first, node=node.id, attempt=1)
            started = 1
        for number, failed in enumerate(task.failed_attempts, start=1):
            if number < started:
                continue
            yield NodeRetried(
                at=failed.at,
                node=node.id,
                attempt=number,
                wait_s=0.0,
                reason=failed.reason,
            )
            yield NodeStarted(at=failed.at, node=node.id, attempt=number + 1)
    if task.state in _STATES:
        known.finished[node.id] = event = _finished(run_dir, node, task, known)
        yield event


def _finished(
    run_dir: Path, node: PlannedNode, task: ServiceTask, known: _Known
) -> NodeFinished:
    """Returns the end of one node."""
    state, reason, error = _STATES[task.state], None, None
    if state == "failed":
        error = _failure(node, task, known)
        reason = error.message.splitlines()[0]
    elif state == "interrupted":
        reason = "cancelled"
    elif state == "skipped":
        reason = node.when_skipped
        if before := _stopped_by(node, known.finished):
            return replace(_stop(node, before), at=task.ended_at or "")
    result = NodeResult(
        node.id,
        state,
        _duration_s(task),
        reason or None,
        error,
        outputs=_plain(task.outputs),
        inputs=_plain(task.inputs),
    )
    return replace(node_finished(run_dir, node, result), at=task.ended_at or "")


def _failure(node: PlannedNode, task: ServiceTask, known: _Known) -> NodeFailure:
    """Returns why a node failed; a gate's verdict is among the earlier nodes' ends."""
    refused = [
        gate["gate"]
        for event in known.finished.values()
        for gate in event.gates
        if not gate["passed"]
    ]
    if node.gate and refused:
        text = f"{node.id} has stopped the run: the {refused[-1]} gate has not passed"
        return NodeFailure(text, int(ExitCode.DATA), gate=True)
    failure = failure_in_log(node.id, known.read_log(node.id))
    if failure.message == f"{node.id} failed":
        reason = redact(task.error or "the service gives no reason")
        failure = replace(failure, message=f"{node.id} failed: {reason}")
    return failure


def _unreached(
    nodes: Sequence[PlannedNode], finished: dict[str, NodeFinished], job: ServiceJob
) -> Iterator[NodeFinished]:
    """Yields the ends of nodes that another one has stopped."""
    for node in nodes:
        before = _stopped_by(node, finished)
        if node.id in finished or before is None:
            continue
        finished[node.id] = event = _stop(node, before)
        yield replace(event, at=job.ended_at or "")


def _stopped_by(
    node: PlannedNode, finished: dict[str, NodeFinished]
) -> NodeFinished | None:
    for name in node.upstream:
        before = finished.get(name)
        # A Pusher that ran and was blocked by a gate stops no other node.
        if before and before.state in _STOPPED and not before.push:
            return before
    return None


def _stop(node: PlannedNode, before: NodeFinished) -> NodeFinished:
    """Returns the end of a node that another one has stopped."""
    by_gate = before.state == "blocked" or (before.error and before.error.gate)
    return NodeFinished(
        node=node.id,
        state="blocked" if by_gate else "not_reached",
        reason=f"stopped by {before.node}" if before.error else before.reason,
    )


def _end(
    spec: Spec, finished: dict[str, NodeFinished], job: ServiceJob
) -> Iterator[Event]:
    """Yields the last events of a run."""
    at = job.ended_at or ""
    if job.state == "cancelled":
        code, reason = int(ExitCode.INTERRUPTED), "was cancelled"
        yield RunEnded(at=at, exit_code=code, reason=reason, logs={})
        return
    handler = spec.exit_handler
    unwritten = [
        task
        for task in job.tasks
        if handler and task.name == handler.id and task.state == "failed"
    ]
    for task in unwritten:
        yield Note(at=at, text=f"{task.name}, which writes the report, failed")
    is_explained = any(event.error for event in finished.values())
    is_complete = all(task.id in finished or task == handler for task in spec.tasks)
    is_explained |= bool(unwritten) and is_complete
    if job.state == "failed" and not is_explained:
        text = f"the job failed: {job.error or 'the service gives no reason'}"
        yield Stopped(at=at, message=text, exit_code=int(ExitCode.REMOTE))
    else:
        yield Finished(at=at)
    yield RunEnded(at=at, exit_code=None, reason="has no result", logs={})


def _kind_of(task: Task) -> NodeKind:
    """Returns the kind of a task by its executor's class; by its id where unknown."""
    if isinstance(task.executor, Resolver):
        return find_kind("tfx.dsl.components.common.resolver") or NodeKind(task.id)
    args = task.executor.args if isinstance(task.executor, Command) else ()
    for flag, value in pairwise(args):
        if flag == "--executor_class_path":
            package = re.split(r"\.(?:executor|component)\.", value)[0]
            return find_kind(f"{package}.component") or NodeKind(task.id)
    return NodeKind(task.id)


def _duration_s(task: ServiceTask) -> float:
    if not (task.started_at and task.ended_at) or task.state not in _BEGUN:
        return 0.0
    start, end = map(datetime.fromisoformat, (task.started_at, task.ended_at))
    return (end - start).total_seconds()


def _plain(
    artifacts: Mapping[str, Sequence[Artifact]],
) -> dict[str, list[dict[str, Any]]]:
    return {key: [asdict(item) for item in items] for key, items in artifacts.items()}
