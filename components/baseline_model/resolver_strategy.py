"""Resolver strategy: the latest blessed model that is neither retired nor damaged.

Replaces TFX's ``LatestBlessedModelStrategy`` on engines that run TFX's resolver. Vertex
AI supports only its two built-in strategies.
"""

from __future__ import annotations

from typing import Any

from tfx.dsl.components.common import resolver

from components.baseline_model.blessed_models import (
    RESTORED,
    blessed_models,
    restore,
    served_copy,
)
from sluice.mlmd_items import Artifact


class LatestIntactBlessedModel(resolver.ResolverStrategy):
    """Strategy of a ``Resolver`` with the channels ``model`` and ``model_blessing``.

    A damaged model is restored from a served version with the same bytes; if there is
    none, the next older model is selected. The verdict of ``ModelVerdict`` reports it.
    """

    def __init__(self, restores: bool = True) -> None:
        """Makes the strategy.

        Args:
          restores: whether to restore damaged files; False only finds out which model
            would be selected.
        """
        self._restores = restores

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
        artifacts += map(Artifact.of, store.get_artifacts_by_type("PushedModel"))
        for blessed in blessed_models(artifacts):
            model = by_id[blessed.model.id]
            if blessed.retired is not None:
                continue
            if blessed.damage() is not None:
                source = served_copy(blessed, artifacts)
                if source is None:
                    continue
                if self._restores:
                    if not restore(blessed, source):
                        continue
                    # The resolver's execution is published with it.
                    model.set_string_custom_property(RESTORED, str(source))
            return {
                "model": [model],
                "model_blessing": [by_id[blessed.blessing_id]],
            }
        return {"model": [], "model_blessing": []}
