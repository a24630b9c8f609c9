"""Resolver strategy: the model trained last, or the one that is served now.

Finds the model whose weights a training starts from. Damaged models are skipped.
"""

from __future__ import annotations

from typing import Any

from tfx.dsl.components.common import resolver

from components.baseline_model.blessed_models import damage_of
from serving.model_store import store_at
from sluice.mlmd_items import Artifact
from sluice.storage.contents import Contents


class TrainedModel(resolver.ResolverStrategy):
    """Strategy of a ``Resolver`` with the channel ``model``."""

    def __init__(self, served_in: str | None = None) -> None:
        """Makes the strategy.

        Args:
          served_in: the serving directory, whose newest version is found among the
            models by its digest; None to find the model trained last.
        """
        self._served_in = served_in

    def resolve_artifacts(
        self, store: Any, input_dict: dict[str, list[Any]]
    ) -> dict[str, list[Any]]:
        """Returns the model, or none."""
        wanted = None
        if self._served_in is not None:
            newest = store_at(self._served_in).newest()
            if newest is None or newest.digest is None:
                return {"model": []}
            wanted = newest.digest
        for item in sorted(input_dict["model"], key=lambda model: -model.id):
            artifact = Artifact.of(item.mlmd_artifact)
            if artifact.state != "live":
                continue
            contents = Contents.recorded(artifact.properties)
            if wanted and (contents is None or contents.model_digest != wanted):
                continue
            if damage_of(artifact) is None:
                return {"model": [item]}
        return {"model": []}
