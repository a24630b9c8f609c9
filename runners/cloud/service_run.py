"""The record of a run in a service: it follows from the service's job alone.

Vertex AI tells the whole state of a job each time it is asked, so that nodes and
results of the record are set anew. Times are the service's. Why a task failed is read
from the end of its log.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from runners.cloud.spec import Task, read_spec
from runners.local.node_end import add_results
from sluice import errors
from sluice.errors import ExitCode, GateError, SluiceError
from sluice.mlmd_items import Artifact
from sluice.node_kinds import NEW_DATA
from sluice.record.parts import (
    FINISHED,
    Artifacts,
    ErrorRecord,
    NodeEnd,
    NodeState,
    PushRecord,
)
from sluice.record.run_record import RunRecord
from sluice.secrets import redact

# A job or a task in the JSON form of the service's proto.
Json = Mapping[str, Any]
# Returns the last lines of a task's log.
ReadLog = Callable[[str], Sequence[str]]
# Adds what only the machine beside the artifacts knows to the end of a task.
Describe = Callable[[Task, NodeEnd], None]

_ENDED = ("SUCCEEDED", "FAILED", "CANCELLED")
_RUNNING = ("RUNNING", "CANCEL_PENDING", "CANCELLING")
# SKIPPED is "due to cache hit", NOT_TRIGGERED "its trigger policy is not satisfied".
_STATES: dict[str, NodeState] = {
    "SUCCEEDED": "ran",
    "SKIPPED": "cached",
    "NOT_TRIGGERED": "skipped",
    "FAILED": "failed",
    "CANCELLED": "interrupted",
}


def state_of(job: Json) -> str:
    """Returns the state of a job, such as ``RUNNING``."""
    return job.get("state", "").removeprefix("PIPELINE_STATE_")


def record_of(
    record: RunRecord,
    job: Json,
    read_log: ReadLog,
    describe: Describe = lambda task, end: None,
) -> None:
    """Sets the nodes and results of a run to those of its job; ends it if that has.

    Args:
      record: of the run.
      job: as the service has it now, with its spec.
      read_log: to explain a failure.
      describe: called with the end of each task that has ended.
    """
    spec, has_ended = read_spec(job), state_of(job) in _ENDED
    record.nodes, record.gates, record.artifacts = spec.graph(), [], {}
    record.pushes = [PushRecord(push.destination) for push in record.pushes]
    record.error = None
    details = job.get("jobDetail", {}).get("taskDetails", ())
    by_name = {detail["taskName"]: detail for detail in details}
    for task in spec.nodes:
        node, detail = record.node(task.id), by_name.get(task.id, {})
        state = _STATES.get(detail.get("state", ""))
        stopped = has_ended and record.stopped_by_upstream(node)
        if detail.get("state") in _RUNNING or state in ("ran", "failed", "interrupted"):
            node.started_at = time_of(detail, "startTime")
            container = detail.get("executorDetail", {}).get("containerDetail", {})
            node.attempts = 1 + len(container.get("failedMainJobs", ()))
            node.state = "running"
        if state in (None, "skipped") and stopped:
            record.end_node(stopped)
        elif state:
            end = _end(record, task, detail, state, read_log)
            describe(task, end)
            record.end_node(end)
    if has_ended:
        failed = {name for name, item in by_name.items() if item["state"] == "FAILED"}
        handlers = {task.id for task in spec.tasks if task.is_exit_handler}
        _end_run(record, job, failed & handlers)


def time_of(item: Json, key: str) -> str | None:
    """Returns a time of the service as ISO 8601, in seconds; None if it has none."""
    # The JSON form of a proto's Timestamp: up to nine digits of a second, and Z.
    return f"{item[key][:19]}+00:00" if key in item else None


def _end(
    record: RunRecord, task: Task, detail: Json, state: NodeState, read_log: ReadLog
) -> NodeEnd:
    """Returns how a task ended."""
    end = NodeEnd(
        task.id,
        state,
        _duration_s(detail) if state != "cached" else 0.0,
        inputs=_artifacts(detail.get("inputs", {})),
        outputs=_artifacts(detail.get("outputs", {})),
    )
    if state == "failed":
        end.error = _failure(record, task, detail, read_log)
        end.reason = end.error.message.splitlines()[0]
    elif state == "interrupted":
        end.reason = "cancelled"
    elif state == "skipped" and task.condition:
        end.reason = f"its condition does not hold: {task.condition}"
    return add_task_results(end, pushes=task.kind.pushes)


def _failure(
    record: RunRecord, task: Task, detail: Json, read_log: ReadLog
) -> ErrorRecord:
    """Returns why a task failed; a gate's verdict is among the earlier nodes' ends."""
    refused = [verdict.gate for verdict in record.gates if not verdict.passed]
    if task.kind.gate and refused:
        text = f"{task.id} has stopped the run: the {refused[-1]} gate has not passed"
        return ErrorRecord(task.id, text, exit_code=int(ExitCode.DATA), gate=True)
    failure = failure_in_log(task.id, read_log(task.id))
    if failure.message == f"{task.id} failed":
        failure.message += f": {_message(detail)}"
    return failure


def _end_run(record: RunRecord, job: Json, failed_handlers: set[str]) -> None:
    """Ends a run as its job has ended."""
    for name in failed_handlers:
        record.note(f"{name}, which writes the report, failed")
    is_complete = all(node.state in FINISHED for node in record.nodes)
    only_the_handler = bool(failed_handlers) and is_complete
    if state_of(job) == "CANCELLED":
        record.end(ExitCode.INTERRUPTED, "was cancelled")
    else:
        if state_of(job) == "FAILED" and not (record.error or only_the_handler):
            record.fail(f"the job failed: {_message(job)}", ExitCode.REMOTE)
        record.end(reason="has no result")
    record.ended_at = time_of(job, "endTime") or record.ended_at


def _message(item: Json) -> str:
    text = item.get("error", {}).get("message")
    return redact(text) if text else "the service gives no reason"


def _duration_s(detail: Json) -> float:
    start, end = time_of(detail, "startTime"), time_of(detail, "endTime")
    if not (start and end):
        return 0.0
    between = datetime.fromisoformat(end) - datetime.fromisoformat(start)
    return between.total_seconds()


def _artifacts(links: Mapping[str, Any]) -> Artifacts:
    return {
        key: [
            make_artifact(
                item.get("name", ""),
                item.get("schemaTitle", ""),
                item.get("uri", ""),
                item.get("metadata", {}),
            )
            for item in items.get("artifacts", ())
        ]
        for key, items in links.items()
    }


_TFX, _CUSTOM = "tfx.", "custom:"
# The last line of a traceback, also where Beam has wrapped the error of a worker.
_OUR_ERROR = re.compile(r"^(?:\w+(?:\.\w+)*: )?sluice\.errors\.(\w+): (.*)$")
_ANY_ERROR = re.compile(r"^[A-Za-z_][\w.]*(?:Error|Exception|Exit|Interrupt)\b")
_TRACEBACK = "Traceback (most recent call last):"
_IN_BEAM = re.compile(r" \[while running '.*'\]$")
_TAIL_LINES = 8


def make_artifact(
    name: str, title: str, uri: str, metadata: Mapping[str, Any]
) -> Artifact:
    """Returns an artifact of a service in the form that the record has.

    Args:
      name: by which the service knows it; its last part is the id, a number.
      title: of its type's schema, such as ``tfx.Model``.
      uri: where it is.
      metadata: its properties; JSON has no integers, so that 1.0 becomes 1.
    """
    last = name.rpartition("/")[2]
    number = int(last) if last.isdecimal() else 0
    properties = {
        key.removeprefix(_CUSTOM): int(value)
        if isinstance(value, float) and value.is_integer()
        else value
        for key, value in metadata.items()
    }
    return Artifact(number, title.removeprefix(_TFX), uri, properties)


def add_task_results(end: NodeEnd, *, pushes: bool) -> NodeEnd:
    """Adds what a task's outputs say: verdicts, what it pushed, and no new data."""
    outputs = [item for items in end.outputs.values() for item in items]
    if any(item.properties.get(NEW_DATA) == 0 for item in outputs):
        text = "no new data since the last complete run: nothing is trained"
        end.notes.append(text)
    return add_results(end, pushes=pushes)


