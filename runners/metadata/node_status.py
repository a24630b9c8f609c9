"""Reads the final state of a node from ML Metadata."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from ml_metadata.proto import metadata_store_pb2

from sluice.record.parts import NodeState

_STATES: dict[int, NodeState] = {
    metadata_store_pb2.Execution.COMPLETE: "ran",
    metadata_store_pb2.Execution.CACHED: "cached",
}
_OPEN = (metadata_store_pb2.Execution.NEW, metadata_store_pb2.Execution.RUNNING)
_RESULT = "__execution_result__"
# The class at the beginning of a traceback's last line.
_EXCEPTION = re.compile(r"^[\w.]+: ")
_CAUSES = "\nThe above exception was the direct cause of the following exception:\n"
_FOUND_NOTHING = " returned None."


def executions_in(store: Any, contexts: Sequence[tuple[str, str]]) -> list[Any]:
    """Returns the executions that are in all contexts (type, name), oldest first."""
    found: dict[int, Any] | None = None
    for kind, name in contexts:
        context = store.get_context_by_type_and_name(kind, name)
        if context is None:
            return []
        executions = store.get_executions_by_context(context.id)
        found = {
            item.id: item for item in executions if found is None or item.id in found
        }
    return [item for _, item in sorted((found or {}).items())]


def state_of(execution: Any | None) -> NodeState:
    """Returns the state of an ended execution; ``failed`` if it has not ended.

    Without an execution the node was skipped by its condition.
    """
    if execution is None:
        return "skipped"
    return _STATES.get(execution.last_known_state, "failed")


def failure_text(execution: Any) -> str | None:
    """Returns the error that TFX published with a failed execution, if any.

    TFX publishes JSON with the tracebacks of the exception and, before it, its causes.
    """
    value = execution.custom_properties.get(_RESULT)
    if value is None:
        return None
    tracebacks = json.loads(value.string_value).get("resultMessage", "").split(_CAUSES)
    ends = [text.strip().rpartition("\n")[2] for text in tracebacks]
    text = _EXCEPTION.sub("", ends[-1])
    return text if len(ends) == 1 else f"{text}, because of {ends[0]}"


def found_nothing(execution: Any) -> bool:
    """Whether a resolver found nothing, which TFX may publish as a failure.

    Most strategies return None then, which fails; the one for the latest blessed model
    returns empty lists, which succeeds.
    """
    text = failure_text(execution)
    return text is not None and text.endswith(_FOUND_NOTHING)


def close(store: Any, execution: Any) -> None:
    """Marks an open execution, whose process was killed, as failed."""
    if execution.last_known_state in _OPEN:
        execution.last_known_state = metadata_store_pb2.Execution.FAILED
        store.put_executions([execution])
