"""Reads a workspace's ML Metadata into a graph, without importing TFX."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
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
                item.id: Execution(
                    id=item.id,
                    node=nodes.get(item.id, ""),
                    kind=item.type.rpartition(".")[2],
                    run_ids=tuple(sorted(runs[item.id])),
                    state=state_name(type(item).State, item.last_known_state),
                    started_at=iso_time(item.create_time_since_epoch),
                    ended_at=iso_time(item.last_update_time_since_epoch),
                    properties=plain_properties(item),
                    **links[item.id],
                )
                for item in executions
            },
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
