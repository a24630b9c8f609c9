"""Reads how a node ended: from ML Metadata, its verdicts and what it pushed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ml_metadata.proto import metadata_store_pb2

from runners.metadata.read_metadata import read_executions
from sluice.errors import NodeError
from sluice.mlmd_items import Artifact, plain_properties
from sluice.node_kinds import VERDICTS, kind_of
from sluice.record.parts import Artifacts, ErrorRecord, NodeEnd, NodeState, PushRecord
from sluice.record.verdict import Verdict

_SERVED = ("pushed", "already_served")


def read_end(
    store: Any, node: Any, end: NodeEnd, *, stopped: bool = False
) -> tuple[NodeEnd, dict[str, Any]]:
    """Returns the end of a launched node, and the properties of its execution.

    Args:
      store: ML Metadata's.
      node: the node's IR.
      end: what the launch has shown: duration, and the explained exception, if any.
      stopped: whether it ended because of a request to stop.
    """
    kind = kind_of(node.node_info.type.name)
    contexts = contexts_of(node)
    executions = executions_in(store, contexts)
    execution = executions[-1] if executions else None
    if execution is not None:
        end.inputs, end.outputs = artifacts_of(store, execution)
    end.state = "failed" if end.error else state_of(execution)
    if end.state == "failed" and execution is not None:
        close(store, execution)
    if end.state == "failed" and stopped:
        end.state, end.reason = "interrupted", "stopped when asked to"
    elif end.state == "skipped":
        end.reason = "its condition is false, or its inputs resolve to nothing"
    elif end.state == "failed" and end.error is None:
        # The launcher returned without calling an executor.
        if kind.resolver and found_nothing(execution):
            end.state = "ran"
        else:
            text = failure_text(execution)
            text = text or "its inputs could not be resolved"
            error = NodeError(f"{end.node} failed: {text}")
            end.error = ErrorRecord(end.node, str(error))
    if end.error:
        end.reason = end.error.message.splitlines()[0]
    if execution and end.state == "ran" and kind.resolver:
        _compare_with_last(store, contexts, execution, end)
    return end, plain_properties(execution) if execution else {}


def contexts_of(node: Any) -> list[tuple[str, str]]:
    """Returns type and name of a node's contexts, without that of all its pipeline."""
    return [
        (spec.type.name, spec.name.field_value.string_value)
        for spec in node.contexts.contexts
        if spec.type.name != "pipeline"
    ]


def add_results(end: NodeEnd, *, pushes: bool) -> NodeEnd:
    """Adds the verdicts among a node's outputs and, if it ``pushes``, its push."""
    outputs = [item for items in end.outputs.values() for item in items]
    for item in outputs:
        if item.type in VERDICTS:
            try:
                end.gates.append(Verdict.load(item.uri))
            except (OSError, ValueError, KeyError, TypeError) as error:
                end.notes.append(f"the verdict in {item.uri} cannot be read: {error}")
    if pushes:
        end.push = _push(end, outputs)
    return end


def _push(end: NodeEnd, outputs: Sequence[Artifact]) -> PushRecord | None:
    if end.error:
        return PushRecord("", "failed")
    for artifact in outputs:
        state = artifact.properties.get("state")
        if state in _SERVED:
            return PushRecord(
                "",
                "already_served" if end.state == "cached" else state,
                int(artifact.properties["pushed_version"]),
                artifact.properties["pushed_destination"],
            )
        if state is not None:
            return PushRecord("", state)
    return None


def _compare_with_last(
    store: Any, contexts: list[tuple[str, str]], execution: Any, end: NodeEnd
) -> None:
    """Sets a resolver, which always runs, to cached if it found the same as before."""
    end.reason = None if end.outputs else "found nothing"
    of_all_runs = [item for item in contexts if item[0] != "pipeline_run"]
    executions = executions_in(store, of_all_runs)
    earlier = [item for item in executions if item.id < execution.id]
    if earlier and artifacts_of(store, earlier[-1])[1] == end.outputs:
        end.state = "cached"
        end.reason = end.reason or "resolves to the same artifacts as before"


def artifacts_of(store: Any, execution: Any) -> tuple[Artifacts, Artifacts]:
    """Returns the inputs and outputs of an execution, by key."""
    graph = read_executions(store, [execution.id])
    found = graph.executions[execution.id]
    return graph.by_key(found.inputs), graph.by_key(found.outputs)


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
