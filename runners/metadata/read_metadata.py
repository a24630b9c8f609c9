"""Reads ML Metadata into a graph of plain values, without importing TFX."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ml_metadata import MetadataStore, errors
from ml_metadata.proto.metadata_store_pb2 import (
    ConnectionConfig,
    Event,
    SqliteMetadataSourceConfig,
)

from runners.metadata.graph import Execution, Links, MetadataGraph
from sluice.errors import WorkspaceError
from sluice.mlmd_items import Artifact, iso_time, plain_properties, state_name

# One query's list of ids: SQLite limits the length of a statement.
_IDS_PER_QUERY = 1000
_INPUT = (Event.INPUT, Event.INTERNAL_INPUT)
_OUTPUT = (Event.OUTPUT, Event.INTERNAL_OUTPUT)


@contextmanager
def open_store(database: Path, *, writable: bool = False) -> Iterator[MetadataStore]:
    """Opens an existing SQLite file, which unlike in TFX is never created.

    Raises:
      WorkspaceError: it cannot be opened, read or written, now or inside the block,
        such as on a full disk.
    """
    modes = SqliteMetadataSourceConfig
    mode = modes.READWRITE if writable else modes.READONLY
    config = ConnectionConfig()
    config.sqlite.CopyFrom(modes(filename_uri=str(database), connection_mode=mode))
    try:
        yield MetadataStore(config)
    except (RuntimeError, errors.StatusError) as error:
        raise WorkspaceError(
            "ML Metadata cannot be read or written",
            where=database,
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
    contexts: dict[int, list[Any]] = defaultdict(list)
    with open_store(path) as store:
        for kind in ("pipeline", "node", "pipeline_run"):
            for context in store.get_contexts_by_type(kind):
                for item in store.get_executions_by_context(context.id):
                    contexts[item.id].append(context)
        executions = store.get_executions()
        events = _events(store, [item.id for item in executions])
        return _graph(store.get_artifacts(), executions, contexts, events)


def read_executions(store: MetadataStore, ids: Sequence[int]) -> MetadataGraph:
    """Returns some executions with their artifacts."""
    events = _events(store, ids)
    linked = {event.artifact_id for event in events}
    return _graph(
        store.get_artifacts_by_id([*linked]) if linked else (),
        store.get_executions_by_id(ids) if ids else (),
        {item: store.get_contexts_by_execution(item) for item in ids},
        events,
    )


def read_upstream(
    store: MetadataStore, artifact_id: int, max_executions: int = 200
) -> tuple[MetadataGraph, bool]:
    """Returns what an artifact was made from, however many runs there are.

    Returns:
      The nearest part of the lineage, at least ``max_executions`` of it, since each
      model may have begun with the weights of the last; and whether it is all.
    """
    executions: set[int] = set()
    wanted, seen = {artifact_id}, {artifact_id}
    while wanted and len(executions) < max_executions:
        makers: dict[int, int] = {}
        for event in store.get_events_by_artifact_ids([*wanted]):
            if event.type in _OUTPUT:
                known = makers.get(event.artifact_id, event.execution_id)
                makers[event.artifact_id] = min(known, event.execution_id)
        new = {*makers.values()} - executions
        executions |= new
        events = _events(store, [*new])
        wanted = {item.artifact_id for item in events if item.type in _INPUT} - seen
        seen |= wanted
    return read_executions(store, [*executions]), not wanted


def _events(store: MetadataStore, ids: Sequence[int]) -> list[Event]:
    parts = [ids[at : at + _IDS_PER_QUERY] for at in range(0, len(ids), _IDS_PER_QUERY)]
    found = [x for part in parts for x in store.get_events_by_execution_ids(part)]
    return [event for event in found if event.type in _INPUT + _OUTPUT]


def _graph(
    artifacts: Iterable[Any],
    executions: Iterable[Any],
    contexts: Mapping[int, Iterable[Any]],
    events: Iterable[Event],
) -> MetadataGraph:
    inputs: dict[int, dict[str, tuple[int, ...]]] = defaultdict(dict)
    outputs: dict[int, dict[str, tuple[int, ...]]] = defaultdict(dict)
    for event in events:
        links = (inputs if event.type in _INPUT else outputs)[event.execution_id]
        key = event.path.steps[0].key if event.path.steps else ""
        links[key] = (*links.get(key, ()), event.artifact_id)
    return MetadataGraph(
        {item.id: Artifact.of(item) for item in artifacts},
        {
            item.id: _execution(
                item, contexts[item.id], inputs[item.id], outputs[item.id]
            )
            for item in executions
        },
    )


def _execution(
    item: Any, contexts: Iterable[Any], inputs: Links, outputs: Links
) -> Execution:
    names = {context.type: context.name for context in contexts}
    runs = [context.name for context in contexts if context.type == "pipeline_run"]
    return Execution(
        id=item.id,
        # The context of a node is named ``<pipeline>.<node>``.
        node=names.get("node", "").removeprefix(f"{names.get('pipeline')}."),
        kind=item.type.rpartition(".")[2],
        run_ids=tuple(sorted(runs)),
        state=state_name(type(item).State, item.last_known_state),
        started_at=iso_time(item.create_time_since_epoch),
        ended_at=iso_time(item.last_update_time_since_epoch),
        properties=plain_properties(item),
        inputs=inputs,
        outputs=outputs,
    )
