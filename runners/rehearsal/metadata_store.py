"""The service's metadata: artifacts of earlier jobs, artifact queries, cached tasks.

A file stands for the metadata store of a project and region. Queries and cache lookups
see one pipeline only, by its name, as on Vertex AI.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sluice.storage import atomic

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


class QueryError(ValueError):
    """A filter of an artifact query is not understood."""


class MetadataStore:
    """Artifacts and cached tasks in a file; safe to use from threads."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._data: dict[str, Any] = {"last_id": 0, "artifacts": [], "cache": {}}
        if path.exists():
            self._data = json.loads(path.read_text(encoding="utf-8"))

    def new_name(self) -> str:
        """Returns the name of an artifact that is about to be made."""
        with self._lock:
            self._data["last_id"] += 1
            return f"{_PARENT}/{self._data['last_id']}"

    def publish(self, pipeline: str, outputs: Outputs, key: str | None = None) -> None:
        """Adds the artifacts of a task that has succeeded; they are found from now on.

        Args:
          pipeline: the pipeline's name.
          outputs: the artifacts.
          key: the cache key of the task; None if it must not be cached.
        """
        stored = {
            name: [asdict(item) for item in items] for name, items in outputs.items()
        }
        with self._lock:
            for items in stored.values():
                self._data["artifacts"] += [
                    {"pipeline": pipeline, "artifact": item} for item in items
                ]
            if key is not None:
                self._data["cache"][f"{pipeline}/{key}"] = stored
            atomic.write_json(self._path, self._data)

    def cached(self, pipeline: str, key: str) -> Outputs | None:
        """Returns the outputs of an earlier task with the same key."""
        with self._lock:
            stored = self._data["cache"].get(f"{pipeline}/{key}")
        if stored is None:
            return None
        return {
            name: [StoredArtifact(**item) for item in items]
            for name, items in stored.items()
        }

    def find_latest(self, pipeline: str, query: str) -> StoredArtifact | None:
        """Returns the newest artifact of a pipeline that a filter selects.

        Raises:
          QueryError: the filter is not of the form that TFX compiles.
        """
        clauses = [_parse(clause) for clause in re.split(r"\s+AND\s+", query.strip())]
        with self._lock:
            stored = list(self._data["artifacts"])
        for item in reversed(stored):
            artifact = StoredArtifact(**item["artifact"])
            if item["pipeline"] == pipeline and all(
                _matches(artifact, clause) for clause in clauses
            ):
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
