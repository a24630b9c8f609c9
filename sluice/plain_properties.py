"""Properties of ML Metadata's artifacts and executions as plain values."""

from __future__ import annotations

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
