"""Metrics document: metrics and plots of a ``ModelEvaluation`` artifact.

They are read from TFMA's files; importing TFMA costs seconds where TFX is not imported
already.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from sluice.errors import WorkspaceError, bounded
from sluice.record.documents.damage import damage_explained
from sluice.record.documents.metric_value import TABLES, SizeLimit, metric_value, table
from sluice.record.json_number import json_number
from sluice.tfrecords import tfrecord

MAX_METRIC_ROWS = 5000
MAX_TABLE_ROWS = 50_000
# Long metrics, kept of all examples only; see components.evaluator.
_OVERALL_ONLY = ("prediction_histogram",)

_CONFIG_FILE = "eval_config.json"

# Metrics or a plot of one slice, model and output.
Row = dict[str, Any]


def metrics_document(directory: Path) -> dict[str, Any] | None:
    """Returns the metrics and plots of every slice, overall first.

    A model without a name, as TFMA leaves it without a baseline, is the candidate. A
    table over the limit is left out.

    Returns:
      None if the artifact is not one of TFMA's.

    Raises:
      SluiceError: it holds no metrics, or a file is damaged.
      OSError: the artifact cannot be read.
    """
    names = {path.name for path in directory.iterdir()}
    if not any(name == _CONFIG_FILE or name.startswith("metrics") for name in names):
        return None
    from tensorflow_model_analysis.proto import metrics_for_slice_pb2

    metrics = _rows(
        _records(directory, "metrics", metrics_for_slice_pb2.MetricsForSlice.FromString)
    )
    if not metrics:
        raise WorkspaceError(
            "this evaluation contains no metrics",
            where=directory,
            expected="metrics*.tfrecord as TFX's Evaluator writes them",
            actual=", ".join(bounded(sorted(names))),
            hint="run the node that wrote it again: sluice run NAME --force NODE",
        )
    limit = SizeLimit(MAX_TABLE_ROWS)
    shown = [_metrics(*row, limit) for row in metrics[:MAX_METRIC_ROWS]]
    plots = [
        _plot(*plot, limit)
        for plot in _tables(
            _records(directory, "plots", metrics_for_slice_pb2.PlotsForSlice.FromString)
        )
    ]
    return {
        "metrics": shown,
        "metrics_left_out": len(metrics) - len(shown),
        "plots": [plot for plot in plots if plot is not None],
        "plots_left_out": plots.count(None),
    }


def _records(
    directory: Path, kind: str, parse: Callable[[bytes], Any]
) -> Iterator[Any]:
    for path in tfrecord.shards(directory, kind):
        for record in tfrecord.read(path):
            with damage_explained("this evaluation", path, f"TFMA's {kind}"):
                parsed = parse(record)
            yield parsed


def _rows(records: Iterable[Any]) -> list[tuple[Row, list[Any]]]:
    """Returns each row without its metrics, and TFMA's messages that hold them."""
    rows: dict[Any, tuple[Row, list[Any]]] = {}
    for record in records:
        # TFMA's older form; it still says there why a slice has no metrics.
        for name, value in record.metrics.items():
            record.metric_keys_and_values.add(key={"name": name}, value=value)
        for item in record.metric_keys_and_values:
            row = {
                **_subject(record, item.key),
                "aggregation": _aggregation(item.key.aggregation_type),
                "change": item.key.is_diff,
                "metrics": {},
            }
            rows.setdefault(_order(row), (row, []))[1].append(item)
    return [rows[order] for order in sorted(rows)]


def _metrics(row: Row, items: list[Any], limit: SizeLimit) -> Row:
    is_whole = not row["slice"] and not row["change"]
    values = {
        item.key.name: metric_value(item, limit)
        for item in items
        if is_whole or item.key.name not in _OVERALL_ONLY
    }
    return {**row, "metrics": values}


def _tables(records: Iterable[Any]) -> list[tuple[Row, Any]]:
    """Returns each plot without its columns, and TFMA's message that holds them."""
    plots: list[tuple[Row, Any]] = []
    for record in records:
        for item in record.plot_keys_and_values:
            kinds = [field.name for field, _ in item.value.ListFields()]
            for kind in sorted(TABLES.keys() & kinds):
                plot = {"name": item.key.name, "kind": kind, "columns": {}}
                plots.append(({**_subject(record, item.key), **plot}, item.value))
    return sorted(plots, key=lambda plot: _order(plot[0]))


def _plot(plot: Row, message: Any, limit: SizeLimit) -> Row | None:
    columns = table(message, plot["kind"], limit)
    return None if columns is None else {**plot, "columns": columns}


def _order(row: Row) -> tuple[Any, ...]:
    return (
        len(row["slice"]),
        row["compared_with"] is not None,
        json.dumps(row["slice"]),
        row["model"],
        row["output"],
        tuple(sorted(row["sub_key"].items())),
        json.dumps(row),
    )


def _subject(record: Any, key: Any) -> Row:
    """Returns what metrics or plots are about."""
    slice_key, baseline = record.slice_key, None
    if record.HasField("cross_slice_key"):
        cross = record.cross_slice_key
        slice_key, baseline = (
            cross.comparison_slice_key,
            _slice(cross.baseline_slice_key),
        )
    weighted = key.example_weighted.value if key.HasField("example_weighted") else None
    return {
        "slice": _slice(slice_key),
        "compared_with": baseline,
        "model": key.model_name or "candidate",
        "output": key.output_name,
        "sub_key": {
            field.name: value.value for field, value in key.sub_key.ListFields()
        },
        "example_weighted": weighted,
    }


def _slice(slice_key: Any) -> dict[str, float | str]:
    """Returns the value of each feature that makes up the slice."""
    values: dict[str, float | str] = {}
    for part in slice_key.single_slice_keys:
        value = getattr(part, part.WhichOneof("kind") or "bytes_value")
        if isinstance(value, bytes):
            values[part.column] = value.decode("utf-8", errors="replace")
        else:
            values[part.column] = json_number(value)
    return values


def _aggregation(kind: Any) -> str | None:
    return next((field.name for field, value in kind.ListFields() if value), None)
