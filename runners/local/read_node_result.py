"""Reads the result of a node from ML Metadata."""

from __future__ import annotations

import re
from typing import Any

from runners.local.graph_file import PlannedNode
from runners.local.run_result import NodeResult
from runners.metadata import node_status
from sluice.errors import NodeError
from sluice.record.events import NodeFailure
from sluice.record.run_record import NodeState

# TFX's messages for inputs that it cannot resolve.
_TOO_FEW = re.compile(r"inputs\[(.+?)\] has min_count = (\d+) but only got (\d+)")
_NO_CONDITION = "Expected boolean type but got <class 'NoneType'>"
_TOO_MANY = "Handling more than one input dicts"


def read_node_result(
    store: Any,
    node: PlannedNode,
    duration_s: float,
    error: NodeFailure | None,
    stopped: bool = False,
) -> NodeResult:
    """Returns the result of a node according to ML Metadata.

    ``error`` is the explained exception, if it raised one; ``stopped`` says whether it
    ended because of a request to stop.
    """
    executions = node_status.executions_of(store, node.contexts)
    execution = executions[-1] if executions else None
    outputs = node_status.outputs_of(store, execution) if execution else {}
    inputs = node_status.inputs_of(store, execution) if execution else {}
    state: NodeState = "failed" if error else node_status.state_of(execution)
    reason = None
    if state == "failed" and execution is not None:
        node_status.close(store, execution)
    if state == "failed" and stopped:
        state, reason = "interrupted", "stopped when asked to"
    elif state == "skipped":
        reason = node.when_skipped
    elif state == "failed" and error is None:
        # The launcher returned without calling an executor.
        if node.resolver and node_status.found_nothing(execution):
            state = "ran"
        else:
            failure = _unresolved(node, node_status.failure_text(execution))
            # After a failed strategy the artifact may exist: not an absent input.
            error = NodeFailure(
                str(failure), int(failure.exit_code), unresolved=not node.resolver
            )
    if error:
        reason = error.message.splitlines()[0]
    if execution and state == "ran" and node.resolver:
        reason = None if outputs else "found nothing"
        contexts = [item for item in node.contexts if item[0] != "pipeline_run"]
        everything = node_status.executions_of(store, contexts)
        earlier = [item for item in everything if item.id < execution.id]
        if earlier and node_status.outputs_of(store, earlier[-1]) == outputs:
            # A resolver always runs; it is cached if it found the same artifacts.
            state = "cached"
            reason = reason or "resolves to the same artifacts as before"
    return NodeResult(
        node.id,
        state,
        duration_s,
        reason,
        error,
        outputs,
        inputs=inputs,
        execution_id=execution.id if execution else None,
    )


def _unresolved(node: PlannedNode, text: str | None) -> NodeError:
    """Returns the error for a node whose inputs TFX could not resolve."""
    text = text or "its inputs could not be resolved"
    if few := _TOO_FEW.search(text):
        key, least, got = few.groups()
        makers = " or ".join(node.needs.get(key, ()))
        return NodeError(
            f"{node.id} failed: no artifact for its input {key!r}"
            + (f", which is an output of {makers}" if makers else ""),
            expected=f"at least {least}",
            actual=got,
            hint="run the producer first, or make the input optional in the component",
        )
    if _NO_CONDITION in text:
        return NodeError(
            f"{node.id} failed: its condition refers to an artifact that does not "
            "exist",
            hint="run the producer first",
        )
    if _TOO_MANY in text:
        return NodeError(
            f"{node.id} failed: its ForEach has several artifacts",
            expected="one: TFX's launcher runs a node once per run",
            hint="let the component take all of them as one input",
        )
    return NodeError(f"{node.id} failed: {text}")
