"""The nodes that find the baseline and the model to start training from.

``LatestBlessedModel`` is the node of cloud services: Vertex AI has TFX's own resolvers
only, which select a model whose files are gone; Kubeflow Pipelines has none. The
strategies are for engines that run TFX's resolver.
"""

# TFX reads the annotations of a component's function: they must be no strings.

import json
from typing import Any

from tfx.dsl.component.experimental.annotations import OutputArtifact, Parameter
from tfx.dsl.component.experimental.decorators import component
from tfx.dsl.components.common import resolver
from tfx.types.standard_artifacts import Model

from components.artifacts import ABSENT, OLDER, SKIPPED, Artifacts
from components.baseline_model.blessed_models import (
    RETIRED,
    blessed_models,
    find_baseline,
    search_baseline,
)
from serving.model_store import store_at
from sluice.mlmd_items import Artifact, newest_first
from sluice.storage.storage import storage_for


@component
def LatestBlessedModel(
    model: OutputArtifact[Model],
    serving_dir: Parameter[str],
    baseline: Parameter[str],
    count: Parameter[int],
):
    """Publishes the latest pushed model under its own URI; see ``find_baseline``.

    Custom properties: ``ABSENT`` if there is none, since a container's output cannot be
    left out, ``SKIPPED``, newer models that are missing, and ``OLDER``, models before
    it, up to ``count`` in all.
    """
    uris, skipped = find_baseline(serving_dir, baseline, count)
    if not uris:
        model.set_string_custom_property(ABSENT, "true")
    else:
        model.uri = uris[0]
        model.set_string_custom_property(OLDER, json.dumps(uris[1:]))
    if skipped:
        model.set_string_custom_property(SKIPPED, json.dumps(skipped))


class LatestUsableBlessedModel(resolver.ResolverStrategy):
    """The latest blessed models that are neither retired nor missing.

    Of a ``Resolver`` with the channels ``model`` and ``model_blessing``.
    """

    def __init__(self, count: int = 1) -> None:
        """Makes the strategy; ``count`` is how many models at most."""
        self._count = count

    def resolve_artifacts(self, store: Any, input_dict: Artifacts) -> Artifacts:
        """Returns the models and their blessings, the newest first."""
        by_id = {
            item.id: item
            for key in ("model", "model_blessing")
            for item in input_dict[key]
        }
        artifacts = [Artifact.of(item.mlmd_artifact) for item in by_id.values()]
        found = search_baseline(blessed_models(artifacts), self._count)
        usable = [blessed for blessed, why_not in found if why_not is None]
        return {
            "model": [by_id[blessed.model.id] for blessed in usable],
            "model_blessing": [by_id[blessed.blessing_id] for blessed in usable],
        }


class TrainedModel(resolver.ResolverStrategy):
    """The model trained last, or the one that is served now, unless it is retired.

    Of a ``Resolver`` with the channel ``model``.
    """

    def __init__(self, served_in: str | None = None) -> None:
        """Makes the strategy.

        Args:
          served_in: the serving directory, whose newest version is found among the
            models by its address; None to find the model trained last.
        """
        self._served_in = served_in

    def resolve_artifacts(self, store: Any, input_dict: Artifacts) -> Artifacts:
        """Returns the model, or none."""
        wanted = None
        if self._served_in is not None:
            newest = store_at(self._served_in).newest()
            wanted = newest.facts.get("model_uri") if newest else None
            if wanted is None:
                return {"model": []}
        for item in newest_first(input_dict["model"]):
            is_live = item.mlmd_artifact.state == item.mlmd_artifact.LIVE
            is_wanted = wanted in (None, item.uri)
            is_wanted &= RETIRED not in item.mlmd_artifact.custom_properties
            if is_live and is_wanted and storage_for(item.uri).exists(item.uri):
                return {"model": [item]}
        return {"model": []}
