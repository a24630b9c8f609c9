"""JSON values: numbers that JSON cannot hold, and the paths of nested values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

_NOT_FINITE = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def jsonable(value: Any) -> Any:
    """Returns a value as JSON can hold it, with lists for tuples.

    JSON has no NaN and no infinities. As in protobuf's own JSON form they are the
    strings ``NaN``, ``Infinity`` and ``-Infinity``, which Python's ``float`` and
    JavaScript's ``Number`` read back:
    https://protobuf.dev/programming-guides/json/
    """
    if isinstance(value, float) and not math.isfinite(value):
        return _NOT_FINITE[str(float(value))]
    if isinstance(value, dict):
        return {key: jsonable(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(part) for part in value]
    return value


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
