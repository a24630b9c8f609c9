"""Traces the lineage of an artifact: upstream data, schema, code and run; uses."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from runners.metadata.metadata_graph import Execution, MetadataGraph
from runners.metadata.served_models import ServedModel
from sluice.mlmd_items import Artifact
from sluice.node_kinds import CANDIDATE

_PUSHED = "PushedModel"
_SHA256 = re.compile(r"[0-9a-f]{64}")

# Properties that are shown; others may be long or private.
_SHOWN = (
    "blessed",
    "current_model_id",
    "digest",
    "endpoint",
    "input_base",
    "input_fingerprint",
    "passed",
    "preprocessing_fn",
    "push_destination",
    "pushed_destination",
    "pushed_version",
    "registered_model",
    "run_fn",
    "schema_file",
    "span",
    "split_names",
    "state",
    "tfx_version",
    "version",
)


@dataclass(frozen=True)
class Origin:
    """Summary of an artifact's origin.

    Attributes:
      run_id: the run that made it; None if no run did.
      data: ``path``, ``span``, ``version`` and ``fingerprint`` of each input.
      schemas: ``file`` and ``digest`` of each reviewed schema.
      code: by node, the digest of its code, or a digest by module; several if the node
        ran twice, such as for the model and for its baseline.
      packages: by distribution, the versions used.
      run_ids: all runs involved; several if the cache was used.
    """

    run_id: str | None
    data: list[dict[str, Any]] = field(default_factory=list)
    schemas: list[dict[str, Any]] = field(default_factory=list)
    code: dict[str, list[Any]] = field(default_factory=dict)
    packages: dict[str, list[str]] = field(default_factory=dict)
    run_ids: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Use:
    """A use of the artifact by a node.

    ``key`` is its input; ``artifact_ids`` are the node's outputs.
    """

    node: str
    key: str
    run_id: str | None
    artifact_ids: tuple[int, ...]


@dataclass(frozen=True)
class Lineage:
    """Lineage of an artifact: origin, upstream artifacts, and uses.

    Attributes:
      artifact: the artifact.
      origin: the summary of its origin.
      artifacts: all upstream artifacts and itself, by id.
      executions: the executions that made them, by id.
      uses: the executions that read it directly.
      reused_by: runs that took it from the cache.
      served: the versions on disk that are this model, or the one that was pushed.
      graph: the pipeline's metadata.
    """

    artifact: Artifact
    origin: Origin
    artifacts: Mapping[int, Artifact]
    executions: Mapping[int, Execution]
    uses: Sequence[Use]
    reused_by: Sequence[str]
    served: Sequence[ServedModel]
    graph: MetadataGraph

    def made_of(self) -> dict[str, Any]:
        """Returns the JSON form, without what uses the artifact."""
        return {
            "artifact": self._artifact(self.artifact),
            "origin": vars(self.origin),
            "artifacts": [self._artifact(item) for item in self.artifacts.values()],
            "executions": [_execution(item) for item in self.executions.values()],
            "served": [
                {
                    "version": item.version.version,
                    "uri": item.version.uri,
                    "digest": item.version.digest,
                    "published_at": item.version.published_at,
                    "run_id": item.run_id,
                }
                for item in self.served
            ],
        }

    def to_dict(self) -> dict[str, Any]:
        """Returns the JSON form."""
        return {
            **self.made_of(),
            "uses": [
                {
                    "node": use.node,
                    "input": use.key,
                    "run_id": use.run_id,
                    "outputs": [
                        self._artifact(self.graph.artifacts[item])
                        for item in use.artifact_ids
                    ],
                }
                for use in self.uses
            ],
            "reused_by": list(self.reused_by),
        }

    def _artifact(self, item: Artifact) -> dict[str, Any]:
        producer = self.graph.producer(item.id)
        return {
            "id": item.id,
            "name": self.graph.name_of(item.id),
            "type": item.type,
            "uri": item.uri,
            "state": item.state,
            "created_at": item.created_at,
            "producer": producer.id if producer else None,
            "properties": _shown(item.properties),
        }


def trace_lineage(
    graph: MetadataGraph, artifact_id: int, served: Iterable[ServedModel] = ()
) -> Lineage:
    """Returns the lineage of an artifact of the graph."""
    artifacts, executions = graph.upstream([artifact_id])
    made_by = {item: graph.executions[item] for item in sorted(executions)}
    producer = graph.producer(artifact_id)
    models = {artifact_id}
    if graph.artifacts[artifact_id].type == _PUSHED and producer is not None:
        models.update(producer.inputs.get(CANDIDATE, ()))
    return Lineage(
        artifact=graph.artifacts[artifact_id],
        origin=_origin(graph, producer, made_by.values()),
        artifacts={item: graph.artifacts[item] for item in sorted(artifacts)},
        executions=made_by,
        uses=_uses(graph, artifact_id),
        reused_by=sorted(
            {
                run_id
                for item in graph.writers(artifact_id)[1:]
                for run_id in item.run_ids
            }
        ),
        served=[item for item in served if item.model_id in models],
        graph=graph,
    )


def _origin(
    graph: MetadataGraph, producer: Execution | None, executions: Iterable[Execution]
) -> Origin:
    origin = Origin(producer.run_id if producer else None)
    packages: dict[str, set[str]] = {}
    run_ids: set[str] = set()
    for execution in executions:
        run_ids.update(execution.run_ids)
        properties = execution.properties
        if "input_base" in properties:
            _add(origin.data, _data(graph, execution))
        if "schema_file" in properties:
            _add(origin.schemas, _schema(str(properties["schema_file"])))
        code, versions = _fingerprint(properties.get("fingerprint"))
        if code:
            _add(origin.code.setdefault(execution.node, []), code)
        for name, version in versions.items():
            packages.setdefault(name, set()).add(str(version))
    origin.packages.update(
        {name: sorted(versions) for name, versions in sorted(packages.items())}
    )
    origin.run_ids.extend(sorted(run_ids))
    return origin


def _add(values: list[Any], value: Any) -> None:
    if value not in values:
        values.append(value)


def _data(graph: MetadataGraph, execution: Execution) -> dict[str, Any]:
    """Returns the data of an ExampleGen, from the properties of its driver."""
    known = dict(execution.properties)
    for artifacts in execution.outputs.values():
        for artifact_id in artifacts:
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
    return {
        "name": path.name,
        "file": file,
        "digest": digests[-1] if digests else None,
    }


def _fingerprint(text: Any) -> tuple[Any, dict[str, Any]]:
    """Returns code and packages of a node's fingerprint in any version's form."""
    try:
        parts = json.loads(text)
    except (TypeError, ValueError):
        return text, {}
    if not isinstance(parts, dict):
        return parts, {}
    packages = parts.get("packages")
    return parts.get("code"), packages if isinstance(packages, dict) else {}


def _uses(graph: MetadataGraph, artifact_id: int) -> list[Use]:
    uses = []
    for execution in graph.readers(artifact_id):
        if execution.state != "complete":
            continue
        (key, *_) = [
            key for key, items in execution.inputs.items() if artifact_id in items
        ]
        outputs = [item for items in execution.outputs.values() for item in items]
        uses.append(Use(execution.node, key, execution.run_id, tuple(sorted(outputs))))
    return uses


def _execution(item: Execution) -> dict[str, Any]:
    code, packages = _fingerprint(item.properties.get("fingerprint"))
    return {
        "id": item.id,
        "node": item.node,
        "kind": item.kind,
        "run_id": item.run_id,
        "state": item.state,
        "started_at": item.started_at,
        "ended_at": item.ended_at,
        "code": code,
        "packages": packages,
        "properties": _shown(item.properties),
        "inputs": {key: list(items) for key, items in sorted(item.inputs.items())},
        "outputs": {key: list(items) for key, items in sorted(item.outputs.items())},
    }


def _shown(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {key: properties[key] for key in _SHOWN if key in properties}
