"""The pushed versions of a pipeline: damaged, unrecorded and retired ones."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from components.baseline_model.blessed_models import blessed_models
from pipeline.config.config import Config
from runners.operations.pipeline_request import published_in, workspace_of
from serving.model_store import ModelVersion, store_at


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
        version = asdict(self.version)
        del version["generations"]
        return {**version, "damage": self.damage, "retired": self.retired}


def list_models(config: Config) -> list[ListedModel]:
    """Returns the pushed versions of a pipeline, newest first; reads all their bytes.

    Raises:
      ServingError: the serving directory cannot be read; RemoteError if it is in a
        bucket.
    """
    versions = store_at(published_in(config)).versions()[::-1]
    if not versions:
        return []
    # ML Metadata's client: pages of runs do without it.
    from runners.metadata.read_metadata import read_metadata

    graph = read_metadata(workspace_of(config).metadata_db)
    blessed = blessed_models(graph.artifacts.values())
    retired = {item.model.uri: item.retired for item in blessed}
    return [
        ListedModel(
            item, item.difference(), retired.get(item.facts.get("model_uri", ""))
        )
        for item in versions
    ]