def failure_in_log(node: str, lines: Sequence[str]) -> ErrorRecord:
    """Returns why a task failed, according to the end of its log.

    Our own errors are recognized by their class, with exit code and whether the task is
    a gate that has not passed; any other exception by the end of the last traceback.
    """
    tail = [_IN_BEAM.sub("", line.rstrip()) for line in lines]
    for index in range(len(tail) - 1, -1, -1):
        found = _OUR_ERROR.match(tail[index])
        kind = getattr(errors, found[1], None) if found else None
        if found and isinstance(kind, type) and issubclass(kind, SluiceError):
            text = "\n".join([found[2], *_indented(tail[index + 1 :])])
            is_gate = issubclass(kind, GateError)
            return ErrorRecord(
                node, redact(text), exit_code=int(kind.exit_code), gate=is_gate
            )
    starts = [index for index, line in enumerate(tail) if line == _TRACEBACK]
    traceback = tail[starts[-1] :] if starts else []
    last = [line for line in traceback if _ANY_ERROR.match(line)]
    message = f"{node} failed: {redact(last[-1])}" if last else f"{node} failed"
    return ErrorRecord(node, message, log_tail=list(map(redact, tail[-_TAIL_LINES:])))


def _indented(lines: Sequence[str]) -> list[str]:
    """Returns the first lines of an error's text: where, expected, found, try."""
    ends = (i for i, line in enumerate(lines) if not line.startswith("  "))
    return list(lines[: next(ends, len(lines))])
