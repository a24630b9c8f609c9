"""Resolver strategy: the model trained last, or the one that is served now.

Finds the model whose weights a training starts from. Missing models are skipped.
"""

from __future__ import annotations

from typing import Any

from tfx.dsl.components.common import resolver

from serving.model_store import store_at
from sluice.storage.storage import storage_for


class TrainedModel(resolver.ResolverStrategy):
    """Strategy of a ``Resolver`` with the channel ``model``."""

    def __init__(self, served_in: str | None = None) -> None:
        """Makes the strategy.

        Args:
          served_in: the serving directory, whose newest version is found among the
            models by its address; None to find the model trained last.
        """
        self._served_in = served_in

    def resolve_artifacts(
        self, store: Any, input_dict: dict[str, list[Any]]
    ) -> dict[str, list[Any]]:
        """Returns the model, or none."""
        wanted = None
        if self._served_in is not None:
            newest = store_at(self._served_in).newest()
            wanted = newest.facts.get("model_uri") if newest else None
            if wanted is None:
                return {"model": []}
        for item in sorted(input_dict["model"], key=lambda model: -model.id):
            is_live = item.mlmd_artifact.state == item.mlmd_artifact.LIVE
            is_wanted = wanted in (None, item.uri)
            if is_live and is_wanted and storage_for(item.uri).exists(item.uri):
                return {"model": [item]}
        return {"model": []}
