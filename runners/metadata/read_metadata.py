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

from runners.metadata.graph import Execution, MetadataGraph
from sluice.errors import WorkspaceError
from sluice.mlmd_items import Artifact, iso_time, plain_properties, state_name
from sluice.patches.ml_metadata import order_executions_by_id

order_executions_by_id()
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
        events = store.get_events_by_execution_ids([item.id for item in executions])
        return _graph(store.get_artifacts(), executions, contexts, events)


def read_executions(store: MetadataStore, ids: Sequence[int]) -> MetadataGraph:
    """Returns some executions with their artifacts."""
    events = store.get_events_by_execution_ids(ids)
    return _graph(
        store.get_artifacts_by_id([*{event.artifact_id for event in events}]),
        store.get_executions_by_id(ids),
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
        events = store.get_events_by_artifact_ids([*wanted])
        found = [(x.artifact_id, x.execution_id) for x in events if x.type in _OUTPUT]
        # Of several executions the first made it, the others found it in the cache.
        new = {*dict(sorted(found, reverse=True)).values()} - executions
        executions |= new
        events = store.get_events_by_execution_ids([*new])
        wanted = {item.artifact_id for item in events if item.type in _INPUT} - seen
        seen |= wanted
    return read_executions(store, [*executions]), not wanted


def _graph(
    artifacts: Iterable[Any],
    executions: Iterable[Any],
    contexts: Mapping[int, Iterable[Any]],
    events: Sequence[Event],
) -> MetadataGraph:
    inputs, outputs = _links(events, _INPUT), _links(events, _OUTPUT)
    found = {}
    for item in executions:
        names = {context.type: context.name for context in contexts[item.id]}
        found[item.id] = Execution(
            id=item.id,
            # The context of a node is named ``<pipeline>.<node>``.
            node=names.get("node", "").removeprefix(f"{names.get('pipeline')}."),
            kind=item.type.rpartition(".")[2],
            run_id=names.get("pipeline_run"),
            state=state_name(type(item).State, item.last_known_state),
            started_at=iso_time(item.create_time_since_epoch),
            ended_at=iso_time(item.last_update_time_since_epoch),
            properties=plain_properties(item),
            inputs=inputs[item.id],
            outputs=outputs[item.id],
        )
    return MetadataGraph({item.id: Artifact.of(item) for item in artifacts}, found)


def _links(
    events: Iterable[Event], kinds: Sequence[int]
) -> Mapping[int, dict[str, tuple[int, ...]]]:
    """Returns the ids of artifacts by execution and key."""
    links: dict[int, dict[str, tuple[int, ...]]] = defaultdict(dict)
    for event in events:
        if event.type in kinds:
            key = event.path.steps[0].key if event.path.steps else ""
            known = links[event.execution_id].get(key, ())
            links[event.execution_id][key] = (*known, event.artifact_id)
    return links
