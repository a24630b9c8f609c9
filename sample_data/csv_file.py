"""A CSV file with a header: one record per row, one feature per column.

A column of integers or numbers becomes int64 or float32; other columns are text. An
empty cell is a missing feature, and so is ``NA``, ``NaN`` or ``null`` in a column of
numbers. Numbers that cannot be stored without loss are text: postcodes with a leading
zero, and integers of more than 64 bits.

The file is read twice: first to check every row and infer the types, then by the byte
offset of each row. Memory is 8 bytes per row.
"""

from __future__ import annotations

import csv
import re
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from sample_data import tf_example
from sample_data.data_set import ALL, Content, DataSet, Source, Split
from sluice.errors import DataError, UsageError, did_you_mean

_MAX_LINE_BYTES = 1 << 20
_MISSING = frozenset({"", "NA", "N/A", "NaN", "nan", "null", "NULL"})
_INTEGER = re.compile(r"[+-]?(0|[1-9]\d*)", re.ASCII)
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_LEADING_ZERO = re.compile(r"[+-]?0\d+", re.ASCII)
_INT64 = range(-(2**63), 2**63)
_FLOAT32_MAX = 3.4028234663852886e38
# From the narrowest type to the widest.
_UNKNOWN, _INT, _FLOAT, _TEXT = range(4)


@dataclass(frozen=True)
class CsvRows:
    """Records of the rows of a CSV file."""

    path: Path
    types: dict[str, int]
    offsets: array[int]

    def __len__(self) -> int:
        return len(self.offsets)

    def __getitem__(self, position: int) -> bytes:
        with open(self.path, "rb") as file:
            file.seek(self.offsets[position])
            row = next(_Rows(self.path, file))
        features: dict[str, tf_example.Values] = {}
        for (column, kind), cell in zip(self.types.items(), row, strict=True):
            if cell == "" or (kind < _TEXT and cell in _MISSING):
                continue
            if kind == _INT:
                features[column] = [int(cell)]
            elif kind == _FLOAT:
                features[column] = [float(cell)]
            else:
                features[column] = [cell.encode()]
        return tf_example.encode(features)


def read_csv(source: Source) -> Content:
    """Parses a CSV file, or the only one in a folder.

    Raises:
      UsageError: there is no such file, or no column of the label's name.
      DataError: the file is not UTF-8, the header is invalid, a row is malformed, or a
        row has no label.
    """
    path = _find(source.path)
    with open(path, "rb") as file:
        if file.read(3) != b"\xef\xbb\xbf":  # Byte order mark.
            file.seek(0)
        rows = _Rows(path, file)
        columns = _header(rows, path)
        label = _label_position(columns, source.label, path)
        kinds, offsets = [_UNKNOWN] * len(columns), array("Q")
        start, line = file.tell(), rows.lines + 1
        for row in rows:
            if row:  # [] is an empty line.
                _check_row(row, columns, label, f"{path}:{line}")
                kinds = [
                    kind if kind == _TEXT else max(kind, _kind(cell))
                    for kind, cell in zip(kinds, row, strict=True)
                ]
                offsets.append(start)
            start, line = file.tell(), rows.lines + 1
    types = {column: kind or _TEXT for column, kind in zip(columns, kinds, strict=True)}
    return Content({ALL: CsvRows(path, types, offsets)}, (path,))


class _Rows(Iterator[list[str]]):
    """Rows of a file; the file position is the end of the row returned last."""

    def __init__(self, path: Path, file: IO[bytes]) -> None:
        self.lines = 0
        self._path, self._file = path, file
        self._reader = csv.reader(self._texts(), strict=True)

    def __next__(self) -> list[str]:
        try:
            return next(self._reader)
        except csv.Error as error:
            raise self._error("This row is malformed.", str(error)) from error

    def _texts(self) -> Iterator[str]:
        while line := self._file.readline(_MAX_LINE_BYTES + 1):
            self.lines += 1
            if len(line) > _MAX_LINE_BYTES:
                actual = f"more than {_MAX_LINE_BYTES:,} bytes"
                raise self._error("This line is too long.", actual)
            try:
                yield line.decode()
            except UnicodeDecodeError as error:
                actual = f"the byte 0x{line[error.start]:02x} at {error.start + 1}"
                raise self._error("This line is not UTF-8.", actual) from error

    def _error(self, what: str, actual: str) -> DataError:
        return DataError(
            what,
            where=f"{self._path}:{self.lines}",
            expected="comma-separated values in UTF-8",
            actual=actual,
            hint="Correct the line, or export the file again as CSV in UTF-8.",
        )


def _kind(cell: str) -> int:
    """Returns the narrowest type that stores a cell without loss."""
    if cell in _MISSING:
        return _UNKNOWN
    if _INTEGER.fullmatch(cell):
        return _INT if len(cell) < 21 and int(cell) in _INT64 else _TEXT
    if _NUMBER.fullmatch(cell) and not _LEADING_ZERO.fullmatch(cell):
        return _FLOAT if abs(float(cell)) <= _FLOAT32_MAX else _TEXT
    return _TEXT


def _check_row(row: list[str], columns: list[str], label: int, where: str) -> None:
    if len(row) != len(columns):
        raise DataError(
            "the number of cells in this row differs from the header",
            where=where,
            expected=f"{len(columns)} cells",
            actual=f"{len(row)}",
            hint="Correct the row; a cell with a comma or a line break is quoted.",
        )
    if row[label] in _MISSING:
        raise DataError(
            f"this row has no label: its {columns[label]!r} is empty",
            where=where,
            expected="a label in every row",
            hint="Fill it in, or remove the row.",
        )


def _header(rows: _Rows, path: Path) -> list[str]:
    columns = next(rows, [])
    if not columns or "" in columns or len(set(columns)) < len(columns):
        raise DataError(
            "the first line of this CSV file is not a header",
            where=f"{path}:1",
            expected="the name of each column, all different",
            actual=", ".join(map(repr, columns)) or "an empty line",
            hint="Write the names of the columns into the first line.",
        )
    return columns


def _label_position(columns: list[str], label: str | None, path: Path) -> int:
    if label in columns:
        return columns.index(label)
    raise UsageError(
        "the label column is not given"
        if label is None
        else f"this CSV file has no column {label!r}",
        where=path,
        expected=f"one of {', '.join(columns)}",
        hint="sluice data make csv --from FILE --label COLUMN"
        if label is None
        else did_you_mean(label, columns),
    )


def _find(path: Path) -> Path:
    found = sorted(path.glob("*.csv")) if path.is_dir() else [path]
    if len(found) == 1 and found[0].is_file():
        return found[0]
    raise UsageError(
        "there is no CSV file here"
        if len(found) < 2
        else "there are several CSV files here",
        where=path,
        examples=[item.name for item in found if path.is_dir()],
        expected=CSV.expected_files,
        hint="sluice data make csv --from FILE --label COLUMN",
    )


CSV = DataSet(
    name="csv",
    version=1,
    description="a CSV file of your own with a header; --label COLUMN",
    licence="your own",
    gzip=True,
    splits=(Split("train", 8, 8), Split("eval", 1, 2), Split("test", 1, 2)),
    read=read_csv,
    expected_files="a CSV file, or a folder with one",
)
