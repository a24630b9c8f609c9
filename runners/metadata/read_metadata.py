"""Reads ML Metadata into a graph of plain values, without importing TFX."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from ml_metadata import MetadataStore, errors
from ml_metadata.proto.metadata_store_pb2 import (
    ConnectionConfig,
    Event,
    SqliteMetadataSourceConfig,
)

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


def change_artifacts(
    database: Path, ids: Sequence[int], change: Callable[[Any], None]
) -> None:
    """Changes some artifacts in ML Metadata.

    Raises:
      WorkspaceError: the file cannot be written.
    """
    if ids:
        with open_store(database, writable=True) as store:
            artifacts = store.get_artifacts_by_id(ids)
            for artifact in artifacts:
                change(artifact)
            store.put_artifacts(artifacts)


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
        # The first of several executions made it, the others found it in the cache.
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
    by_id = {}
    for proto in executions:
        names = {context.type: context.name for context in contexts[proto.id]}
        by_id[proto.id] = Execution(
            id=proto.id,
            # The context of a node is named ``<pipeline>.<node>``.
            node=names.get("node", "").removeprefix(f"{names.get('pipeline')}."),
            kind=proto.type.rpartition(".")[2],
            run_id=names.get("pipeline_run"),
            state=state_name(type(proto).State, proto.last_known_state),
            started_at=iso_time(proto.create_time_since_epoch),
            ended_at=iso_time(proto.last_update_time_since_epoch),
            properties=plain_properties(proto),
            inputs=inputs[proto.id],
            outputs=outputs[proto.id],
        )
    return MetadataGraph({proto.id: Artifact.of(proto) for proto in artifacts}, by_id)


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


Links = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class Execution:
    """One execution of a node.

    Attributes:
      id: in ML Metadata.
      node: the node's id in the pipeline.
      kind: the component's class.
      run_id: the run that it belongs to; None if there is none.
      state: ML Metadata's, in lower case.
      started_at: UTC, ISO 8601.
      ended_at: its last update, likewise.
      properties: as an artifact's.
      inputs: artifact ids by input.
      outputs: artifact ids by output; those of a cached execution or of a resolver were
        made by another.
    """

    id: int
    node: str
    kind: str
    run_id: str | None
    state: str
    started_at: str
    ended_at: str
    properties: Mapping[str, Any] = field(default_factory=dict)
    inputs: Links = field(default_factory=dict)
    outputs: Links = field(default_factory=dict)


@dataclass(frozen=True)
class MetadataGraph:
    """Artifacts and executions, by id."""

    artifacts: Mapping[int, Artifact] = field(default_factory=dict)
    executions: Mapping[int, Execution] = field(default_factory=dict)

    def executions_of(self, run_ids: Iterable[str]) -> list[Execution]:
        """Returns the executions of some runs, oldest first."""
        wanted = set(run_ids)
        by_age = sorted(self.executions.items())
        return [item for _, item in by_age if item.run_id in wanted]

    def producer(self, artifact_id: int) -> Execution | None:
        """Returns the execution that made an artifact; None if there is none.

        It is the first: executions that found it, or took it from the cache, are later.
        """
        return self._producers.get(artifact_id)

    def name_of(self, artifact_id: int) -> str:
        """Returns ``Node.output`` of an artifact, its type if no node made it."""
        execution = self.producer(artifact_id)
        if execution is not None:
            for key, artifacts in execution.outputs.items():
                if artifact_id in artifacts:
                    return f"{execution.node}.{key}"
        return self.artifacts[artifact_id].type

    def by_key(self, links: Links) -> dict[str, list[Artifact]]:
        """Returns the artifacts that are linked to an execution."""
        return {key: [self.artifacts[x] for x in ids] for key, ids in links.items()}

    def upstream(self, artifact_ids: Iterable[int]) -> tuple[set[int], set[int]]:
        """Returns the ids of some artifacts, those upstream, and their executions."""
        artifacts: set[int] = set()
        executions: set[int] = set()
        waiting = {*artifact_ids} & self.artifacts.keys()
        while waiting:
            artifacts |= waiting
            makers = [made for item in waiting if (made := self.producer(item))]
            executions.update(maker.id for maker in makers)
            waiting = ids_in(*(maker.inputs for maker in makers)) - artifacts
        return artifacts, executions

    @cached_property
    def _producers(self) -> Mapping[int, Execution]:
        found: dict[int, Execution] = {}
        for _, execution in sorted(self.executions.items(), reverse=True):
            found.update(dict.fromkeys(ids_in(execution.outputs), execution))
        return found


def ids_in(*links: Links) -> set[int]:
    """Returns the ids of all artifacts in some links."""
    return {item for link in links for items in link.values() for item in items}
