"""Operations: list pushed versions, retire a model as a baseline."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from runners.metadata.metadata_graph import MetadataGraph
from runners.metadata.read_metadata import read_metadata
from runners.metadata.served_models import resolved, served_models
from runners.operations.find_run import Warn, ignore
from runners.operations.pipeline_request import PipelineRequest
from runners.retention.retire_model import Retired, find_blessed_models, retire
from serving.model_store import ModelVersion, store_at
from sluice.errors import WorkspaceError


@dataclass(frozen=True)
class ListedModel:
    """A pushed version.

    Attributes:
      version: its entry in the model store.
      damage: how its files differ from what was pushed; None if they do not.
      retired: the reason why its model was retired as a baseline; None if it was not.
    """

    version: ModelVersion
    damage: str | None
    retired: str | None

    @property
    def flaws(self) -> dict[str, str]:
        """The reasons why it is ``damaged``, ``unrecorded`` or ``retired``."""
        damaged = "damaged" if self.version.digest else "unrecorded"
        flaws = {damaged: self.damage, "retired": self.retired}
        return {state: why for state, why in flaws.items() if why}

    def to_dict(self) -> dict[str, Any]:
        """Returns the JSON form."""
        return {
            "version": self.version.version,
            "uri": self.version.uri,
            "digest": self.version.digest,
            "published_at": self.version.published_at,
            "facts": self.version.facts,
            "damage": self.damage,
            "retired": self.retired,
        }


def list_models(request: PipelineRequest, warn: Warn = ignore) -> list[ListedModel]:
    """Returns the pushed versions of a pipeline, newest first; reads all their bytes.

    Raises:
      UsageError: the config is invalid.
      ServingError: the serving directory cannot be read.
    """
    config = request.load_config()
    serving_dir = request.published_in(config)
    versions = store_at(serving_dir).versions()[::-1]
    if not versions:
        return []
    try:
        graph = read_metadata(request.workspace_of(config).metadata_db)
    except WorkspaceError as error:
        warn(f"{error.what}: cannot tell which models are retired")
        graph = MetadataGraph()
    models = {
        os.path.basename(item.version.uri): item.model_id
        for item in served_models(graph, [serving_dir])
        if os.path.dirname(item.version.uri) == resolved(serving_dir)
    }
    retired = {item.model.id: item.retired for item in find_blessed_models(graph)}
    return [
        ListedModel(
            item,
            item.difference(),
            retired.get(models.get(os.path.basename(item.uri)) or 0),
        )
        for item in versions
    ]


@dataclass(frozen=True, kw_only=True)
class RetireRequest(PipelineRequest):
    """The model to retire as a baseline.

    Attributes:
      reference: see ``find_artifact``; None for all that are damaged beyond repair.
      reason: recorded, and shown in the verdict on the next model.
      command: shown to other commands while this holds the lock.
    """

    reference: str | None
    reason: str
    command: str = "sluice models retire"


@dataclass(frozen=True)
class RetiredModels:
    """The models that were retired, and the baseline that remains."""

    pipeline: str
    reason: str
    retired: Retired

    def to_dict(self) -> dict[str, Any]:
        """Returns the JSON form."""
        rows = [
            {"artifact": item.model.id, "uri": item.model.uri, "name": title}
            for item, title in self.retired.models
        ]
        return {
            "schema_version": 1,
            "pipeline": self.pipeline,
            "reason": self.reason,
            "retired": rows,
            "baseline": self.retired.baseline,
        }


def retire_models(request: RetireRequest) -> RetiredModels:
    """Retires blessed models as baselines; see ``retire`` for the errors."""
    config = request.load_config()
    workspace = request.workspace_of(config)
    done = retire(
        workspace,
        [request.serving_dir_of(config), workspace.serving],
        request.reference,
        reason=request.reason,
        command=request.command,
    )
    return RetiredModels(config.name, request.reason, done)
