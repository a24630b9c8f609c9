"""Traces the lineage of artifacts and served versions: data, schema, code, run."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path, PurePath
from typing import Any

from runners.metadata.read_metadata import MetadataGraph, ids_in
from serving.model_store import ModelVersion, store_at
from sluice.code_fingerprint import PROPERTY
from sluice.errors import UsageError
from sluice.node_kinds import CANDIDATE
from sluice.storage.storage import is_remote

_SHA256 = re.compile(r"[0-9a-f]{64}")

# Properties that are shown; others may be long or private.
_SHOWN = (
    *("blessed", "current_model_id", "digest", "endpoint", "input_base"),
    *("input_fingerprint", "passed", "preprocessing_fn", "push_destination"),
    *("pushed_destination", "pushed_version", "registered_model", "run_fn"),
    *("schema_file", "span", "split_names", "state", "tfx_version", "version"),
)


def trace_lineage(
    graph: MetadataGraph, artifact_id: int, served: Iterable[ServedModel] = ()
) -> dict[str, Any]:
    """Returns the lineage of an artifact of the graph, in its JSON form.

    It has the ``artifact``, its ``origin`` (runs, data and schemas), all ``artifacts``
    upstream and itself, the ``executions`` that made them with their code, the versions
    ``served`` of it, and the executions that read it directly (``uses``).
    """
    artifacts, executions = graph.upstream([artifact_id])
    producer = graph.producer(artifact_id)
    models = {artifact_id}
    if graph.artifacts[artifact_id].type == "PushedModel" and producer is not None:
        models.update(producer.inputs.get(CANDIDATE, ()))
    made = [graph.executions[item] for item in sorted(executions)]
    return {
        "artifact": _artifact(graph, artifact_id),
        "origin": {
            "run_id": producer.run_id if producer else None,
            "run_ids": sorted({item.run_id for item in made if item.run_id}),
            "data": _distinct(
                _data(x.properties) for x in made if "input_base" in x.properties
            ),
            "schemas": _distinct(
                _schema(x.properties["schema_file"])
                for x in made
                if x.properties.get("schema_file")
            ),
        },
        "artifacts": [_artifact(graph, item) for item in sorted(artifacts)],
        "executions": [
            {
                **asdict(item),
                "code": _code(item.properties),
                "properties": _shown(item.properties),
            }
            for item in made
        ],
        "served": [_served(item) for item in served if item.model_id in models],
        "uses": [
            {
                "node": item.node,
                "input": key,
                "run_id": item.run_id,
                "outputs": [_artifact(graph, x) for x in sorted(ids_in(item.outputs))],
            }
            for item in graph.executions.values()
            for key, read in item.inputs.items()
            if artifact_id in read and item.state == "complete"
        ],
    }


def _distinct(values: Iterable[Any]) -> list[Any]:
    found: list[Any] = []
    for value in values:
        if value not in found:
            found.append(value)
    return found


def _data(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the data of an ExampleGen, from the properties of its driver."""
    return {
        "path": properties["input_base"],
        "span": properties.get("span"),
        "version": properties.get("version"),
        "fingerprint": properties.get("input_fingerprint"),
    }


def _schema(file: str) -> dict[str, Any]:
    """Reads the digest from the path; see ``pipeline.graph.arguments``."""
    path = PurePath(file)
    digests = [part for part in path.parts if _SHA256.fullmatch(part)]
    return {"name": path.name, "file": file, "digest": digests[-1] if digests else None}


def _code(properties: Mapping[str, Any]) -> dict[str, str] | None:
    """Returns the digests of a node's modules; None without a fingerprint of ours."""
    try:
        return json.loads(properties[PROPERTY])["code"]
    except (TypeError, ValueError, KeyError):
        return None


def _artifact(graph: MetadataGraph, artifact_id: int) -> dict[str, Any]:
    producer = graph.producer(artifact_id)
    item = graph.artifacts[artifact_id]
    return {
        **asdict(item),
        "name": graph.name_of(artifact_id),
        "producer": producer.id if producer else None,
        "properties": _shown(item.properties),
    }


def _served(item: ServedModel) -> dict[str, Any]:
    names = ("version", "uri", "digest", "published_at", "rollback")
    found = {name: getattr(item.version, name) for name in names}
    return {**found, "run_id": item.run_id}


def _shown(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {key: properties[key] for key in _SHOWN if key in properties}


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
