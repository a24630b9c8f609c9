"""Writes predictions to a file, whole or not at all: CSV, JSON lines or Parquet.

A table has one column for each key of a prediction, and of ``probabilities`` one for
each class: ``probability_NAME``. Lists are JSON text, as are ids of bytes that are no
text.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any

from sluice.errors import DataError, UsageError
from sluice.storage import atomic

# The rows of a group in Parquet.
_GROUP_SIZE = 10_000
_PROBABILITY = "probability_"
Row = Mapping[str, Any]


def check_suffix(path: Path) -> None:
    """Raises UsageError unless predictions can be written to a file of this name."""
    if path.suffix not in _WRITERS:
        raise UsageError(
            f"predictions cannot be written to {path.name}",
            expected=f"a name that ends in {', '.join(_WRITERS)}",
        )


def check_id(name: str) -> None:
    """Raises UsageError if a prediction has other values of this name."""
    keys = ("source", "index", "label", "labels", "probabilities", "prediction")
    if name in (*keys, "missing") or name.startswith(_PROBABILITY):
        raise UsageError(
            f"{name!r} cannot be the id: a prediction has a value of that name",
            where="--id",
        )


def write_predictions(path: Path, predictions: Iterable[Row]) -> None:
    """Writes predictions in the format that the suffix of a file names.

    Args:
      path: a file that there is stays until the new one is complete.
      predictions: at least one, in their JSON form; all have the same keys, except
        ``missing``, which tables leave out.

    Raises:
      UsageError: the file cannot be written.
      DataError: the format cannot hold a value, such as ids of several types in
        Parquet.
    """
    try:
        with atomic.replacing(path) as file:
            _WRITERS[path.suffix](file, iter(predictions))
    except OSError as error:
        raise UsageError(
            f"the predictions cannot be written: {error.strerror}", where=path
        ) from error
    except (ValueError, TypeError, OverflowError) as error:
        raise DataError(
            f"the predictions cannot be written as {path.suffix}: {error}",
            where=path,
            hint="a file .jsonl holds every value",
        ) from error


def _write_json_lines(file: IO[bytes], predictions: Iterator[Row]) -> None:
    for prediction in predictions:
        file.write(json.dumps(prediction).encode() + b"\n")


def _write_csv(file: IO[bytes], predictions: Iterator[Row]) -> None:
    rows = map(_flat, predictions)
    first = next(rows)
    text = io.TextIOWrapper(file, "utf-8", newline="")
    writer = csv.DictWriter(text, first)
    writer.writeheader()
    writer.writerows(chain([first], rows))
    text.detach()


def _write_parquet(file: IO[bytes], predictions: Iterator[Row]) -> None:
    import pyarrow
    from pyarrow import parquet

    rows = map(_flat, predictions)
    groups = iter(lambda: [*islice(rows, _GROUP_SIZE)], [])
    # The schema of each is its own: with a given one pyarrow makes an id of 0.5 a 0.
    tables = map(pyarrow.Table.from_pylist, groups)
    first = next(tables)
    with parquet.ParquetWriter(file, first.schema) as writer:
        for table in chain([first], tables):
            writer.write_table(table)


def _flat(prediction: Row) -> dict[str, Any]:
    """Returns the row of a table."""
    row: dict[str, Any] = {}
    for name, value in prediction.items():
        if name == "probabilities":
            row |= {f"{_PROBABILITY}{x}": share for x, share in value.items()}
        elif name != "missing":
            row[name] = json.dumps(value) if isinstance(value, dict | list) else value
    return row


_WRITERS = {
    ".csv": _write_csv,
    ".jsonl": _write_json_lines,
    ".parquet": _write_parquet,
}
