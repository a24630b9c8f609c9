"""Reads the final state of a node from ML Metadata."""

from __future__ import annotations

import json
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
_CAUSED = "\nThe above exception was the direct cause of the following exception:\n"


def executions_in(store: Any, contexts: Sequence[tuple[str, str]]) -> list[Any]:
    """Returns the executions that are in all contexts (type, name), oldest first."""
    known = [store.get_context_by_type_and_name(*context) for context in contexts]
    if None in known:
        return []
    found = [
        {item.id: item for item in store.get_executions_by_context(context.id)}
        for context in known
    ]
    in_all = set.intersection(*map(set, found))
    return [found[0][number] for number in sorted(in_all)]


def state_of(execution: Any | None) -> NodeState:
    """Returns the state of an ended execution; ``failed`` if it has not ended.

    Without an execution the node was skipped by its condition.
    """
    if execution is None:
        return "skipped"
    return _STATES.get(execution.last_known_state, "failed")


def failure_text(execution: Any) -> str | None:
    """Returns the error that TFX published with a failed execution, if any.

    TFX publishes tracebacks; the first is that of the cause.
    """
    value = execution.custom_properties.get(_RESULT)
    if value is None:
        return None
    message = json.loads(value.string_value).get("resultMessage", "")
    return message.split(_CAUSED)[0].strip().rpartition("\n")[2]


def found_nothing(execution: Any) -> bool:
    """Whether a resolver found nothing, which TFX may publish as a failure.

    Most strategies return None then, which fails; the one for the latest blessed model
    returns empty lists, which succeeds.
    """
    return (failure_text(execution) or "").endswith(" returned None.")


def close(store: Any, execution: Any) -> None:
    """Marks an open execution, whose process was killed, as failed."""
    if execution.last_known_state in _OPEN:
        execution.last_known_state = metadata_store_pb2.Execution.FAILED
        store.put_executions([execution])
