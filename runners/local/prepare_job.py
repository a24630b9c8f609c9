"""First job of a run: compiles the pipeline and selects the nodes to run."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from google.protobuf import message
from tfx.dsl.compiler import compiler, constants
from tfx.orchestration import metadata, node_proto_view
from tfx.orchestration.local import runner_utils
from tfx.orchestration.portable import partial_run_utils, runtime_parameter_utils
from tfx.proto.orchestration import pipeline_pb2

from runners.local.explain_failure import explain_failure
from runners.local.graph_file import IR_FILE, Action, GraphFile, PlannedNode
from runners.local.job_environment import JobEnvironment
from runners.local.job_result import PREPARE, write_exception, write_result
from runners.metadata import node_status
from sluice.errors import UsageError, unknown_node
from sluice.node_kinds import JUDGEMENTS, NodeKind, kind_of
from sluice.storage import atomic

if TYPE_CHECKING:
    from pipeline.config.config import Config

_RUN = "pipeline_run"


def prepare(
    run_dir: str,
    workspace: str | None,
    from_nodes: list[str],
    to_nodes: list[str],
    base_run_id: str | None,
    accept_data: str | None = None,
) -> None:
    """Writes the compiled pipeline and the graph, or the error.

    Args:
      run_dir: the run's folder, named by the run's id. It holds ``config.json``, or the
        IR of a pipeline built elsewhere.
      workspace: of a config's pipeline; None for one built elsewhere.
      from_nodes: run only these and the nodes downstream; empty for all.
      to_nodes: run only these and the nodes upstream; empty for all.
      base_run_id: the run whose outputs the other nodes reuse; None for the newest that
        has them.
      accept_data: as for ``create_pipeline``.
    """
    place = Path(run_dir)
    try:
        JobEnvironment.load(place).enter()
        ir, config = _compile(place, workspace, accept_data)
        own = config.nodes if config else {}
        runtime_parameter_utils.substitute_runtime_parameter(
            ir, {constants.PIPELINE_RUN_ID_PARAMETER_NAME: place.name}
        )
        _check(ir)
        base = None
        connection = connection_of(ir)
        if from_nodes or to_nodes:
            base = _mark(ir, connection, from_nodes, to_nodes, base_run_id)
        if config is not None:
            _check_trainer(ir, config)
        atomic.write_bytes(place / IR_FILE, ir.SerializeToString(deterministic=True))
        GraphFile(
            pipeline=ir.pipeline_info.id,
            nodes=tuple(_planned(node.pipeline_node, base, own) for node in ir.nodes),
            connection=connection.SerializeToString().hex(),
            base_run_id=base,
            has_history=_has_history(connection),
        ).save(place)
        write_result(place, PREPARE, {"error": None})
    except Exception as error:
        failure = explain_failure("the pipeline", error)
        if workspace is None:
            write_exception(place, PREPARE, error)
        write_result(place, PREPARE, {"error": vars(failure)})
        raise


def _has_history(connection: message.Message) -> bool:
    """Whether the metadata may hold executions; an SQLite file may not exist yet."""
    if not connection.HasField("sqlite"):
        return True
    path = Path(connection.sqlite.filename_uri)
    return path.exists() and path.stat().st_size > 0


def read_ir(run_dir: Path) -> Any:
    """Returns the compiled pipeline of a run."""
    ir = pipeline_pb2.Pipeline()
    ir.ParseFromString((run_dir / IR_FILE).read_bytes())
    return ir


def connection_of(ir: Any) -> message.Message:
    """Returns ML Metadata's ``ConnectionConfig`` of a compiled pipeline.

    Raises:
      UsageError: the pipeline has none.
    """
    deployment = runner_utils.extract_local_deployment_config(ir)
    connection = deployment.metadata_connection_config
    kind = connection.WhichOneof("connection_config")
    if kind is None:
        raise UsageError(
            "the pipeline has no metadata connection config",
            where=ir.pipeline_info.id,
            expected="Pipeline(metadata_connection_config="
            "sqlite_metadata_connection_config(path))",
        )
    return getattr(connection, kind)


def _compile(
    run_dir: Path, workspace: str | None, accept_data: str | None
) -> tuple[Any, Config | None]:
    """Returns the compiled pipeline and its config, if it has one."""
    if workspace is None:
        return read_ir(run_dir), None

    from pipeline.config.serialize import read_stored_config
    from pipeline.graph.create_pipeline import create_pipeline
    from pipeline.graph.locations import local_locations
    from sluice.workspace import Workspace

    config = read_stored_config(run_dir / "config.json")
    places = local_locations(config, Workspace(Path(workspace)))
    pipeline = create_pipeline(config, places, accept_data)
    return compiler.Compiler().compile(pipeline), config


def _check_trainer(ir: Any, config: Config) -> None:
    """Checks the training, before anything runs, unless the Trainer is left out."""
    for node in ir.nodes:
        name, action = node.pipeline_node.node_info.id, _action(node.pipeline_node)
        if name == "Trainer" and action == "run":
            import tensorflow as tf

            from pipeline.training.check_training import check_training

            # A GPU's memory is for the Trainer's process.
            tf.config.set_visible_devices([], "GPU")
            check_training(config)


def _check(ir: Any) -> None:
    where = ir.pipeline_info.id
    if not ir.nodes:
        raise UsageError("the pipeline has no nodes", where=where)
    if not all(node.HasField("pipeline_node") for node in ir.nodes):
        raise UsageError(
            "the local runner does not run nested pipelines",
            where=where,
            hint="add the inner pipeline's components to the outer one",
        )
    connection = connection_of(ir)
    kind = connection.WhichOneof("config")
    if kind == "fake_database" or (
        kind == "sqlite" and not connection.sqlite.filename_uri
    ):
        raise UsageError(
            "the pipeline's metadata is in memory, where other processes cannot read "
            "it",
            where=where,
            expected="sqlite_metadata_connection_config(path)",
        )


def _mark(
    ir: Any,
    connection: message.Message,
    from_nodes: Collection[str],
    to_nodes: Collection[str],
    base_run_id: str | None,
) -> str | None:
    """Selects a part of the graph.

    Returns:
      The earlier run whose outputs the other nodes reuse; None if none are needed.
    """
    known = [node.pipeline_node.node_info.id for node in ir.nodes]
    for node_id in (*from_nodes, *to_nodes):
        if node_id not in known:
            raise unknown_node(node_id, known, ir.pipeline_info.id)
    if from_nodes:
        from_nodes = [*from_nodes, *_resolvers_before(ir, from_nodes, to_nodes)]
    partial_run_utils.mark_pipeline(ir, from_nodes or None, to_nodes or None)
    if not any(_action(node.pipeline_node) == "run" for node in ir.nodes):
        raise UsageError(
            "no node is selected",
            where=ir.pipeline_info.id,
            actual=f"no path leads from {', '.join(from_nodes)} to "
            + ", ".join(to_nodes),
        )
    required = [
        node.pipeline_node for node in ir.nodes if _required(node.pipeline_node)
    ]
    if not required:
        return None
    with metadata.Metadata(connection) as handle:
        base = _base_run(handle.store, required, base_run_id)
        partial_run_utils.set_base_pipeline_run_strategy(
            ir.runtime_spec.snapshot_settings, base
        )
        partial_run_utils.snapshot(handle, ir)
    return base


def _resolvers_before(
    ir: Any, from_nodes: Collection[str], to_nodes: Collection[str]
) -> list[str]:
    """Returns the unselected resolvers directly upstream of the selected nodes.

    They run too: a baseline of the base run may not be the latest any more.
    """
    nodes = {node.pipeline_node.node_info.id: node.pipeline_node for node in ir.nodes}
    views = partial_run_utils.make_ordered_node_map(
        node_proto_view.get_view_for_all_in(ir)
    )
    running = partial_run_utils.compute_nodes_to_run(
        views, from_nodes, to_nodes or list(nodes), []
    )
    return [
        name
        for name, node in nodes.items()
        if _kind(node).resolver
        and name not in running
        and not running.isdisjoint(node.downstream_nodes)
    ]


def _base_run(store: Any, required: Collection[Any], wanted: str | None) -> str:
    """Returns the newest run in which all required nodes have succeeded.

    If one is ``wanted``, no other is allowed.
    """
    candidates: set[str] | None = None
    for node in required:
        finished = set()
        contexts = [item for item in _contexts(node) if item[0] != _RUN]
        for execution in node_status.executions_of(store, contexts):
            if node_status.state_of(execution) in ("ran", "cached"):
                runs = store.get_contexts_by_execution(execution.id)
                finished |= {run.name for run in runs if run.type == _RUN}
        candidates = finished if candidates is None else candidates & finished
    if not candidates or wanted not in (None, *candidates):
        names = [node.node_info.id for node in required]
        which = f"run {wanted} does not have" if wanted else "no earlier run has"
        raise UsageError(
            f"{which} what this part of the graph starts from",
            expected="a run in which these nodes have finished: " + ", ".join(names),
            hint="run the whole pipeline first",
        )
    if wanted:
        return wanted
    ids = {
        name: store.get_context_by_type_and_name(_RUN, name).id for name in candidates
    }
    return max(candidates, key=lambda name: ids[name])


def _kind(node: Any) -> NodeKind:
    return kind_of(node.node_info.type.name)


def _planned(node: Any, base: str | None, own: Mapping[str, Any]) -> PlannedNode:
    """Returns a node's entry in the graph file."""
    name, kind, action = node.node_info.id, _kind(node), _action(node)
    return PlannedNode(
        id=name,
        kind=kind.name,
        upstream=tuple(node.upstream_nodes),
        contexts=tuple(_contexts(node)),
        gate=kind.gate or (name in own and bool(own[name].before)),
        resolver=kind.resolver,
        judges_data=kind.judges_data,
        # A custom Pusher does not push to the directory of `push`.
        pushes=kind.pushes and name not in own,
        action="skip" if action == "reuse" and base is None else action,
        needs=dict(_needs(node)),
        optional=tuple(sorted(_optional(node))),
        when_skipped=_when_skipped(node.inputs),
    )


