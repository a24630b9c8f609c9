"""Blessed models of a pipeline, and how one is retired as a baseline.

A retired model is no baseline any more, whether it is damaged or not. It stays what it
is otherwise: served where it is served, and in the lineage.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from components.baseline_model.blessed_models import (
    RETIRED,
    BlessedModel,
    blessed_models,
    name_of,
    served_copy,
)
from runners.metadata.find_artifact import find_artifact
from runners.metadata.metadata_file import keep_copy
from runners.metadata.metadata_graph import MetadataGraph
from runners.metadata.read_metadata import open_store, read_metadata
from runners.metadata.served_models import ServedModel, served_models
from sluice.errors import UsageError
from sluice.workspace import Workspace


def blessed_in(graph: MetadataGraph) -> list[BlessedModel]:
    """Returns the blessed models of a pipeline, newest first."""
    return blessed_models(graph.artifacts.values())


def name_in(graph: MetadataGraph, model: BlessedModel) -> str:
    """Returns a model as people know it; see ``name_of``."""
    producer = graph.producer(model.model.id)
    run_id = producer.run_id if producer else None
    return name_of(model, run_id, graph.artifacts.values())


def baseline_in(graph: MetadataGraph) -> str | None:
    """Returns the name of the model that the next one is compared with, if any."""
    for item in blessed_in(graph):
        if item.retired is None and not _is_lost(graph, item):
            return name_in(graph, item)
    return None


def _is_lost(graph: MetadataGraph, model: BlessedModel) -> bool:
    """Whether a model is damaged and no served version can restore it."""
    return bool(model.damage()) and served_copy(model, graph.artifacts.values()) is None


@dataclass(frozen=True)
class Retired:
    """What ``retire`` has done.

    Attributes:
      models: that are retired now, with their names.
      baseline: the name of the next baseline; None where there is none.
    """

    models: Sequence[tuple[BlessedModel, str]]
    baseline: str | None


def retire(
    workspace: Workspace,
    serving_dirs: Sequence[Path],
    reference: str | None,
    *,
    reason: str,
    command: str,
) -> Retired:
    """Retires blessed models: none of them is a baseline any more.

    Args:
      workspace: of the pipeline.
      serving_dirs: where versions are pushed to, besides where earlier runs did.
      reference: which model, see ``find_artifact``; None for all that are damaged
        and that no served version can restore.
      reason: why; the verdict on the next model says it.
      command: what others are told while this holds the lock.

    Raises:
      UsageError: the reference means no blessed model, or there is no reason.
      LockedError: a run of the pipeline is in progress.
      WorkspaceError: the metadata cannot be written.
    """
    if not reason.strip():
        raise UsageError("a reason is needed", hint="--reason 'trained on test data'")
    if not blessed_in(read_metadata(workspace.metadata_db)):
        raise UsageError(
            "no model of this pipeline has been blessed",
            where=workspace.metadata_db,
            hint=f"sluice runs {workspace.root.name}",
        )
    with workspace.exclusive(command, brief=True):
        graph = read_metadata(workspace.metadata_db)
        blessed = blessed_in(graph)
        if reference is None:
            chosen = [i for i in blessed if not i.retired and _is_lost(graph, i)]
        else:
            served = served_models(graph, serving_dirs)
            chosen = [_find(graph, served, blessed, reference)]
        with open_store(workspace.metadata_db, writable=True) as store:
            for artifact in store.get_artifacts_by_id(
                [item.model.id for item in chosen]
            ):
                artifact.custom_properties[RETIRED].string_value = reason
                store.put_artifacts([artifact])
        keep_copy(workspace)
        after = read_metadata(workspace.metadata_db)
        names = [(item, name_in(graph, item)) for item in chosen]
        return Retired(names, baseline_in(after))


def _find(
    graph: MetadataGraph,
    served: Sequence[ServedModel],
    blessed: Sequence[BlessedModel],
    reference: str,
) -> BlessedModel:
    """Returns the blessed model that a reference means."""
    found = find_artifact(graph, served, reference)
    for item in blessed:
        if item.model.id == found.artifact_id:
            return item
    raise UsageError(
        f"{found.read_as} is not a blessed model, so it cannot be a baseline",
        where=graph.artifacts[found.artifact_id].uri,
        expected="one of the blessed models",
        examples=[name_in(graph, item) for item in blessed],
    )
