"""Checks one record for the anomaly of a finding, and formats the bad value.

TFDV validates statistics and cannot name a record. Some kinds of anomalies, such as a
split with too few examples, are not visible in any one record.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tensorflow_metadata.proto.v0 import schema_pb2

from schemas.features import number_bounds, string_domain
from sluice.tfrecords.image_header import image_format

MAX_SHOWN = 60

Values = Sequence[Any]
# Takes a record's feature, None if it is missing; returns the bad value, or None.
RecordCheck = Callable[[Any], str | None]

_KIND_OF_TYPE = {
    schema_pb2.BYTES: "bytes_list",
    schema_pb2.INT: "int64_list",
    schema_pb2.FLOAT: "float_list",
}


def record_check(kind: str, name: str, schema: schema_pb2.Schema) -> RecordCheck | None:
    """Returns the check of a record; None for kinds not visible in one record.

    Args:
      kind: of the finding.
      name: the feature.
      schema: declares the feature, except for ``new_feature``.
    """
    feature = next((item for item in schema.feature if item.name == name), None)
    if kind == "new_feature":
        return lambda found: None if found is None else _shown(_values(found))
    if feature is None:
        return None
    makers: Mapping[str, Callable[[], RecordCheck | None]] = {
        "missing": lambda: _missing,
        "wrong_type": lambda: _wrong_type(feature),
        "wrong_shape": lambda: _wrong_shape(feature),
        "out_of_range": lambda: _bad_value(_out_of_range(feature)),
        "new_value": lambda: _bad_value(_new_value(feature, schema)),
        "not_finite": lambda: _bad_value(_not_finite),
        "invalid_text": lambda: _bad_value(_invalid_text),
        "invalid_image": lambda: _bad_value(_invalid_image),
    }
    return makers[kind]() if kind in makers else None


def _values(feature: Any) -> Values:
    kind = feature.WhichOneof("kind") if feature is not None else None
    return getattr(feature, kind).value if kind else ()


def _missing(feature: Any) -> str | None:
    return None if _values(feature) else "missing"


def _wrong_type(declared: schema_pb2.Feature) -> RecordCheck:
    expected = _KIND_OF_TYPE.get(declared.type)

    def breaks(feature: Any) -> str | None:
        values = _values(feature)
        if not values or feature.WhichOneof("kind") == expected:
            return None
        return f"{feature.WhichOneof('kind')} {_shown(values)}"

    return breaks


def _wrong_shape(declared: schema_pb2.Feature) -> RecordCheck:
    least, most = 0.0, math.inf
    if declared.HasField("shape"):
        least = most = math.prod(dim.size for dim in declared.shape.dim)
    elif declared.HasField("value_count"):
        least = declared.value_count.min
        most = declared.value_count.max or math.inf

    def breaks(feature: Any) -> str | None:
        count = len(_values(feature))
        return f"{count} values" if count and not least <= count <= most else None

    return breaks


def _bad_value(is_bad: Callable[[Any], bool] | None) -> RecordCheck | None:
    if is_bad is None:
        return None

    def breaks(feature: Any) -> str | None:
        bad = [value for value in _values(feature) if is_bad(value)]
        return _shown(bad) if bad else None

    return breaks


def _out_of_range(declared: schema_pb2.Feature) -> Callable[[Any], bool] | None:
    bounds = number_bounds(declared)
    if bounds is None:
        return None
    low, high = bounds
    least = -math.inf if low is None else low
    most = math.inf if high is None else high
    return lambda value: isinstance(value, int | float) and (
        value < least or value > most
    )


def _new_value(
    declared: schema_pb2.Feature, schema: schema_pb2.Schema
) -> Callable[[Any], bool] | None:
    domain = string_domain(declared, schema)
    if domain is None or not domain.value:
        return None
    known = {value.encode() for value in domain.value}
    return lambda value: isinstance(value, bytes) and value not in known


def _not_finite(value: Any) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def _invalid_text(value: Any) -> bool:
    if not isinstance(value, bytes):
        return False
    try:
        value.decode()
    except UnicodeDecodeError:
        return True
    return False


def _invalid_image(value: Any) -> bool:
    return isinstance(value, bytes) and image_format(value) is None


def _shown(values: Values) -> str:
    """Returns the first value, readable, and the number of further values."""
    if not values:
        return "no values"
    more = f" and {len(values) - 1} more values" if len(values) > 1 else ""
    value = values[0]
    if not isinstance(value, bytes):
        return f"{value:g}{more}" if isinstance(value, float) else f"{value}{more}"
    try:
        text = repr(value.decode())
    except UnicodeDecodeError:
        return f"{len(value):,} bytes that are not text{more}"
    short = text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}..."
    return f"{short}{more}"
