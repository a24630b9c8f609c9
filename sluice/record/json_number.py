"""Encodes numbers for JSON, NaN and infinities included."""

from __future__ import annotations

import math
from typing import Any


def json_number(value: float) -> float | str:
    """Returns a number as JSON can hold it.

    JSON has no NaN and no infinities. As in protobuf's own JSON form they are the
    strings ``NaN``, ``Infinity`` and ``-Infinity``, which Python's ``float`` and
    JavaScript's ``Number`` read back:
    https://protobuf.dev/programming-guides/json/
    """
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return value


def jsonable(value: Any) -> Any:
    """Returns a value with lists for tuples, and its numbers as JSON can hold them."""
    if isinstance(value, float):
        return json_number(value)
    if isinstance(value, dict):
        return {key: jsonable(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(part) for part in value]
    return value
