"""Tables, one record per row: taxi trips, diabetes patients.

A column of whole numbers or numbers becomes int64 or float32; other columns are text.
An empty cell is a missing feature.
"""

from __future__ import annotations

import csv
import importlib.metadata
from collections.abc import Sequence
from pathlib import Path

from sample_data.data_set import ALL, DataSet, Parts, Records, Split
from sample_data.tf_example import Values, encode
from sluice.table_files import MISSING, narrowest
from sluice.tfrecords.row_encoding import BYTES, INT

# https://data.cityofchicago.org/Transportation/Taxi-Trips/wrvz-psew
# The same file in TFX 1.16.0 and 1.21.0.
_TAXI = "tfx/examples/chicago_taxi_pipeline/data/simple/data.csv"


def read_taxi(path: Path) -> Parts:
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


def read_diabetes(path: Path) -> Parts:
    """Returns scikit-learn's patients, with values as they were measured.

    https://www4.stat.ncsu.edu/~boos/var.select/diabetes.html
    """
    from sklearn.datasets import load_diabetes

    source = load_diabetes(scaled=False)
    columns = [*source.feature_names, "progression"]
    rows = zip(*source.data.T, source.target, strict=True)
    return {ALL: _records(columns, [[f"{x:.6g}" for x in row] for row in rows])}


def _records(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Records:
    kinds = [narrowest(cells) or BYTES for cells in zip(*rows, strict=True)]

    def make(position: int) -> bytes:
        features: dict[str, Values] = {}
        for column, kind, cell in zip(columns, kinds, rows[position], strict=True):
            if cell and kind == BYTES:
                features[column] = [cell.encode()]
            elif cell not in MISSING:
                features[column] = [int(cell) if kind == INT else float(cell)]
        return encode(features)

    return Records(len(rows), make)


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
