"""Retires blessed models as baselines; what is served stays served."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from components.baseline_model.blessed_models import (
    RETIRED,
    BlessedModel,
    blessed_models,
    name_of,
    search_baseline,
)
from runners.metadata.find_artifact import find_artifact
from runners.metadata.graph import MetadataGraph
from runners.metadata.read_metadata import open_store, read_metadata
from runners.metadata.served_models import served_models
from sluice.errors import UsageError
from sluice.workspace import Workspace


class Retired(NamedTuple):
    """A retired model, its name, and the name of the next baseline."""

    model: BlessedModel
    name: str
    baseline: str | None


def retire(
    workspace: Workspace,
    serving_dirs: Sequence[str | Path],
    reference: str,
    *,
    reason: str,
    command: str,
) -> Retired:
    """Retires a blessed model, so that it is no baseline any more.

    Args:
      workspace: of the pipeline.
      serving_dirs: the current serving directories; those of earlier runs are added.
      reference: the model, see ``find_artifact``.
      reason: recorded, and shown in the verdict on the next model.
      command: shown to other commands while this holds the lock.

    Raises:
      UsageError: the reference is not a blessed model.
      LockedError: a run of the pipeline is in progress.
      WorkspaceError: the metadata cannot be written.
    """
    graph = read_metadata(workspace.metadata_db)
    blessed = {item.model.id: item for item in blessed_models(graph.artifacts.values())}
    served = served_models(graph, serving_dirs)
    artifact_id, read_as = find_artifact(graph, served, reference)
    if artifact_id not in blessed:
        raise UsageError(
            f"{read_as} is not a blessed model, so it cannot be a baseline",
            where=graph.artifacts[artifact_id].uri,
            expected="one of the blessed models",
            examples=[_name(graph, item) for item in blessed.values()] or ["none yet"],
        )
    with (
        workspace.exclusive(command),
        open_store(workspace.metadata_db, writable=True) as store,
    ):
        (artifact,) = store.get_artifacts_by_id([artifact_id])
        artifact.custom_properties[RETIRED].string_value = reason
        store.put_artifacts([artifact])
    retired = blessed.pop(artifact_id)
    usable = (x for x, reason in search_baseline(blessed.values()) if reason is None)
    baseline = next(usable, None)
    return Retired(
        retired, _name(graph, retired), _name(graph, baseline) if baseline else None
    )


def _name(graph: MetadataGraph, model: BlessedModel) -> str:
    producer = graph.producer(model.model.id)
    run_id = producer.run_id if producer else None
    return name_of(model, run_id, graph.artifacts.values())
