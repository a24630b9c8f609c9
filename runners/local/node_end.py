"""Reads how a node ended: from ML Metadata, its verdicts and what it pushed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runners.metadata import node_status
from runners.metadata.read_metadata import read_executions
from sluice.errors import NodeError
from sluice.mlmd_items import Artifact, plain_properties
from sluice.node_kinds import VERDICTS, kind_of
from sluice.record.parts import Artifacts, ErrorRecord, NodeEnd, PushRecord
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
    executions = node_status.executions_in(store, contexts)
    execution = executions[-1] if executions else None
    if execution is not None:
        end.inputs, end.outputs = artifacts_of(store, execution)
    end.state = "failed" if end.error else node_status.state_of(execution)
    if end.state == "failed" and execution is not None:
        node_status.close(store, execution)
    if end.state == "failed" and stopped:
        end.state, end.reason = "interrupted", "stopped when asked to"
    elif end.state == "skipped":
        end.reason = "its condition is false, or its inputs resolve to nothing"
    elif end.state == "failed" and end.error is None:
        # The launcher returned without calling an executor.
        if kind.resolver and node_status.found_nothing(execution):
            end.state = "ran"
        else:
            text = node_status.failure_text(execution)
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
                end.gates.append(Verdict.load(item.uri).to_dict())
            except (OSError, ValueError, KeyError, TypeError) as error:
                end.notes.append(f"the verdict in {item.uri} cannot be read: {error}")
    if pushes:
        end.push = _push(end, outputs)
    return end


def _push(end: NodeEnd, outputs: Sequence[Artifact]) -> PushRecord | None:
    if end.error:
        return PushRecord("", "failed")
    for item in outputs:
        state = item.properties.get("state")
        if state in _SERVED:
            return PushRecord(
                "",
                "already_served" if end.state == "cached" else state,
                int(item.properties["pushed_version"]),
                item.properties["pushed_destination"],
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
    executions = node_status.executions_in(store, of_all_runs)
    earlier = [item for item in executions if item.id < execution.id]
    if earlier and artifacts_of(store, earlier[-1])[1] == end.outputs:
        end.state = "cached"
        end.reason = end.reason or "resolves to the same artifacts as before"


def artifacts_of(store: Any, execution: Any) -> tuple[Artifacts, Artifacts]:
    """Returns the inputs and outputs of an execution, by key."""
    graph = read_executions(store, [execution.id])
    found = graph.executions[execution.id]
    return graph.by_key(found.inputs), graph.by_key(found.outputs)
