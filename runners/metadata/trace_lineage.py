"""Traces the lineage of an artifact: upstream data, schema, code and run; uses."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import PurePath
from typing import Any

from runners.metadata.graph import Execution, MetadataGraph, ids_in
from runners.metadata.served_models import ServedModel
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

    It has the ``artifact``, a summary of its ``origin``, all ``artifacts`` upstream and
    itself, the ``executions`` that made them, the versions ``served`` of it, the
    executions that read it directly (``uses``), and the runs that took it from the
    cache (``reused_by``).
    """
    artifacts, executions = graph.upstream([artifact_id])
    producer = graph.producer(artifact_id)
    models = {artifact_id}
    if graph.artifacts[artifact_id].type == "PushedModel" and producer is not None:
        models.update(producer.inputs.get(CANDIDATE, ()))
    return {
        "artifact": _artifact(graph, artifact_id),
        "origin": _origin(graph, producer, sorted(executions)),
        "artifacts": [_artifact(graph, item) for item in sorted(artifacts)],
        "executions": [_execution(graph.executions[x]) for x in sorted(executions)],
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
        "reused_by": sorted(
            run_id
            for item in graph.writers[artifact_id]
            for run_id in item.run_ids
            if item.state == "cached"
        ),
    }


def _origin(
    graph: MetadataGraph, producer: Execution | None, executions: Iterable[int]
) -> dict[str, Any]:
    """Returns a summary of an artifact's origin.

    ``data`` and ``schemas`` are those of each input, ``code`` by node is the digest of
    its code, or a digest by module (several if the node ran twice, such as for the
    model and for its baseline), and ``packages`` are the versions by distribution.
    """
    made = [graph.executions[item] for item in executions]
    data = [_data(graph, item) for item in made if "input_base" in item.properties]
    files = [item.properties.get("schema_file") for item in made]
    code: dict[str, list[Any]] = defaultdict(list)
    packages: dict[str, list[str]] = defaultdict(list)
    for item in made:
        own_code, versions = _fingerprint(item.properties)
        if own_code:
            code[item.node].append(own_code)
        for name, version in versions.items():
            packages[name].append(str(version))
    return {
        "run_id": producer.run_id if producer else None,
        "data": _distinct(data),
        "schemas": [_schema(str(file)) for file in _distinct(filter(None, files))],
        "code": {node: _distinct(found) for node, found in code.items()},
        "packages": {
            name: sorted({*found}) for name, found in sorted(packages.items())
        },
        "run_ids": sorted({run_id for item in made for run_id in item.run_ids}),
    }


def _distinct(values: Iterable[Any]) -> list[Any]:
    found: list[Any] = []
    for value in values:
        if value not in found:
            found.append(value)
    return found


def _data(graph: MetadataGraph, execution: Execution) -> dict[str, Any]:
    """Returns the data of an ExampleGen, from the properties of its driver."""
    known = dict(execution.properties)
    for artifact_id in ids_in(execution.outputs):
        known.update(graph.artifacts[artifact_id].properties)
    return {
        "path": known["input_base"],
        "span": known.get("span"),
        "version": known.get("version"),
        "fingerprint": known.get("input_fingerprint"),
    }


def _schema(file: str) -> dict[str, Any]:
    """Reads the digest from the path; see ``pipeline.graph.locations``."""
    path = PurePath(file)
    digests = [part for part in path.parts if _SHA256.fullmatch(part)]
    return {"name": path.name, "file": file, "digest": digests[-1] if digests else None}


def _fingerprint(properties: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Returns code and packages of a node's fingerprint; see ``code_fingerprint``."""
    text = properties.get("fingerprint")
    try:
        parts = json.loads(text or "")
        return parts["code"], parts["packages"]
    except (TypeError, ValueError, KeyError):
        return text, {}


def _artifact(graph: MetadataGraph, artifact_id: int) -> dict[str, Any]:
    producer = graph.producer(artifact_id)
    item = graph.artifacts[artifact_id]
    return {
        **asdict(item),
        "name": graph.name_of(artifact_id),
        "producer": producer.id if producer else None,
        "properties": _shown(item.properties),
    }


def _execution(item: Execution) -> dict[str, Any]:
    code, packages = _fingerprint(item.properties)
    return {
        **asdict(item),
        "run_id": item.run_id,
        "code": code,
        "packages": packages,
        "properties": _shown(item.properties),
    }


def _served(item: ServedModel) -> dict[str, Any]:
    names = ("version", "uri", "digest", "published_at")
    found = {name: getattr(item.version, name) for name in names}
    return {**found, "run_id": item.run_id}


def _shown(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {key: properties[key] for key in _SHOWN if key in properties}
