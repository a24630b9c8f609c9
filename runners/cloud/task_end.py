"""Artifacts and error of a task of a compiled pipeline, in the form of the record."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from components.watermark.watermark import NEW_DATA
from runners.local.node_end import add_results
from sluice import errors
from sluice.errors import GateError, SluiceError
from sluice.mlmd_items import Artifact
from sluice.record.parts import ErrorRecord, NodeEnd
from sluice.secrets import redact

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
