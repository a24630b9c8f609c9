"""Matches served versions on disk with models in ML Metadata."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from runners.metadata.metadata_graph import MetadataGraph
from serving.model_store import ModelStore, ModelVersion


@dataclass(frozen=True)
class ServedModel:
    """A version on disk and where it came from, as far as that is known.

    Attributes:
      version: as the model store has it.
      run_id: the run that pushed it; None if somebody else did.
      model_id: the Model artifact in ML Metadata.
    """

    version: ModelVersion
    run_id: str | None
    model_id: int | None


def served_models(
    graph: MetadataGraph, serving_dirs: Iterable[Path]
) -> list[ServedModel]:
    """Returns every version on disk, of each directory in the order of its numbers.

    Args:
      graph: the pipeline's metadata.
      serving_dirs: directories to look in first; those that earlier pushes went to
        come after them, since a config's ``push.serving_dir`` may have changed.

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
    """Finds the model by the push that says it went there; the record may be lost."""
    for artifact_id in sorted(graph.artifacts, reverse=True):
        destination = graph.artifacts[artifact_id].properties.get("pushed_destination")
        push = graph.producer(artifact_id)
        if destination and push and Path(str(destination)).resolve() == path:
            return next(iter(push.inputs.get("model", ())), None)
    return None
