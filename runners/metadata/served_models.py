"""Matches served versions on disk with models in ML Metadata."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from runners.metadata.metadata_graph import MetadataGraph
from serving.model_store import ModelVersion, store_at
from sluice.storage.storage import is_remote


@dataclass(frozen=True)
class ServedModel:
    """A version on disk and its origin.

    The run that pushed it and the Model artifact are None if unknown.
    """

    version: ModelVersion
    run_id: str | None
    model_id: int | None


def served_models(
    graph: MetadataGraph, serving_dirs: Iterable[str | Path]
) -> list[ServedModel]:
    """Returns all versions, by directory and number.

    Args:
      graph: the pipeline's metadata.
      serving_dirs: the first directories; those of earlier pushes follow, because
        ``push.serving_dir`` of the config may have changed.

    Raises:
      ServingError: a serving directory cannot be read.
    """
    directories = [*map(str, serving_dirs), *_pushed_to(graph)]
    return [
        _served(graph, version)
        for directory in dict.fromkeys(map(resolved, directories))
        for version in store_at(directory).versions()
    ]


def resolved(uri: str) -> str:
    """Returns a path with links resolved; an address as it is."""
    return uri.rstrip("/") if is_remote(uri) else str(Path(uri).resolve())


def _pushed_to(graph: MetadataGraph) -> list[str]:
    destinations = (
        str(artifact.properties.get("pushed_destination", ""))
        for artifact in graph.artifacts.values()
    )
    return sorted(
        {
            os.path.dirname(item)
            for item in destinations
            if item.startswith(("/", "gs://"))
        }
    )


def _served(graph: MetadataGraph, version: ModelVersion) -> ServedModel:
    run_id, uri = version.facts.get("pipeline_run_id"), version.facts.get("model_uri")
    if uri is None:
        return ServedModel(version, run_id, _by_destination(graph, version.uri))
    models = [item.id for item in graph.artifacts.values() if item.uri == uri]
    return ServedModel(version, run_id, max(models, default=None))


def _by_destination(graph: MetadataGraph, uri: str) -> int | None:
    """Returns the model by its push in ML Metadata, if the store's record is lost."""
    for artifact_id in sorted(graph.artifacts, reverse=True):
        destination = graph.artifacts[artifact_id].properties.get("pushed_destination")
        push = graph.producer(artifact_id)
        if destination and push and resolved(str(destination)) == uri:
            return next(iter(push.inputs.get("model", ())), None)
    return None
