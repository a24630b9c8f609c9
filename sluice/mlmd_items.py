"""Artifacts and executions of ML Metadata: properties and producing node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

_PLAIN = ("int_value", "double_value", "string_value", "bool_value")


def plain_properties(item: Any) -> dict[str, Any]:
    """Returns the declared and the custom properties; a custom one wins."""
    plain = {}
    for properties in (item.properties, item.custom_properties):
        for key, value in properties.items():
            kind = value.WhichOneof("value")
            if kind in _PLAIN:
                plain[key] = getattr(value, kind)
    return plain


@dataclass(frozen=True)
class Artifact:
    """One artifact as ML Metadata has it.

    Attributes:
      properties: plain values only, custom properties among them.
      state: ML Metadata's, in lower case; ``live`` while it may be used.
      created_at: UTC, ISO 8601.
    """

    id: int
    type: str
    uri: str
    properties: Mapping[str, Any] = field(default_factory=dict)
    state: str = "live"
    created_at: str = ""

    @classmethod
    def of(cls, item: Any) -> Artifact:
        """Returns the plain form of a ``metadata_store_pb2.Artifact``."""
        return cls(
            id=item.id,
            type=item.type,
            uri=item.uri,
            state=state_name(type(item).State, item.state),
            created_at=iso_time(item.create_time_since_epoch),
            properties=plain_properties(item),
        )


def state_name(states: Any, value: int) -> str:
    """Returns the name of a state, in lower case, of the enum that it is one of."""
    return str(states.Name(value)).lower()


def iso_time(milliseconds: int) -> str:
    """Returns a time of ML Metadata as ISO 8601 in UTC."""
    time = datetime.fromtimestamp(milliseconds / 1000, timezone.utc)
    return time.isoformat(timespec="milliseconds")


def newest_first(artifacts: Iterable[Any]) -> list[Any]:
    """Returns artifacts of ML Metadata or TFX by id, which grows."""
    return sorted(artifacts, key=lambda item: -item.id)


def maker_run(store: Any, artifact_id: int) -> str:
    """Returns the run that made an artifact; empty where none did."""
    from ml_metadata.proto import metadata_store_pb2

    output = metadata_store_pb2.Event.OUTPUT
    events = store.get_events_by_artifact_ids([artifact_id])
    # Executions that took it from the cache come later.
    made = min((item.execution_id for item in events if item.type == output), default=0)
    contexts = store.get_contexts_by_execution(made) if made else ()
    return {item.type: item.name for item in contexts}.get("pipeline_run", "")
