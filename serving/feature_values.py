"""Converts JSON values to typed feature values, or rejects them.

The types are those of the signature ``predict_values``. There are no implicit
conversions: a number is not a string, and true is not a number.
"""

from __future__ import annotations

import base64
import binascii
import difflib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from sluice.errors import DataError

DType = Literal["float32", "int64", "string"]
FeatureValue = float | int | bytes | list[Any]


@dataclass(frozen=True)
class FeatureType:
    """Type of one raw feature in the signature.

    Attributes:
      dtype: of its values.
      shape: of one row; empty for a single value, None for any number of values.
    """

    dtype: DType
    shape: tuple[int | None, ...] = ()

    def __str__(self) -> str:
        sizes = ("any number" if size is None else str(size) for size in self.shape)
        return self.dtype + (f"[{' x '.join(sizes)}]" if self.shape else "")


# Value of a missing feature in the signature.
MISSING: Mapping[DType, float | int | bytes] = {
    "float32": math.nan,
    "int64": -(2**63),
    "string": b"",
}

_EXPECTED: Mapping[DType, str] = {
    "float32": "a number that fits in 32 bits",
    "int64": "an integer that fits in 64 bits",
    "string": 'a string, {"b64": "..."} for bytes',
}
_FLOAT32_MAX = 3.4028234663852886e38
_LARGEST_EXACT_FLOAT = 2**53


def to_feature_values(
    row: Mapping[str, Any], features: Mapping[str, FeatureType], *, where: str
) -> dict[str, FeatureValue]:
    """Returns a value for every feature.

    Args:
      row: a JSON object. Null, NaN and an absent key are missing values;
        ``{"b64": "..."}`` is bytes and a list is a vector, as in TensorFlow Serving's
        REST API. A vector of a fixed size must not be missing.
      features: the model's raw features and their types.
      where: place of the row, for errors.

    Raises:
      DataError: the model has no such feature, or the value has another type.
    """
    unknown = [name for name in row if name not in features]
    if unknown:
        nearest = difflib.get_close_matches(unknown[0], features, n=1)
        raise DataError(
            f"the model has no feature {unknown[0]!r}",
            where=where,
            expected=names_of(features),
            hint=f"did you mean {nearest[0]!r}?" if nearest else None,
        )
    return {
        name: _value(name, row.get(name), kind, where)
        for name, kind in features.items()
    }


def _value(name: str, value: Any, kind: FeatureType, where: str) -> FeatureValue:
    missing = value is None or value != value  # NaN, as data frames write it
    if missing and not kind.shape:
        return MISSING[kind.dtype]
    if missing and kind.shape == (None,):
        return []
    typed = _typed(value, kind.dtype, kind.shape)
    if typed is None:
        raise DataError(
            f"feature {name!r} has a value of the wrong type",
            where=where,
            expected=_expected(kind),
            actual=f"{json.dumps(value)[:40]} ({json_type(value)})",
        )
    return typed


def _typed(
    value: Any, dtype: DType, shape: tuple[int | None, ...]
) -> FeatureValue | None:
    if not shape:
        convert = {"float32": _as_float, "int64": _as_int, "string": _as_bytes}
        return convert[dtype](value)
    if not isinstance(value, list) or shape[0] not in (None, len(value)):
        return None
    items = [_typed(item, dtype, shape[1:]) for item in value]
    # Shorter rows are padded with the missing value, which must not be a value itself.
    is_padded = shape[0] is None and MISSING[dtype] in items
    return None if None in items or is_padded else items


def _expected(kind: FeatureType) -> str:
    one = _EXPECTED[kind.dtype]
    if not kind.shape:
        return f"{one}, or null"
    if kind == FeatureType("string", (None,)):
        one += " that is not empty"
    sizes = ["any number" if size is None else f"{size:,}" for size in kind.shape]
    return f"a list of {' lists of '.join(sizes)}, each {one}"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _as_float(value: Any) -> float | None:
    if not _is_number(value) or not abs(value) <= _FLOAT32_MAX:
        return None
    return float(value)


def _as_int(value: Any) -> int | None:
    if not _is_number(value):
        return None
    if isinstance(value, float):
        # 3.0 is how a data frame with missing values writes 3.
        exact = value.is_integer() and abs(value) <= _LARGEST_EXACT_FLOAT
        return int(value) if exact else None
    return value if -(2**63) < value < 2**63 else None


def _as_bytes(value: Any) -> bytes | None:
    if isinstance(value, str):
        return _utf8(value)
    if isinstance(value, dict) and list(value) == ["b64"]:
        try:
            return base64.b64decode(value["b64"], validate=True)
        except (binascii.Error, TypeError, ValueError):
            return None
    return None


def _utf8(value: str) -> bytes | None:
    try:
        return value.encode("utf-8")
    except UnicodeEncodeError:  # JSON can spell half of a surrogate pair.
        return None


def json_type(value: Any) -> str:
    """Returns the JSON name of a value's type."""
    names = {bool: "boolean", str: "string", dict: "object", list: "array"}
    return "null" if value is None else names.get(type(value), "number")


def names_of(features: Mapping[str, FeatureType]) -> str:
    """Returns the features and their types, for messages."""
    return ", ".join(f"{name} ({kind})" for name, kind in features.items())
