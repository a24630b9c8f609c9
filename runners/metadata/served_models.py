"""Matches served versions on disk with models in ML Metadata."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from runners.metadata.metadata_graph import MetadataGraph
from serving.model_store import ModelStore, ModelVersion


@dataclass(frozen=True)
class ServedModel:
    """A version on disk and its origin.

    Attributes:
      version: in the model store.
      run_id: the run that pushed it; None if unknown.
      model_id: the Model artifact in ML Metadata; None if unknown.
    """

    version: ModelVersion
    run_id: str | None
    model_id: int | None


def served_models(
    graph: MetadataGraph, serving_dirs: Iterable[Path]
) -> list[ServedModel]:
    """Returns all versions on disk, by directory and number.

    Args:
      graph: the pipeline's metadata.
      serving_dirs: the first directories; those of earlier pushes follow, because
        ``push.serving_dir`` of the config may have changed.

    Raises:
      ServingError: a serving directory cannot be read.
    """
    directories = [*serving_dirs, *_pushed_to(graph)]
    return [
        _served(graph, version)
        for directory in dict.fromkeys(Path(item).resolve() for item in directories)
        for version in ModelStore(directory).versions()
    ]


def _pushed_to(graph: MetadataGraph) -> list[Path]:
    destinations = (
        str(artifact.properties.get("pushed_destination", ""))
        for artifact in graph.artifacts.values()
    )
    return sorted({Path(item).parent for item in destinations if item.startswith("/")})


def _served(graph: MetadataGraph, version: ModelVersion) -> ServedModel:
    run_id, uri = version.facts.get("pipeline_run_id"), version.facts.get("model_uri")
    if uri is None:
        return ServedModel(version, run_id, _by_destination(graph, version.path))
    models = [item.id for item in graph.artifacts.values() if item.uri == uri]
    return ServedModel(version, run_id, max(models, default=None))


def _by_destination(graph: MetadataGraph, path: Path) -> int | None:
    """Returns the model by its push in ML Metadata, if the store's record is lost."""
    for artifact_id in sorted(graph.artifacts, reverse=True):
        destination = graph.artifacts[artifact_id].properties.get("pushed_destination")
        push = graph.producer(artifact_id)
        if destination and push and Path(str(destination)).resolve() == path:
            return next(iter(push.inputs.get("model", ())), None)
    return None
