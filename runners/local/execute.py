"""Executes a run: compiles its graph, then runs its nodes."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

from runners.engine import Plan
from runners.local.graph_file import GraphFile
from runners.local.job_environment import JobEnvironment
from runners.local.job_result import PREPARE, RESOLVE_CACHED, forget_result, read_result
from runners.local.node_event import node_finished
from runners.local.processes.job import Job
from runners.local.processes.process_pool import ProcessPool
from runners.local.read_node_result import read_node_result
from runners.local.run_result import NodeResult, RunResult
from runners.local.scheduler import RunCallbacks, Scheduler, result_of
from runners.metadata import node_status
from runners.metadata.read_metadata import open_store
from sluice import secrets
from sluice.errors import ExitCode, UsageError, unknown_node
from sluice.process_tree import describe_end
from sluice.record.events import (
    Finished,
    GraphCompiled,
    GraphNode,
    NodeFinished,
    NodeStarted,
    Stopped,
)
from sluice.record.journal import Journal
from sluice.storage import source_files, stat_cache
from sluice.storage.storage import storage_for
from sluice.workspace import Workspace


def execute(
    plan: Plan,
    process_pool: ProcessPool,
    callbacks: RunCallbacks,
    job_environment: JobEnvironment | None = None,
) -> RunResult | None:
    """Runs the nodes of a pipeline until each has ended or cannot be reached.

    ``job_environment`` is that of every process; None for that of a Sluice project.

    Returns:
      The result of each node; None if the run could not begin, which the event
      ``stopped`` explains, or was stopped before its first node.

    Raises:
      NodeError: the zygote has ended unexpectedly.
    """
    graph = prepare(plan, process_pool, callbacks, job_environment)
    if graph is None:
        return None
    try:
        if plan.resumed:
            finished = _finished_nodes(plan.run_dir, graph)
        else:
            finished = _resolve_cached(plan, graph, process_pool, callbacks)
    except UsageError as error:
        callbacks.on_event(_stopped(plan, str(error), error.exit_code))
        return None
    for name, found in finished.items():
        if not plan.resumed:
            callbacks.on_event(NodeStarted(node=name, attempt=1))
        facts = read_result(plan.run_dir, name)
        node = graph.node(name)
        callbacks.on_event(node_finished(plan.run_dir, node, found, facts))
    result = _schedule(plan, graph, process_pool, callbacks, finished)
    if all(node.state != "interrupted" for node in result.nodes) and len(
        result.nodes
    ) == len(graph.nodes):
        callbacks.on_event(Finished())
    return result


def prepare(
    plan: Plan,
    process_pool: ProcessPool,
    callbacks: RunCallbacks,
    job_environment: JobEnvironment | None = None,
) -> GraphFile | None:
    """Compiles the graph, or loads that of a resumed run; arguments as for ``execute``.

    Returns:
      None if the graph cannot be run, which the event ``stopped`` explains, or if the
      run was stopped.
    """
    if plan.spans:
        plan.spans.save(plan.run_dir)
    graph = GraphFile.load(plan.run_dir) if plan.resumed else None
    if graph is None:
        root = str(plan.project_root) if plan.project_root else None
        (job_environment or JobEnvironment(project_root=root)).save(plan.run_dir)
        graph = _prepare(plan, process_pool, callbacks)
    if graph is None:
        return None
    nodes = tuple(
        GraphNode(
            node.id, node.kind, node.upstream, node.gate, node.judges_data, node.action
        )
        for node in graph.nodes
    )
    callbacks.on_event(GraphCompiled(nodes=nodes, base_run_id=graph.base_run_id))
    try:
        _check_names(plan, graph)
    except UsageError as error:
        callbacks.on_event(_stopped(plan, str(error), error.exit_code))
        return None
    return graph


def execute_node(
    plan: Plan, node_id: str, process_pool: ProcessPool, callbacks: RunCallbacks
) -> bool:
    """Runs one node of a prepared run, unless a failed upstream node prevents it.

    The results of upstream nodes that cannot be reached are recorded as well.

    Returns:
      Whether the node has ended; false if it waits for another node.
    """
    graph = _graph_of(plan)
    finished = recorded_results(plan.run_dir)
    finished.pop(node_id, None)
    considered = {node_id, *graph.before(node_id)}
    only = {"nodes": considered, "may_start": {node_id}}
    result = _schedule(plan, graph, process_pool, callbacks, finished, **only)
    if any(node.node == node_id for node in result.nodes):
        return True
    if callbacks.stop.signal is None:
        return False
    reason = callbacks.stop.reason
    callbacks.on_event(NodeFinished(node=node_id, state="interrupted", reason=reason))
    return True


def record_unreachable(plan: Plan, callbacks: RunCallbacks) -> list[str]:
    """Records the nodes of a prepared run that cannot be reached; starts none.

    Returns:
      The nodes without a result.
    """
    graph = _graph_of(plan)
    finished = recorded_results(plan.run_dir)
    result = _schedule(plan, graph, None, callbacks, finished, may_start=())
    ended = {node.node for node in result.nodes}
    return [node.id for node in graph.nodes if node.id not in ended]


def recorded_results(run_dir: Path) -> dict[str, NodeResult]:
    """Returns the results of a run's nodes, as its journal has them.

    Nodes that were blocked or not reached are left out: the node that stopped them may
    have been run again.
    """
    found: dict[str, NodeResult] = {}
    for event in Journal(run_dir).events():
        if isinstance(event, GraphCompiled):
            found = {}
        elif isinstance(event, NodeStarted):
            found.pop(event.node, None)
        elif isinstance(event, NodeFinished):
            # A Pusher that ran and was blocked by a gate stops no other node.
            ran = event.state == "blocked" and event.execution_id is not None
            found[event.node] = NodeResult(
                event.node,
                "ran" if ran else event.state,
                event.duration_s,
                event.reason,
                error=event.error,
            )
    ended = ("ran", "cached", "skipped", "failed")
    return {name: result for name, result in found.items() if result.state in ended}


def _graph_of(plan: Plan) -> GraphFile:
    graph = GraphFile.load(plan.run_dir)
    if graph is None:
        raise UsageError(
            f"the graph of run {plan.run_dir.name} was not compiled", where=plan.run_dir
        )
    return graph


def _schedule(
    plan: Plan,
    graph: GraphFile,
    process_pool: ProcessPool | None,
    callbacks: RunCallbacks,
    finished: dict[str, NodeResult],
    **only: Collection[str],
) -> RunResult:
    config = plan.run_dir / "config.json"
    if config.exists():
        secrets.remember(config.read_text(encoding="utf-8"))
    environment = _environment(plan)
    return Scheduler(
        plan,
        graph,
        process_pool,
        callbacks,
        finished=finished,
        environment=environment,
        **only,
    ).run()


def _finished_nodes(run_dir: Path, graph: GraphFile) -> dict[str, NodeResult]:
    """Returns the results of the nodes that a resumed run does not run again."""
    finished = {}
    with open_store(graph.connection_config()) as store:
        for node in graph.nodes:
            executions = node_status.executions_of(store, node.contexts)
            state = node_status.state_of(executions[-1]) if executions else "skipped"
            if node.action != "run" or state not in ("ran", "cached"):
                continue
            facts = read_result(run_dir, node.id)
            if facts and facts["state"] in ("ran", "cached"):
                result = result_of(facts)
            else:
                result = read_node_result(store, node, 0.0, None)
            _check_outputs(result, run_dir.name)
            finished[node.id] = result
    return finished


def _resolve_cached(
    plan: Plan, graph: GraphFile, process_pool: ProcessPool, callbacks: RunCallbacks
) -> dict[str, NodeResult]:
    """Returns the results of cached nodes, looked up in one process."""
    whole = all(node.action == "run" for node in graph.nodes)
    if not (plan.use_cache and graph.has_history and whole):
        return {}
    job = Job(
        function="runners.local.resolve_cached:resolve_cached",
        arguments={"run_dir": str(plan.run_dir), "forced": list(plan.forced)},
        log=str(plan.run_dir / "logs" / "start.log"),
        environment=_environment(plan),
    )
    # Its own failure does not matter: a node without a result runs as usual.
    _wait_for(RESOLVE_CACHED, job, process_pool, callbacks)
    found = {node.id: read_result(plan.run_dir, node.id) for node in graph.nodes}
    return {name: result_of(facts) for name, facts in found.items() if facts}


def _wait_for(
    name: str, job: Job, process_pool: ProcessPool, callbacks: RunCallbacks
) -> dict[str, Any] | None:
    return process_pool.run(
        name,
        job,
        on_tick=callbacks.on_tick,
        stopped=lambda: callbacks.stop.signal is not None,
    )


def _prepare(
    plan: Plan, process_pool: ProcessPool, callbacks: RunCallbacks
) -> GraphFile | None:
    forget_result(plan.run_dir, PREPARE)
    log = plan.run_dir / "logs" / "start.log"
    job = Job(
        function="runners.local.prepare_job:prepare",
        arguments={
            "run_dir": str(plan.run_dir),
            "workspace": str(plan.workspace) if plan.workspace else None,
            "from_nodes": list(plan.from_nodes),
            "to_nodes": list(plan.to_nodes),
            "base_run_id": plan.base_run_id,
            "accept_data": plan.accept_data,
        },
        log=str(log),
        environment=_environment(plan),
    )
    ended = _wait_for(PREPARE, job, process_pool, callbacks)
    if ended is None:
        return None
    result = read_result(plan.run_dir, PREPARE)
    if result is None:
        end = describe_end(ended["status"], ended["peak_memory_bytes"])
        text = f"compiling the graph failed: its process {end}"
        callbacks.on_event(_stopped(plan, text, ExitCode.NODE))
    elif error := result["error"]:
        callbacks.on_event(_stopped(plan, error["message"], error["exit_code"]))
    else:
        return GraphFile.load(plan.run_dir)
    return None


def _environment(plan: Plan) -> dict[str, str]:
    if plan.workspace is None:
        return {}
    workspace = Workspace(plan.workspace)
    return {
        **(plan.spans.environment(plan.run_dir) if plan.spans else {}),
        stat_cache.DIGESTS_FILE: str(workspace.digests_file),
        source_files.CACHE_FILE: str(workspace.sources_file),
    }


def _check_names(plan: Plan, graph: GraphFile) -> None:
    known = [node.id for node in graph.nodes]
    for name in (*plan.forced, *plan.retries.nodes, *plan.memory.nodes_mb):
        if name not in known:
            raise unknown_node(name, known, graph.pipeline)


def _check_outputs(result: NodeResult, run_id: str) -> None:
    for artifacts in result.outputs.values():
        for artifact in artifacts:
            uri = artifact["uri"]
            if uri and not storage_for(uri).exists(uri):
                raise UsageError(
                    f"run {run_id} cannot be resumed: an output of {result.node} is "
                    "missing",
                    where=uri,
                    hint="start a new run with `sluice run`",
                )


def _stopped(plan: Plan, message: str, exit_code: int) -> Stopped:
    """Returns the event of a run that ended before its first node."""
    log = plan.run_dir / "logs" / "start.log"
    return Stopped(
        message=message,
        exit_code=int(exit_code),
        log=str(log) if log.exists() else None,
    )
