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
from sample_data.data_set import ALL, DataSet, Parts, Records, Split
from sluice.errors import DataError
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


def read_taxi(path: Path, label: str | None) -> Parts:
    """Returns one record per trip.

    Raises:
      DataError: TFX does not hold the file that this module knows.
    """
    # Finding TFX does not import it, which would take 16 seconds.
    package = importlib.util.find_spec("tfx")
    folders = (package and package.submodule_search_locations) or ["."]
    file = Path(folders[0], _SOURCE)
    if not file.is_file() or digest.of_file(file) != _SOURCE_SHA256:
        raise DataError(
            "the taxi data that ships with TFX is missing, or another file",
            where=file,
            hint="install TFX again: make setup",
        )
    with open(file, newline="", encoding="ascii") as text:
        rows = list(csv.DictReader(text))
    return {ALL: Records(len(rows), lambda at: tf_example.encode(features(rows[at])))}


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


TAXI = DataSet(
    name="taxi",
    version=1,
    description="15,002 Chicago taxi trips with missing values (from the TFX wheel)",
    licence="data.cityofchicago.org, Data Terms of Use",
    gzip=True,
    splits=(Split("train", 10502, 4), Split("eval", 2250, 2), Split("test", 2250, 2)),
    read=read_taxi,
)
