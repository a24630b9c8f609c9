"""Reads a workspace's ML Metadata into a graph, without importing TFX."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runners.metadata.metadata_file import check_readable
from runners.metadata.metadata_graph import Execution, MetadataGraph
from sluice.errors import WorkspaceError
from sluice.mlmd_items import Artifact, iso_time, plain_properties, state_name
from sluice.workspace import Workspace

if TYPE_CHECKING:
    from ml_metadata import MetadataStore
    from ml_metadata.proto.metadata_store_pb2 import ConnectionConfig

# One query's list of ids: SQLite limits the length of a statement.
_IDS_PER_QUERY = 1000


@contextmanager
def open_store(
    database: Path | ConnectionConfig, *, writable: bool = False
) -> Iterator[MetadataStore]:
    """Opens an ML Metadata store.

    Args:
      database: an existing SQLite file, which unlike in TFX is never created, or a
        ``ConnectionConfig``, which is used as it is.
      writable: whether the file is opened for writing.

    Raises:
      WorkspaceError: it cannot be opened, read or written, now or inside the block,
        such as on a full disk.
    """
    import ml_metadata
    from ml_metadata.proto import metadata_store_pb2

    config: Any = database
    if isinstance(database, Path):
        modes = metadata_store_pb2.SqliteMetadataSourceConfig
        config = metadata_store_pb2.ConnectionConfig()
        config.sqlite.filename_uri = str(database)
        config.sqlite.connection_mode = modes.READWRITE if writable else modes.READONLY
    try:
        yield ml_metadata.MetadataStore(config)
    except (RuntimeError, ml_metadata.errors.StatusError) as error:
        if isinstance(database, Path):
            check_readable(Workspace(database.parent))
        raise WorkspaceError(
            "ML Metadata cannot be read or written",
            where=config.sqlite.filename_uri or None,
            actual=str(error).partition(" query:  ")[0].strip(),
            hint="free some space if its disk is full, then run the command again (a "
            "run: sluice resume)",
        ) from error


def read_metadata(path: Path) -> MetadataGraph:
    """Returns everything that a metadata file holds; nothing where there is no file.

    Raises:
      WorkspaceError: the file is damaged or cannot be read.
    """
    if not path.exists():
        return MetadataGraph()
    with open_store(path) as store:
        executions = store.get_executions()
        nodes = _nodes(store)
        runs = _executions_by_context(store, "pipeline_run")
        links = _links(store, [item.id for item in executions])
        return MetadataGraph(
            {item.id: Artifact.of(item) for item in store.get_artifacts()},
            {
                item.id: _execution(
                    item, nodes.get(item.id, ""), runs[item.id], links[item.id]
                )
                for item in executions
            },
        )


def read_upstream(
    store: MetadataStore, artifact_id: int, max_executions: int = 200
) -> tuple[MetadataGraph, bool]:
    """Returns what an artifact was made from, and the executions that made that.

    Unlike ``read_metadata``, this takes as long however many runs there are.

    Args:
      store: an ML Metadata store.
      artifact_id: one of its artifacts.
      max_executions: limit, for models that each began with the weights of the last.

    Returns:
      The nearest part of the lineage, and whether it is all.
    """
    artifacts: dict[int, Artifact] = {}
    executions: dict[int, Execution] = {}
    wanted = {artifact_id}
    while wanted and len(executions) < max_executions:
        ids = list(wanted)
        found = store.get_artifacts_by_id(ids)
        artifacts |= {item.id: Artifact.of(item) for item in found}
        makers = _makers(store, ids) - executions.keys()
        links = _links(store, list(makers))
        for item in store.get_executions_by_id(list(makers)) if makers else ():
            contexts = store.get_contexts_by_execution(item.id)
            names: dict[str, list[str]] = defaultdict(list)
            for context in contexts:
                names[context.type].append(context.name)
            node = "".join(names["node"][:1])
            for pipeline in names["pipeline"]:
                node = node.removeprefix(f"{pipeline}.")
            maker = _execution(item, node, names["pipeline_run"], links[item.id])
            executions[item.id] = maker
            wanted |= {read for items in maker.inputs.values() for read in items}
        wanted -= artifacts.keys()
    made = {item for execution in executions.values() for item in execution.touched()}
    others = [item for item in made if item not in artifacts]
    for item in store.get_artifacts_by_id(others) if others else ():
        artifacts[item.id] = Artifact.of(item)
    return MetadataGraph(artifacts, executions), not wanted


def _makers(store: MetadataStore, artifact_ids: list[int]) -> set[int]:
    """Returns the executions that made some artifacts: the first to put each out."""
    from ml_metadata.proto.metadata_store_pb2 import Event

    first: dict[int, int] = {}
    for event in store.get_events_by_artifact_ids(artifact_ids):
        if event.type == Event.OUTPUT:
            known = first.get(event.artifact_id, event.execution_id)
            first[event.artifact_id] = min(known, event.execution_id)
    return {*first.values()}


def _execution(
    item: Any, node: str, run_ids: Iterable[str], links: dict[str, Any]
) -> Execution:
    return Execution(
        id=item.id,
        node=node,
        kind=item.type.rpartition(".")[2],
        run_ids=tuple(sorted(run_ids)),
        state=state_name(type(item).State, item.last_known_state),
        started_at=iso_time(item.create_time_since_epoch),
        ended_at=iso_time(item.last_update_time_since_epoch),
        properties=plain_properties(item),
        **links,
    )


def _nodes(store: MetadataStore) -> dict[int, str]:
    """Returns the node of each execution; its context is ``<pipeline>.<node>``."""
    pipelines = [context.name for context in store.get_contexts_by_type("pipeline")]
    nodes = {}
    for execution_id, names in _executions_by_context(store, "node").items():
        for pipeline in pipelines:
            if names[0].startswith(f"{pipeline}."):
                nodes[execution_id] = names[0].removeprefix(f"{pipeline}.")
    return nodes


def _executions_by_context(store: MetadataStore, kind: str) -> dict[int, list[str]]:
    """Returns the names of each execution's contexts of one type."""
    names: dict[int, list[str]] = defaultdict(list)
    for context in store.get_contexts_by_type(kind):
        for execution in store.get_executions_by_context(context.id):
            names[execution.id].append(context.name)
    return names


def _links(store: MetadataStore, ids: list[int]) -> dict[int, dict[str, Any]]:
    from ml_metadata.proto.metadata_store_pb2 import Event

    fields = {
        Event.INPUT: "inputs",
        Event.OUTPUT: "outputs",
        Event.INTERNAL_OUTPUT: "resolved",
    }
    links: dict[int, dict[str, dict[str, tuple[int, ...]]]]
    links = defaultdict(lambda: {name: {} for name in fields.values()})
    for start in range(0, len(ids), _IDS_PER_QUERY):
        for event in store.get_events_by_execution_ids(
            ids[start : start + _IDS_PER_QUERY]
        ):
            if event.type in fields:
                link = links[event.execution_id][fields[event.type]]
                key = event.path.steps[0].key if event.path.steps else ""
                link[key] = (*link.get(key, ()), event.artifact_id)
    return links
