"""How a node of a run has ended, as ML Metadata has it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ml_metadata import errors
from ml_metadata.metadata_store import metadata_store

from runners.local import node_status
from runners.local.graph_file import PlannedNode
from runners.local.run_result import NodeFailure, NodeResult
from sluice.errors import ExitCode, WorkspaceError
from sluice.run_record import NodeState


@contextmanager
def open_store(connection: Any) -> Iterator[Any]:
    """Opens an ML Metadata store.

    Args:
      connection: ML Metadata's ``ConnectionConfig``.

    Raises:
      WorkspaceError: it cannot be opened, read or written, such as on a full disk.
    """
    try:
        yield metadata_store.MetadataStore(connection)
    except (RuntimeError, errors.StatusError) as error:
        raise WorkspaceError(
            "the pipeline's metadata cannot be read or written",
            where=connection.sqlite.filename_uri or None,
            actual=str(error).partition("query:")[0].strip(),
            hint="free some space if its disk is full, then: sluice resume",
        ) from error


def read_back(
    store: Any,
    node: PlannedNode,
    duration_s: float,
    error: NodeFailure | None,
    stopped: bool = False,
) -> NodeResult:
    """Returns how a node ended, as ML Metadata has it.

    Args:
      store: an ML Metadata store.
      node: which node.
      duration_s: wall time.
      error: what it raised, explained.
      stopped: whether it has stopped because it was asked to.
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
        reason = "its condition does not hold"
    elif state == "failed" and error is None:
        text = node_status.failure_text(execution) or "its inputs could not be resolved"
        error = NodeFailure(f"{node.id} failed: {text}", int(ExitCode.NODE))
    if error:
        reason = error.message.splitlines()[0]
    if execution and state == "ran" and node.resolver:
        contexts = [item for item in node.contexts if item[0] != "pipeline_run"]
        everything = node_status.executions_of(store, contexts)
        earlier = [item for item in everything if item.id < execution.id]
        if earlier and node_status.outputs_of(store, earlier[-1]) == outputs:
            # A resolver always looks; what counts is whether it found something new.
            state, reason = "cached", "resolves to the same artifacts as before"
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
