"""Matches served versions on disk with models in ML Metadata."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from runners.metadata.graph import MetadataGraph
from serving.model_store import ModelVersion, store_at
from sluice.storage.storage import is_remote


@dataclass(frozen=True)
class ServedModel:
    """A version on disk and its origin, as the store's record has it.

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
    pushed = [
        str(item.properties.get("pushed_destination"))
        for item in graph.artifacts.values()
    ]
    earlier = {os.path.dirname(x) for x in pushed if x.startswith(("/", "gs://"))}
    places = [*map(str, serving_dirs), *sorted(earlier)]
    by_uri = {item.uri: number for number, item in sorted(graph.artifacts.items())}
    return [
        ServedModel(
            version,
            version.facts.get("pipeline_run_id"),
            by_uri.get(version.facts.get("model_uri", "")),
        )
        for place in dict.fromkeys(map(resolved, places))
        for version in store_at(place).versions()
    ]


def resolved(uri: str) -> str:
    """Returns a path with links resolved; an address as it is."""
    return uri.rstrip("/") if is_remote(uri) else str(Path(uri).resolve())
