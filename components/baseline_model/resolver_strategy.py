"""Resolver strategy: the latest blessed model that is neither retired nor missing.

Replaces TFX's ``LatestBlessedModelStrategy`` on engines that run TFX's resolver. Vertex
AI supports only its two built-in strategies.
"""

from __future__ import annotations

from typing import Any

from tfx.dsl.components.common import resolver

from components.baseline_model.blessed_models import blessed_models
from sluice.mlmd_items import Artifact


class LatestUsableBlessedModel(resolver.ResolverStrategy):
    """Strategy of a ``Resolver`` with the channels ``model`` and ``model_blessing``."""

    def resolve_artifacts(
        self, store: Any, input_dict: dict[str, list[Any]]
    ) -> dict[str, list[Any]]:
        """Returns the model and its blessing, or neither."""
        by_id = {
            item.id: item
            for key in ("model", "model_blessing")
            for item in input_dict[key]
        }
        artifacts = [Artifact.of(item.mlmd_artifact) for item in by_id.values()]
        for blessed in blessed_models(artifacts):
            if blessed.rejection_reason() is None:
                return {
                    "model": [by_id[blessed.model.id]],
                    "model_blessing": [by_id[blessed.blessing_id]],
                }
        return {"model": [], "model_blessing": []}
