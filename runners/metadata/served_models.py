"""Matches served versions on disk with models in ML Metadata, and finds artifacts."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from runners.metadata.graph import MetadataGraph
from serving.model_store import ModelVersion, store_at
from sluice.errors import UsageError
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


def find_artifact(
    graph: MetadataGraph, served: Sequence[ServedModel], reference: str
) -> tuple[int, str]:
    """Returns the id of the artifact that a reference names, and how it was read.

    * ``artifact:12``: the artifact of that id in ML Metadata.
    * ``v3`` or ``3``: the model that was pushed as version 3; of two the first.
    * ``Trainer.model``: the newest output of that name, from the cache or not.
    * a path or URI: the version or artifact that is there.

    Raises:
      UsageError: there is no such artifact, or the version's model is unknown.
    """
    named: dict[str, tuple[int | None, str]] = {}
    for number, artifact in sorted(graph.artifacts.items()):
        for name in (f"artifact:{number}", artifact.uri.rstrip("/")):
            named[name] = number, f"artifact {number}"
    outputs = [
        (f"{execution.node}.{key}", artifact_id)
        for _, execution in sorted(graph.executions.items())
        for key, artifacts in execution.outputs.items()
        for artifact_id in sorted(artifacts)
    ]
    for name, artifact_id in outputs:
        named[name] = artifact_id, f"the newest {name}"
    for item in reversed(served):
        version = item.version.version
        for name in (f"v{version}", str(version), item.version.uri):
            named[name] = item.model_id, f"version {version}"
    known = [name for name in (reference, resolved(reference)) if name in named]
    if not reference or not known:
        versions = [f"v{item.version.version}" for item in served]
        raise UsageError(
            f"there is no artifact or version {reference[:200]!r}",
            expected="artifact:ID, vN, Node.output, or a path",
            examples=versions + sorted({name for name, _ in outputs}),
        )
    found, read_as = named[known[0]]
    if found is None:
        raise UsageError(
            f"the model behind {read_as} is unknown: no run of this workspace has "
            "pushed it"
        )
    return found, read_as
