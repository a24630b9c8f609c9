"""Encodes numbers for JSON, NaN and infinities included."""

from __future__ import annotations

import math


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