def _needs(node: Any) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yields each required input of a node and its possible producers."""
    for key, spec in node.inputs.inputs.items():
        makers = _makers(node.inputs, spec)
        # Any other producer belongs to another pipeline.
        if spec.min_count and makers and {*makers} <= {*node.upstream_nodes}:
            yield key, makers


def _optional(node: Any) -> set[str]:
    """Returns the upstream nodes whose outputs are optional inputs of a node.

    Control dependencies are not optional, nor any input of a node that makes or reads a
    blessing: without it TFX's Evaluator would bless a model without comparing it, and
    TFX's Pusher would push a model that was not evaluated.
    """
    may: set[str] = set()
    must: set[str] = set()
    made = {spec.artifact_spec.type.name for spec in node.outputs.outputs.values()}
    if made & JUDGEMENTS:
        return may
    for spec in node.inputs.inputs.values():
        types = {channel.artifact_query.type.name for channel in spec.channels}
        free = not (spec.min_count or spec.hidden or types & JUDGEMENTS)
        (may if free else must).update(_makers(node.inputs, spec))
    return may - must


def _makers(inputs: Any, spec: Any) -> tuple[str, ...]:
    """Returns the producers of an input, those of a union included."""
    parts = [inputs.inputs[key] for key in spec.mixed_inputs.input_keys]
    channels = [channel for part in (spec, *parts) for channel in part.channels]
    makers = (channel.producer_node_query.id for channel in channels)
    return tuple(dict.fromkeys(makers))


def _when_skipped(inputs: Any) -> str:
    """Returns the reason if TFX creates no execution for a node without inputs."""
    lists = pipeline_pb2.InputGraph.DataType.ARTIFACT_MULTIMAP_LIST
    loops = any(
        graph.nodes[graph.result_node].output_data_type == lists
        for graph in inputs.input_graphs.values()
    )
    reasons = []
    if inputs.conditionals:
        reasons.append("condition is false")
    if loops:
        reasons.append("its ForEach has nothing to go over")
    return ", or ".join(reasons) or "its inputs resolve to nothing"


def _contexts(node: Any) -> list[tuple[str, str]]:
    return [
        (spec.type.name, spec.name.field_value.string_value)
        for spec in node.contexts.contexts
    ]


def _action(node: Any) -> Action:
    if not node.execution_options.HasField("skip"):
        return "run"
    reused = partial_run_utils.should_attempt_to_reuse_artifact(node.execution_options)
    return "reuse" if reused else "skip"


def _required(node: Any) -> bool:
    skip = pipeline_pb2.NodeExecutionOptions.Skip
    options = node.execution_options
    return options.HasField("skip") and (
        options.skip.reuse_artifacts_mode == skip.REQUIRED
    )
