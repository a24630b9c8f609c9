"""The pushed versions of a pipeline: damaged, unrecorded and retired ones."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from typing import Any

from components.baseline_model.blessed_models import (
    RETIRED,
    BlessedModel,
    blessed_models,
    name_of,
    search_baseline,
)
from pipeline.config.config import Config
from runners.metadata.read_metadata import (
    MetadataGraph,
    open_store,
    read_metadata,
)
from runners.metadata.trace_lineage import find_artifact, served_models
from runners.operations.find_run import (
    published_in,
    serving_dir_of,
    workspace_of,
)
from serving.model_store import ModelVersion, store_at
from serving.store_owner import Owner
from sluice.errors import UsageError


@dataclass(frozen=True)
class ListedModel:
    """A pushed version.

    Attributes:
      version: its entry in the model store.
      damage: how its files differ from what was pushed; None if they do not.
    """

    version: ModelVersion
    damage: str | None

    @property
    def flaws(self) -> dict[str, str]:
        """The reasons why it is ``damaged``, ``unrecorded`` or ``retired``."""
        damaged = "damaged" if self.version.digest else "unrecorded"
        flaws = {damaged: self.damage, "retired": self.version.retired}
        return {state: why for state, why in flaws.items() if why}

    def to_dict(self) -> dict[str, Any]:
        """Returns the JSON form."""
        version = asdict(self.version)
        del version["generations"]
        return {**version, "damage": self.damage}


def list_models(config: Config) -> list[ListedModel]:
    """Returns the pushed versions of a pipeline, newest first; reads all their bytes.

    Raises:
      ServingError: the serving directory cannot be read; RemoteError if it is in a
        bucket.
    """
    versions = store_at(published_in(config)).versions()[::-1]
    return [ListedModel(item, item.difference()) for item in versions]


def retire(
    config: Config,
    reference: str,
    reason: str,
    command: str = "runners.operations.models",
) -> dict[str, Any]:
    """Retires a blessed model, so that it is neither pushed again nor a baseline.

    Args:
      config: of the pipeline.
      reference: the model, see ``find_artifact``.
      reason: recorded, and shown in the verdict on the next model.
      command: shown to other commands while this holds the lock.

    Returns:
      What ``--json`` prints, with the name of the next baseline.

    Raises:
      UsageError: the reference is not a blessed model.
      LockedError: a run of the pipeline is in progress.
      WorkspaceError: the metadata cannot be written.
      ServingError: the record of a pushed version cannot be written.
    """
    workspace = workspace_of(config)
    graph = read_metadata(workspace.metadata_db)
    blessed = {item.model.id: item for item in blessed_models(graph.artifacts.values())}
    served = served_models(graph, [serving_dir_of(config), workspace.serving])
    artifact_id, read_as = find_artifact(graph, served, reference)
    if artifact_id not in blessed:
        raise UsageError(
            f"{read_as} is not a blessed model, so it cannot be a baseline",
            where=graph.artifacts[artifact_id].uri,
            examples=[_name(graph, item) for item in blessed.values()] or ["none yet"],
        )
    with (
        workspace.exclusive(command),
        open_store(workspace.metadata_db, writable=True) as store,
    ):
        owner = Owner(config.name, workspace.id)
        for pushed in (
            model.version for model in served if model.model_id == artifact_id
        ):
            store_at(os.path.dirname(pushed.uri)).retire(pushed.version, reason, owner)
        (artifact,) = store.get_artifacts_by_id([artifact_id])
        artifact.custom_properties[RETIRED].string_value = reason
        store.put_artifacts([artifact])
    retired = blessed.pop(artifact_id)
    searched = search_baseline(blessed.values())
    baseline = next((candidate for candidate, why in searched if why is None), None)
    model = {"artifact": artifact_id, "uri": retired.model.uri}
    return {
        "pipeline": config.name,
        "reason": reason,
        "retired": [{**model, "name": _name(graph, retired)}],
        "baseline": _name(graph, baseline) if baseline else None,
    }


def _name(graph: MetadataGraph, model: BlessedModel) -> str:
    producer = graph.producer(model.model.id)
    run_id = producer.run_id if producer else None
    return name_of(model, run_id, graph.artifacts.values())
