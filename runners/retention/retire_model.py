"""Retires blessed models as baselines; what is served stays served."""

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


def find_blessed_models(graph: MetadataGraph) -> list[BlessedModel]:
    """Returns the blessed models of a pipeline, newest first."""
    return blessed_models(graph.artifacts.values())


def model_name(graph: MetadataGraph, model: BlessedModel) -> str:
    """Returns a model's name for people; see ``name_of``."""
    producer = graph.producer(model.model.id)
    run_id = producer.run_id if producer else None
    return name_of(model, run_id, graph.artifacts.values())


def find_baseline_name(graph: MetadataGraph) -> str | None:
    """Returns the name of the next candidate's baseline; None if there is none."""
    for item in find_blessed_models(graph):
        if item.retired is None and not _is_lost(graph, item):
            return model_name(graph, item)
    return None


def _is_lost(graph: MetadataGraph, model: BlessedModel) -> bool:
    """Whether a model is damaged and no served version can restore it."""
    return bool(model.damage()) and served_copy(model, graph.artifacts.values()) is None


@dataclass(frozen=True)
class Retired:
    """Retired models and the baseline that remains.

    ``models`` are those retired, with their names; ``baseline`` is the next one's name.
    """

    models: Sequence[tuple[BlessedModel, str]]
    baseline: str | None


def retire(
    workspace: Workspace,
    serving_dirs: Sequence[str | Path],
    reference: str | None,
    *,
    reason: str,
    command: str,
) -> Retired:
    """Retires blessed models, so that none of them is a baseline any more.

    Args:
      workspace: of the pipeline.
      serving_dirs: the current serving directories; those of earlier runs are added.
      reference: the model, see ``find_artifact``; None for all that are damaged and
        that no served version can restore.
      reason: recorded, and shown in the verdict on the next model.
      command: shown to other commands while this holds the lock.

    Raises:
      UsageError: the reference is not a blessed model, or there is no reason.
      LockedError: a run of the pipeline is in progress.
      WorkspaceError: the metadata cannot be written.
    """
    if not reason.strip():
        raise UsageError("a reason is needed", hint="--reason 'trained on test data'")
    if not find_blessed_models(read_metadata(workspace.metadata_db)):
        raise UsageError(
            f"no model of {workspace.root.name} has been blessed yet",
            where=workspace.metadata_db,
            hint=f"sluice runs {workspace.root.name}",
        )
    with workspace.exclusive(command, brief=True):
        graph = read_metadata(workspace.metadata_db)
        blessed = find_blessed_models(graph)
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
        names = [(item, model_name(graph, item)) for item in chosen]
        return Retired(names, find_baseline_name(after))


def _find(
    graph: MetadataGraph,
    served: Sequence[ServedModel],
    blessed: Sequence[BlessedModel],
    reference: str,
) -> BlessedModel:
    """Returns the blessed model that a reference names."""
    found = find_artifact(graph, served, reference)
    for item in blessed:
        if item.model.id == found.artifact_id:
            return item
    raise UsageError(
        f"{found.read_as} is not a blessed model, so it cannot be a baseline",
        where=graph.artifacts[found.artifact_id].uri,
        expected="one of the blessed models",
        examples=[model_name(graph, item) for item in blessed],
    )
