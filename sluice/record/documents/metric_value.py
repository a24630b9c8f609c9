"""Converts metric values and plots from TFMA's protos to JSON.

A metric's value is one of

* a number, see ``json_number``;
* ``{"value", "lower_bound", "upper_bound"}`` where there is a confidence interval;
* ``{"shape", "values"}``, an array, row by row;
* ``{"columns"}``, a table, see ``TABLES``;
* ``{"text"}``, or ``{"error"}`` where TFMA could not compute it;
* ``{"left_out"}``, the size of a value over the limit: the values of an array, the rows
  of a table, the characters of a text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sluice.record.json_number import json_number

Columns = dict[str, list[Any]]

# TFMA's tables: the fields that lead to their rows, and the columns. What follows from
# these columns (precision, recall, ...) is left out.
TABLES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "calibration_histogram_buckets": (
        ("buckets",),
        (
            "lower_threshold_inclusive",
            "upper_threshold_exclusive",
            "num_weighted_examples",
            "total_weighted_label",
            "total_weighted_refined_prediction",
        ),
    ),
    "confusion_matrix_at_thresholds": (
        ("matrices",),
        (
            "threshold",
            "true_positives",
            "false_positives",
            "true_negatives",
            "false_negatives",
        ),
    ),
    "multi_class_confusion_matrix_at_thresholds": (
        ("matrices", "entries"),
        ("threshold", "actual_class_id", "predicted_class_id", "num_weighted_examples"),
    ),
    "multi_label_confusion_matrix_at_thresholds": (
        ("matrices", "entries"),
        (
            "threshold",
            "actual_class_id",
            "predicted_class_id",
            "true_positives",
            "false_positives",
            "true_negatives",
            "false_negatives",
        ),
    ),
    "value_at_cutoffs": (("values",), ("cutoff", "value")),
}
_ARRAYS = {
    "INT32": "int32_values",
    "INT64": "int64_values",
    "FLOAT32": "float32_values",
    "FLOAT64": "float64_values",
    "BYTES": "bytes_values",
}


class SizeLimit:
    """The values, rows and characters that a document may still contain."""

    def __init__(self, values: int) -> None:
        self._left = values

    def take(self, values: int) -> bool:
        """Returns whether they fit, and if so counts them."""
        fits = values <= self._left
        if fits:
            self._left -= values
        return fits


def metric_value(item: Any, limit: SizeLimit) -> Any:
    """Returns a metric's value; see the module.

    Args:
      item: TFMA's ``MetricKeyAndValue``, or anything else with a ``value``.
      limit: for arrays and tables.
    """
    value = _plain(item.value, limit)
    if isinstance(value, float | str) and item.HasField("confidence_interval"):
        interval = item.confidence_interval
        return {
            "value": value,
            "lower_bound": _plain(interval.lower_bound, limit),
            "upper_bound": _plain(interval.upper_bound, limit),
        }
    return value


def table(message: Any, kind: str, limit: SizeLimit) -> Columns | None:
    """Returns a table by columns; None if it exceeds the limit.

    Args:
      message: holds the table in its field ``kind``.
      kind: a key of ``TABLES``.
      limit: for tables.
    """
    path, names = TABLES[kind]
    rows = _rows(getattr(message, kind), path)
    if not limit.take(len(rows)):
        return None
    return {name: [_cell(row, name) for row in rows] for name in names}


def _plain(value: Any, limit: SizeLimit) -> Any:
    kind = value.WhichOneof("type")
    if kind == "double_value":
        return json_number(value.double_value.value)
    if kind == "bounded_value":
        bounded = value.bounded_value
        return {
            name: json_number(getattr(bounded, name).value)
            for name in ("value", "lower_bound", "upper_bound")
        }
    if kind == "t_distribution_value":
        return json_number(value.t_distribution_value.unsampled_value.value)
    if kind == "array_value":
        return _array(value.array_value, limit)
    if kind in TABLES:
        columns = table(value, kind, limit)
        if columns is None:
            return {"left_out": len(_rows(getattr(value, kind), TABLES[kind][0]))}
        return {"columns": columns}
    if kind == "bytes_value":
        text = _text(value.bytes_value)
        return {"text": text} if limit.take(len(text)) else {"left_out": len(text)}
    if kind == "unknown_type":
        return {"error": value.unknown_type.error}
    return {"error": value.debug_message or "no value"}


def _array(array: Any, limit: SizeLimit) -> dict[str, Any]:
    name = _ARRAYS.get(array.DataType.Name(array.data_type))
    if name is None:
        return {"error": "an array of an unknown type"}
    values = getattr(array, name)
    if not limit.take(len(values)):
        return {"left_out": len(values)}
    return {
        "shape": list(array.shape),
        "values": [
            _text(item) if isinstance(item, bytes) else json_number(item)
            for item in values
        ],
    }


def _rows(message: Any, path: Sequence[str]) -> list[tuple[Any, ...]]:
    """Returns the rows, each with the messages that lead to it, outermost first."""
    rows: list[tuple[Any, ...]] = [(message,)]
    for name in path:
        rows = [(*outer, item) for outer in rows for item in getattr(outer[-1], name)]
    return rows


def _cell(row: tuple[Any, ...], name: str) -> float | str:
    message = next(item for item in row if name in item.DESCRIPTOR.fields_by_name)
    cell = getattr(message, name)
    # Some counts are wrapped (google.protobuf.DoubleValue), an unset one being 0.
    return json_number(cell if isinstance(cell, int | float) else cell.value)


def _text(data: bytes) -> str:
    return data.decode("utf-8", errors="replace")
