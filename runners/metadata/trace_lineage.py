"""Traces the lineage of an artifact: upstream data, schema, code and run; uses."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import PurePath
from typing import Any

from runners.metadata.graph import MetadataGraph, ids_in
from runners.metadata.served_models import ServedModel
from sluice.code_fingerprint import PROPERTY
from sluice.node_kinds import CANDIDATE

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
    names = ("version", "uri", "digest", "published_at")
    found = {name: getattr(item.version, name) for name in names}
    return {**found, "run_id": item.run_id}


def _shown(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {key: properties[key] for key in _SHOWN if key in properties}
