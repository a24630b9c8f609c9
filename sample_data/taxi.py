"""Chicago taxi trips: the 15,002 rows that ship inside the TFX wheel.

https://data.cityofchicago.org/Transportation/Taxi-Trips/wrvz-psew

The label ``big_tip`` is 1 where the tip is above 20 % of the fare. ``tips`` itself is
not written, since it gives the label away; no other column contains the tip. A trip
with a fare of 0 (27 rows, all without a tip) has the label 0. Fare and tip are never
missing. Cash tips are mostly not recorded, so ``payment_type`` nearly decides the
label, and only within "Credit Card" there is something to learn.

A cell that is empty in the source is a feature that is absent from the record.
"""

from __future__ import annotations

import csv
import importlib.util
from pathlib import Path

from sample_data import tf_example
from sample_data.data_set import DataSet, Split
from sluice.errors import DataError, UsageError
from sluice.storage import digest

# The same file in TFX 1.16.0 and 1.21.0.
_SOURCE = "examples/chicago_taxi_pipeline/data/simple/data.csv"
_SOURCE_SHA256 = "cdaf0b5931442ef47693f408f25a37af710aca23fccb90a78f00930e89548805"

_INTEGERS = frozenset(
    "pickup_community_area dropoff_community_area pickup_census_tract "
    "dropoff_census_tract trip_start_month trip_start_day trip_start_hour "
    "trip_start_timestamp trip_seconds".split()
)
_FLOATS = frozenset(
    "fare trip_miles pickup_latitude pickup_longitude dropoff_latitude "
    "dropoff_longitude".split()
)
_LEAKS = frozenset({"tips"})


def records() -> list[bytes]:
    """Returns one tf.Example per trip.

    Raises:
      UsageError: TFX is not installed.
      DataError: its file is not the one that this module knows.
    """
    with open(_source(), newline="", encoding="ascii") as file:
        return [tf_example.encode(features(row)) for row in csv.DictReader(file)]


def features(row: dict[str, str]) -> dict[str, tf_example.Values]:
    """Returns the features of one row of the source, the label among them."""
    result: dict[str, tf_example.Values] = {}
    for column, cell in row.items():
        if not cell or column in _LEAKS:
            continue
        if column in _INTEGERS:
            result[column] = [int(cell)]
        elif column in _FLOATS:
            result[column] = [float(cell)]
        else:
            result[column] = [cell.encode()]
    result["big_tip"] = [int(float(row["tips"]) > 0.2 * float(row["fare"]))]
    return result


def _source() -> Path:
    # Finding TFX does not import it, which would take 16 seconds.
    package = importlib.util.find_spec("tfx")
    if package is None or not package.submodule_search_locations:
        raise UsageError(
            "the taxi data set ships inside TFX, which is not installed here",
            expected="the package tfx in this Python's environment",
            hint="make setup",
        )
    path = Path(package.submodule_search_locations[0], _SOURCE)
    found = digest.of_file(path) if path.is_file() else "no such file"
    if found != _SOURCE_SHA256:
        raise DataError(
            "the source file of the taxi data set has an unexpected digest",
            where=path,
            expected=f"SHA-256 {_SOURCE_SHA256}",
            actual=found,
            hint="Install TFX again: make setup",
        )
    return path


TAXI = DataSet(
    name="taxi",
    version=1,
    description="15,002 Chicago taxi trips with missing values (from the TFX wheel)",
    licence="data.cityofchicago.org, Data Terms of Use",
    gzip=True,
    splits=(Split("train", 10502, 4), Split("eval", 2250, 2), Split("test", 2250, 2)),
    records=records,
)
