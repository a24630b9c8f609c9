"""Flattens nested JSON values to the paths of their leaves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def flatten(value: Any, path: str = "") -> dict[str, Any]:
    """Returns the leaves of nested objects by path; a list of plain values is one."""
    items: list[tuple[str, Any]]
    if isinstance(value, Mapping) and value:
        items = [(f"{path}.{key}" if path else key, v) for key, v in value.items()]
    elif isinstance(value, list) and any(isinstance(v, dict | list) for v in value):
        items = [(f"{path}[{i}]", v) for i, v in enumerate(value)]
    else:
        return {path: value} if path else {}
    return {name: leaf for path, v in items for name, leaf in flatten(v, path).items()}
