"""The service's metadata: artifacts of earlier jobs, artifact queries, cached tasks.

It stands for the metadata store of a project and region. Queries and cache lookups see
one pipeline only, by its name, as on Vertex AI.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

_PARENT = "projects/1/locations/rehearsal/metadataStores/default/artifacts"
_CLAUSE = re.compile(
    r"(?P<field>schema_title|state|name|uri"
    r"|metadata\.(?P<key>[\w.:-]+?)\.(?P<kind>number|string|bool)_value)"
    r"\s*=\s*(?P<value>\"[^\"]*\"|[^\s\"]+)"
)


@dataclass(frozen=True)
class StoredArtifact:
    """An artifact as the service has it.

    Attributes:
      name: the resource's name.
      title: of its type's schema.
      uri: where it is.
      metadata: its properties.
    """

    name: str
    title: str
    uri: str
    metadata: Mapping[str, Any]

    def runtime(self, schema: Mapping[str, str] | None) -> dict[str, Any]:
        """Returns it as an ``ExecutorInput`` has it; without a type for None."""
        typed = {"type": dict(schema)} if schema is not None else {}
        metadata = dict(self.metadata)
        return {"name": self.name, "uri": self.uri, "metadata": metadata, **typed}


Outputs = dict[str, list[StoredArtifact]]


@dataclass(frozen=True)
class TaskResult:
    """What a task that has succeeded passes on."""

    outputs: Outputs = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)


class QueryError(ValueError):
    """A filter of an artifact query is not understood."""


class MetadataStore:
    """Artifacts and cached tasks of all jobs of a service; safe to use from threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # No id of an earlier rehearsal, whose artifacts are in records.
        self._last_id = time.time_ns() // 1_000_000
        self._artifacts: list[tuple[str, StoredArtifact]] = []
        self._cache: dict[tuple[str, str], TaskResult] = {}

    def new_name(self) -> str:
        """Returns the name of an artifact that is about to be made."""
        with self._lock:
            self._last_id += 1
            return f"{_PARENT}/{self._last_id}"

    def publish(
        self, pipeline: str, result: TaskResult, key: str | None = None
    ) -> None:
        """Adds the artifacts of a task that has succeeded; they are found from now on.

        Args:
          pipeline: the pipeline's name.
          result: of the task.
          key: the cache key of the task; None if it must not be cached.
        """
        with self._lock:
            for items in result.outputs.values():
                self._artifacts += [(pipeline, item) for item in items]
            if key is not None:
                self._cache[pipeline, key] = result

    def cached(self, pipeline: str, key: str) -> TaskResult | None:
        """Returns the result of an earlier task with the same key."""
        with self._lock:
            return self._cache.get((pipeline, key))

    def find_latest(self, pipeline: str, query: str) -> StoredArtifact | None:
        """Returns the newest artifact of a pipeline that a filter selects.

        Raises:
          QueryError: the filter is not of the form that TFX compiles.
        """
        clauses = [_parse(clause) for clause in re.split(r"\s+AND\s+", query.strip())]
        with self._lock:
            stored = list(self._artifacts)
        for owner, artifact in reversed(stored):
            if owner == pipeline and all(_matches(artifact, one) for one in clauses):
                return artifact
        return None


def _parse(clause: str) -> re.Match[str]:
    found = _CLAUSE.fullmatch(clause.strip())
    if found is None:
        raise QueryError(f"the filter {clause!r} is not understood")
    return found


def _matches(artifact: StoredArtifact, clause: re.Match[str]) -> bool:
    value = clause["value"].strip('"')
    field, kind = clause["field"], clause["kind"]
    if kind:
        found = artifact.metadata.get(clause["key"])
        if isinstance(found, bool):
            return kind == "bool" and value == json.dumps(found)
        if isinstance(found, int | float):
            return kind == "number" and float(found) == float(value)
        return kind == "string" and found == value
    if field == "state":
        return value == "LIVE"  # Nothing here is deleted or abandoned.
    of_field = {"schema_title": artifact.title, "name": artifact.name}
    return of_field.get(field, artifact.uri) == value
