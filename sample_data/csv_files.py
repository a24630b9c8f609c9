"""Tables, one record per row: a CSV file of your own, taxi trips, diabetes patients.

A column of integers or numbers becomes int64 or float32; other columns are text. An
empty cell is a missing feature, and so is ``NA``, ``NaN`` or ``null`` in a column of
numbers. Numbers that cannot be stored without loss are text: postcodes with a leading
zero, and integers of more than 64 bits. The whole file is in memory.
"""

from __future__ import annotations

import csv
import importlib.metadata
import re
from collections.abc import Sequence
from pathlib import Path

from sample_data.data_set import ALL, EIGHT_ONE_ONE, DataSet, Parts, Records, Split
from sample_data.tf_example import Values, encode
from sluice.errors import DataError, UsageError, did_you_mean

_MISSING = frozenset({"", "NA", "N/A", "NaN", "nan", "null", "NULL"})
_INTEGER = re.compile(r"[+-]?(0|[1-9]\d*)", re.ASCII)
_FLOAT = re.compile(
    r"[+-]?(0|[1-9]\d*|(?=\.\d))(\.\d*)?(e[+-]?\d+)?", re.ASCII | re.IGNORECASE
)
_FLOAT32_MAX = 3.4028234663852886e38

# https://data.cityofchicago.org/Transportation/Taxi-Trips/wrvz-psew
# The same file in TFX 1.16.0 and 1.21.0.
_TAXI = "tfx/examples/chicago_taxi_pipeline/data/simple/data.csv"


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
            columns, *rows = filter(None, csv.reader(text, strict=True))
    except (ValueError, csv.Error) as error:  # Not UTF-8, too, is a ValueError.
        raise DataError(f"this is no CSV file in UTF-8: {error}", where=file) from error
    if "" in columns or len(set(columns)) < len(columns):
        raise DataError("the first line is not a header of unique names", where=file)
    if label not in columns:
        raise UsageError(
            f"the label is no column of the file: --label {label or 'COLUMN'}",
            where=file,
            hint=did_you_mean(label, columns) or f"it has {', '.join(columns)}",
        )
    at = columns.index(label)
    for number, row in enumerate(rows, 1):
        if len(row) != len(columns):
            flaw = f"{len(row)} cells, not {len(columns)}"
        elif row[at] in _MISSING:
            flaw = f"no label in {label!r}"
        else:
            continue
        raise DataError(f"row {number:,} after the header has {flaw}", where=file)
    return {ALL: _records(columns, rows)}


def read_taxi(path: Path, label: str | None) -> Parts:
    """Returns the trips that ship inside the TFX wheel.

    The label ``big_tip`` is 1 where the tip is above 20 % of the fare, 0 where the fare
    is 0 (27 rows, all without a tip). ``tips`` itself is not written, since it gives
    the label away; no other column contains the tip. Fare and tip are never missing.
    Cash tips are mostly not recorded, so ``payment_type`` nearly decides the label, and
    only within "Credit Card" there is something to learn.
    """
    # Importing TFX to find it would take 16 seconds.
    file = str(importlib.metadata.distribution("tfx").locate_file(_TAXI))
    with open(file, newline="", encoding="ascii") as text:
        rows = list(csv.DictReader(text))
    for row in rows:
        row["big_tip"] = str(big_tip(float(row["fare"]), float(row.pop("tips"))))
    return {ALL: _records(list(rows[0]), [list(row.values()) for row in rows])}


def big_tip(fare: float, tips: float) -> int:
    """Returns the label of a trip."""
    return int(tips > 0.2 * fare)


def read_diabetes(path: Path, label: str | None) -> Parts:
    """Returns scikit-learn's patients, with values as they were measured.

    https://www4.stat.ncsu.edu/~boos/var.select/diabetes.html
    """
    from sklearn.datasets import load_diabetes

    source = load_diabetes(scaled=False)
    columns = [*source.feature_names, "progression"]
    rows = zip(*source.data.T, source.target, strict=True)
    return {ALL: _records(columns, [[f"{x:.6g}" for x in row] for row in rows])}


def _records(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Records:
    types = [_narrowest_type({*cells} - _MISSING) for cells in zip(*rows, strict=True)]

    def make(position: int) -> bytes:
        features: dict[str, Values] = {}
        for column, type_, cell in zip(columns, types, rows[position], strict=True):
            if cell and type_ is str:
                features[column] = [cell.encode()]
            elif cell not in _MISSING:
                features[column] = [int(cell) if type_ is int else float(cell)]
        return encode(features)

    return Records(len(rows), make)


def _narrowest_type(cells: set[str]) -> type[int] | type[float] | type[str]:
    """Returns the narrowest type that stores the cells of a column without loss."""
    if not cells:
        return str
    integers = {cell for cell in cells if _INTEGER.fullmatch(cell)}
    if any(abs(int(cell)) >= 2**63 for cell in integers):
        return str
    if integers == cells:
        return int
    if all(_FLOAT.fullmatch(x) and abs(float(x)) <= _FLOAT32_MAX for x in cells):
        return float
    return str


CSV = DataSet(
    name="csv",
    description="a CSV file of your own with a header; --label COLUMN",
    licence="your own",
    splits=EIGHT_ONE_ONE,
    read=read_csv,
    files="a CSV file, or a folder with one",
)
TAXI = DataSet(
    name="taxi",
    description="15,002 Chicago taxi trips with missing values (from the TFX wheel)",
    licence="data.cityofchicago.org, Data Terms of Use",
    splits=(Split("train", 10502, 4), Split("eval", 2250, 2), Split("test", 2250, 2)),
    read=read_taxi,
)
DIABETES = DataSet(
    name="diabetes",
    description="442 patients, how diabetes progressed in a year (from scikit-learn)",
    licence="not stated; cite Efron et al. 2004",
    splits=(Split("train", 310, 2), Split("eval", 66, 1), Split("test", 66, 1)),
    read=read_diabetes,
)
