"""The ``node_finished`` event of a task that has run in a service.

What the event needs is read from the task's artifacts and from the end of its log: a
service says only that a container has failed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from components.watermark.watermark import NEW_DATA
from runners.cloud.service import artifact_id
from runners.local.document_content import DescribedNode
from runners.local.graph_file import PlannedNode
from runners.local.node_event import node_finished
from runners.local.run_result import NodeResult
from runners.local.write_documents import write_documents
from sluice import errors
from sluice.errors import ExitCode, GateError, SluiceError, TransientError
from sluice.record.documents.privacy import Privacy
from sluice.record.events import Artifact, NodeFailure, NodeFinished
from sluice.secrets import redact

_TFX, _CUSTOM = "tfx.", "custom:"
# The last line of a traceback, also where Beam has wrapped the error of a worker.
_OUR_ERROR = re.compile(r"^(?:\w+(?:\.\w+)*: )?sluice\.errors\.(\w+): (.*)$")
_ANY_ERROR = re.compile(r"^[A-Za-z_][\w.]*(?:Error|Exception|Exit|Interrupt)\b")
_TRACEBACK = "Traceback (most recent call last):"
_IN_BEAM = re.compile(r" \[while running '.*'\]$")
_TAIL_LINES = 8


def record_artifact(
    name: str, title: str, uri: str, metadata: Mapping[str, Any]
) -> Artifact:
    """Returns an artifact of a service in the form that the record has.

    Args:
      name: by which the service knows it.
      title: of its type's schema, such as ``tfx.Model``.
      uri: where it is.
      metadata: its properties; JSON has no integers, so that 1.0 becomes 1.
    """
    properties = {
        key.removeprefix(_CUSTOM): int(value)
        if isinstance(value, float) and value.is_integer()
        else value
        for key, value in metadata.items()
    }
    return Artifact(artifact_id(name), title.removeprefix(_TFX), uri, properties)


def task_finished(
    run_dir: Path,
    node: PlannedNode,
    event: NodeFinished,
    properties: Mapping[str, Any],
    privacy: Privacy | None = None,
) -> NodeFinished:
    """Returns the event of a task with what its artifacts hold.

    Verdicts, the result of a push, and the documents, which are written. A problem with
    them becomes a note.

    Args:
      run_dir: of the run.
      node: the task, see ``service_run.planned_nodes``.
      event: how it has ended, with its artifacts.
      properties: its parameters.
      privacy: what of the data documents may show.
    """
    outputs, inputs = _as_dicts(event.outputs), _as_dicts(event.inputs)
    notes: list[str] = []

    def note(error: Exception) -> None:
        text = f"{node.id}: its outputs could not be described: {error}"
        notes.append(redact(text).splitlines()[0])

    described = DescribedNode(
        id=node.id,
        outputs=outputs,
        inputs=inputs,
        properties=properties,
        is_resolver=node.resolver,
        is_cached=event.state == "cached",
    )
    documents = write_documents(described, run_dir, privacy, note)
    artifacts = [item for items in event.outputs.values() for item in items]
    if any(item.properties.get(NEW_DATA) == 0 for item in artifacts):
        notes.append("no new data since the last complete run: nothing is trained")
    result = NodeResult(
        node.id,
        event.state,
        event.duration_s,
        event.reason,
        event.error,
        outputs,
        inputs,
        event.peak_memory_bytes,
    )
    facts = {
        "documents": [vars(item) for item in documents],
        "notes": [*event.notes, *notes],
        "cache": event.cache,
    }
    found = node_finished(run_dir, node, result, facts)
    return replace(found, log=event.log or found.log)


def failure_in_log(node: str, lines: Sequence[str]) -> NodeFailure:
    """Returns why a task failed, according to its log.

    Our own errors are recognized by their class, with exit code and whether the task is
    a gate that has not passed; any other exception by the end of the last traceback.

    Args:
      node: the task's id.
      lines: of its log, the last of them at least.
    """
    tail = [line.rstrip() for line in lines]
    for index in range(len(tail) - 1, -1, -1):
        if found := _OUR_ERROR.match(tail[index]):
            kind = getattr(errors, found[1], None)
            if isinstance(kind, type) and issubclass(kind, SluiceError):
                more = _until_next(tail[index + 1 :])
                text = "\n".join([_IN_BEAM.sub("", found[2]), *more])
                return NodeFailure(
                    redact(text),
                    int(kind.exit_code),
                    gate=issubclass(kind, GateError),
                    transient=issubclass(kind, TransientError),
                )
    shown = tuple(redact(line) for line in tail[-_TAIL_LINES:])
    last = [line for line in _last_traceback(tail) if _ANY_ERROR.match(line)]
    message = f"{node} failed: {redact(last[-1])}" if last else f"{node} failed"
    return NodeFailure(message, int(ExitCode.NODE), log_tail=shown)


def _until_next(lines: Sequence[str]) -> list[str]:
    """Returns the indented lines of an error: where, expected, found, try."""
    end = next(
        (i for i, line in enumerate(lines) if not line.startswith("  ")), len(lines)
    )
    return [_IN_BEAM.sub("", line) for line in lines[:end]]


def _last_traceback(lines: list[str]) -> list[str]:
    starts = [index for index, line in enumerate(lines) if line == _TRACEBACK]
    return lines[starts[-1] :] if starts else []


def _as_dicts(
    artifacts: Mapping[str, list[Artifact]],
) -> dict[str, list[dict[str, Any]]]:
    return {key: [asdict(item) for item in items] for key, items in artifacts.items()}
