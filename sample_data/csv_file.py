"""A CSV file with a header: one record per row, one feature per column.

A column of integers or numbers becomes int64 or float32; other columns are text. An
empty cell is a missing feature, and so is ``NA``, ``NaN`` or ``null`` in a column of
numbers. Numbers that cannot be stored without loss are text: postcodes with a leading
zero, and integers of more than 64 bits. The whole file is in memory.
"""

from __future__ import annotations

import csv
import re
from pathlib import Path

from sample_data.data_set import ALL, DataSet, Parts, Records, Split
from sample_data.tf_example import Values, encode
from sluice.errors import DataError, UsageError, did_you_mean

_MISSING = frozenset({"", "NA", "N/A", "NaN", "nan", "null", "NULL"})
_INTEGER = re.compile(r"[+-]?(0|[1-9]\d*)", re.ASCII)
_NUMBER = re.compile(r"[+-]?(0|[1-9]\d*)?(\.\d*)?([eE][+-]?\d+)?", re.ASCII)
_FLOAT32_MAX = 3.4028234663852886e38


def read_csv(path: Path, label: str | None) -> Parts:
    """Parses a CSV file, or the only one in a folder.

    Raises:
      UsageError: there is no such file, or no column of the label's name.
      DataError: the file is not UTF-8, the header is invalid, or a row has another
        number of cells or no label.
    """
    files = sorted(path.glob("*.csv")) if path.is_dir() else [path]
    if len(files) != 1:
        raise UsageError(f"there are {len(files)} CSV files here, not one", where=path)
    file = files[0]
    try:
        with open(file, newline="", encoding="utf-8-sig") as text:
            columns, *rows = csv.reader(text, strict=True)
    except (ValueError, csv.Error) as error:  # Not UTF-8, too, is a ValueError.
        raise DataError(f"this is no CSV file in UTF-8: {error}", where=file) from error
    if "" in columns or len(set(columns)) < len(columns):
        raise DataError("the first line is not a header of unique names", where=file)
    if label not in columns:
        raise UsageError(
            f"the label is no column of the file: --label {label or 'COLUMN'}",
            where=file,
            expected=f"one of {', '.join(columns)}",
            hint=did_you_mean(label, columns) if label else None,
        )
    at = columns.index(label)
    rows = [row for row in rows if row]
    for number, row in enumerate(rows, 1):
        if len(row) != len(columns) or row[at] in _MISSING:
            what = f"{len(row)} cells, not {len(columns)}"
            what = what if len(row) != len(columns) else f"no label in {label!r}"
            raise DataError(f"row {number:,} after the header has {what}", where=file)
    kinds = [_kind(cells) for cells in zip(*rows, strict=True)]

    def make(position: int) -> bytes:
        features: dict[str, Values] = {}
        for column, kind, cell in zip(columns, kinds, rows[position], strict=True):
            if cell and kind is str:
                features[column] = [cell.encode()]
            elif cell not in _MISSING and kind is int:
                features[column] = [int(cell)]
            elif cell not in _MISSING:
                features[column] = [float(cell)]
        return encode(features)

    return {ALL: Records(len(rows), make)}


def _kind(cells: tuple[str, ...]) -> type[int] | type[float] | type[str]:
    """Returns the narrowest type that stores the cells of a column without loss."""
    given = {*cells} - _MISSING
    if not given:
        return str
    if all(_INTEGER.fullmatch(cell) and abs(int(cell)) < 2**63 for cell in given):
        return int
    if all(_is_number(cell) for cell in given):
        return float
    return str


def _is_number(cell: str) -> bool:
    if not _NUMBER.fullmatch(cell) or not re.search(r"\d", cell):
        return False
    is_large = _INTEGER.fullmatch(cell) and abs(int(cell)) >= 2**63
    return not is_large and abs(float(cell)) <= _FLOAT32_MAX


CSV = DataSet(
    name="csv",
    version=1,
    description="a CSV file of your own with a header; --label COLUMN",
    licence="your own",
    gzip=True,
    splits=(Split("train", 8, 8), Split("eval", 1, 2), Split("test", 1, 2)),
    read=read_csv,
    files="a CSV file, or a folder with one",
)
