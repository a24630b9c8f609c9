"""The blessed models of a pipeline's past, and a verb that retires one.

A retired model is no baseline any more, whether it is damaged or not. It stays what it
is otherwise: served where it is served, and in the lineage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from components.baseline.blessed_models import (
    RETIRED,
    BlessedModel,
    blessed_models,
    name_of,
)
from runners.housekeeping.find_artifact import find_artifact
from runners.housekeeping.metadata_graph import Artifact, MetadataGraph
from runners.housekeeping.read_metadata import open_store, read_metadata
from runners.housekeeping.served_models import served_models
from runners.local.metadata_file import keep_copy
from sluice.errors import UsageError
from sluice.workspace import Workspace


def blessed_in(graph: MetadataGraph) -> list[BlessedModel]:
    """Returns the blessed models of a pipeline, newest first."""
    return blessed_models(_live(graph, "Model"), _live(graph, "ModelBlessing"))


def name_in(graph: MetadataGraph, model: BlessedModel) -> str:
    """Returns a model as people know it; see ``name_of``."""
    producer = graph.producer(model.model.id)
    run_id = producer.run_id if producer else None
    return name_of(model, run_id, pushes_in(graph))


def pushes_in(graph: MetadataGraph) -> list[Artifact]:
    """Returns the PushedModel artifacts of a pipeline."""
    return _live(graph, "PushedModel")


def _live(graph: MetadataGraph, kind: str) -> list[Artifact]:
    artifacts = graph.artifacts.values()
    return [item for item in artifacts if item.type == kind and item.state == "live"]


@dataclass(frozen=True)
class Retired:
    """What ``retire`` has done.

    Attributes:
      models: that are retired now, with their names.
      graph: the pipeline's metadata after it.
    """

    models: Sequence[tuple[BlessedModel, str]]
    graph: MetadataGraph


Choose = Callable[[MetadataGraph, list[BlessedModel]], Iterable[BlessedModel]]


def retire(
    workspace: Workspace, choose: Choose, *, reason: str, command: str
) -> Retired:
    """Retires blessed models: none of them is a baseline any more.

    Args:
      workspace: of the pipeline.
      choose: returns which, of the blessed models.
      reason: why; it is shown wherever a newer model is compared with an older one.
      command: what others are told while this holds the lock.

    Raises:
      UsageError: the pipeline has no blessed model, or there is no reason.
      LockedError: a run of the pipeline is in progress.
      WorkspaceError: the metadata cannot be written.
    """
    if not reason.strip():
        raise UsageError("a reason is needed", hint="--reason 'trained on test data'")
    if not blessed_in(read_metadata(workspace.metadata_db)):
        raise UsageError(
            "no model of this pipeline has been blessed",
            where=workspace.metadata_db,
            hint="sluice runs shows what has become of its runs",
        )
    with workspace.exclusive(command, brief=True):
        graph = read_metadata(workspace.metadata_db)
        chosen = list(choose(graph, blessed_in(graph)))
        names = [(item, name_in(graph, item)) for item in chosen]
        with open_store(workspace.metadata_db, writable=True) as store:
            artifacts = store.get_artifacts_by_id([item.model.id for item in chosen])
            for artifact in artifacts:
                artifact.custom_properties[RETIRED].string_value = reason
            if artifacts:
                store.put_artifacts(artifacts)
        keep_copy(workspace)
        return Retired(names, read_metadata(workspace.metadata_db))


def find_blessed(
    graph: MetadataGraph,
    blessed: Sequence[BlessedModel],
    reference: str,
    serving_dirs: Iterable[Path],
) -> BlessedModel:
    """Returns the blessed model that a reference means; see ``find_artifact``.

    Raises:
      UsageError: it means no artifact, or one that is no blessed model.
    """
    found = find_artifact(graph, served_models(graph, serving_dirs), reference)
    for item in blessed:
        if item.model.id == found.artifact_id:
            return item
    raise UsageError(
        f"{found.read_as} is no blessed model, so it is no baseline",
        where=graph.artifacts[found.artifact_id].uri,
        expected="one of the blessed models",
        examples=[name_in(graph, item) for item in blessed],
    )
