"""Artifacts and executions of ML Metadata: properties and producing node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

_PLAIN = ("int_value", "double_value", "string_value", "bool_value")


def plain_properties(item: Any) -> dict[str, Any]:
    """Returns the declared and the custom properties; a custom one wins.

    Args:
      item: an artifact or an execution; values that are messages are left out.
    """
    plain = {}
    for properties in (item.properties, item.custom_properties):
        for key, value in properties.items():
            kind = value.WhichOneof("value")
            if kind in _PLAIN:
                plain[key] = getattr(value, kind)
    return plain


@dataclass(frozen=True)
class Origin:
    """The first execution that has an artifact as its output.

    Attributes:
      node: its id in the pipeline; empty where no node made the artifact.
      run_id: the run that it belongs to; empty likewise.
    """

    node: str = ""
    run_id: str = ""


def origin_of(store: Any, artifact_id: int) -> Origin:
    """Returns where an artifact comes from.

    Args:
      store: an ML Metadata store.
      artifact_id: of the artifact.
    """
    from ml_metadata.proto import metadata_store_pb2

    events = store.get_events_by_artifact_ids([artifact_id])
    output = metadata_store_pb2.Event.OUTPUT
    # Executions that took it from the cache come later.
    made = min((item.execution_id for item in events if item.type == output), default=0)
    if not made:
        return Origin()
    names = {item.type: item.name for item in store.get_contexts_by_execution(made)}
    node = names.get("node", "").removeprefix(f"{names.get('pipeline')}.")
    return Origin(node, names.get("pipeline_run", ""))
