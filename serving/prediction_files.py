"""Writes predictions to a file, whole or not at all: tables, JSON lines or logs.

A table has one column for each key of a prediction, of ``probabilities`` one for each
class, ``probability_NAME``, and of several targets ``prediction_NAME``. Lists
are JSON text, as are ids of bytes that are no text.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any

from sluice.errors import UsageError
from sluice.storage import atomic
from sluice.tfrecords import tfrecord

SUFFIXES = (".csv", ".jsonl", ".parquet")
# The rows of a table that are in memory, a group of rows in Parquet.
_GROUP_SIZE = 10_000


def write_predictions(path: Path, predictions: Iterable[Mapping[str, Any]]) -> None:
    """Writes predictions in the format that the suffix of a file names.

    Args:
      path: ends in one of ``SUFFIXES``. A file that there is stays until the new one
        is complete.
      predictions: at least one, in their JSON form; all have the same keys, except
        ``missing``, which tables leave out.

    Raises:
      UsageError: the file cannot be written, or its format cannot hold a value, such
        as ids of several types in a table.
    """
    with _writing(path), atomic.replacing(path) as file:
        if path.suffix == ".jsonl":
            file.writelines(json.dumps(x).encode() + b"\n" for x in predictions)
        else:
            _write_table(file, path.suffix, map(_flat, predictions))


def write_logs(path: Path, logs: Iterable[bytes]) -> None:
    """Writes serialized ``PredictionLog``s as TFRecords, gzip-compressed if so named.

    Raises:
      UsageError: the file cannot be written.
    """
    with _writing(path):
        tfrecord.write(path, logs)


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, TypeError, OverflowError) as error:
        raise UsageError(
            f"the predictions cannot be written: {error}", where=path
        ) from error


def _write_table(file: IO[bytes], suffix: str, rows: Iterator[dict[str, Any]]) -> None:
    import pyarrow
    from pyarrow import csv, parquet

    groups = iter(lambda: [*islice(rows, _GROUP_SIZE)], [])
    # Each finds its types anew: given those of the first, pyarrow makes 0.5 a 0.
    tables = map(pyarrow.Table.from_pylist, groups)
    first = next(tables)
    make = csv.CSVWriter if suffix == ".csv" else parquet.ParquetWriter
    with make(file, first.schema) as writer:
        for table in chain([first], tables):
            writer.write_table(table)


def _flat(prediction: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the row of a table."""
    kept = {name: x for name, x in prediction.items() if name != "missing"}
    named = {f"probability_{x}": y for x, y in kept.pop("probabilities", {}).items()}
    if isinstance(targets := kept.get("prediction"), dict):
        del kept["prediction"]
        named = {f"prediction_{x}": y for x, y in targets.items()}
    is_text = (dict, list)
    row = {k: json.dumps(x) if isinstance(x, is_text) else x for k, x in kept.items()}
    return row | named
