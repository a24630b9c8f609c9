"""Taxi trips: types, missing cells, label, and the one source that is accepted."""

from types import SimpleNamespace

import pytest

from sample_data import taxi
from sluice.errors import DataError

pytestmark = pytest.mark.unit

CELLS = {
    "fare": "12.45",
    "trip_start_timestamp": "1400269500",
    "pickup_longitude": "-87.62",
    "trip_miles": "0.0",
    "dropoff_census_tract": "17031839100",
    "payment_type": "Credit Card",
    "trip_seconds": "0",
}
EMPTY = ["pickup_community_area", "pickup_latitude", "company", "pickup_census_tract"]
EMPTY += ["dropoff_latitude", "dropoff_longitude", "dropoff_community_area"]
TIMES = {"trip_start_month": "5", "trip_start_hour": "0", "trip_start_day": "6"}
ROW = {**CELLS, **TIMES, **dict.fromkeys(EMPTY, ""), "tips": "2.5"}


def test_types_and_missing_cells():
    assert taxi.features(ROW) == {
        "fare": [12.45],
        "trip_start_month": [5],
        "trip_start_hour": [0],
        "trip_start_day": [6],
        "trip_start_timestamp": [1400269500],
        "pickup_longitude": [-87.62],
        "trip_miles": [0.0],
        "dropoff_census_tract": [17031839100],
        "payment_type": [b"Credit Card"],
        "trip_seconds": [0],
        "big_tip": [1],
    }


@pytest.mark.parametrize(
    ("fare", "tips", "big_tip"),
    [
        ("10.0", "2.01", 1),
        ("10.0", "2.0", 0),  # 20 % is not above 20 %.
        ("0", "0", 0),
        ("0.0", "0.5", 1),
    ],
)
def test_the_label(fare, tips, big_tip):
    assert taxi.features({**ROW, "fare": fare, "tips": tips})["big_tip"] == [big_tip]


def test_another_source_is_refused(monkeypatch, tmp_path):
    found = SimpleNamespace(submodule_search_locations=(str(tmp_path),))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: found)
    source = tmp_path / taxi._SOURCE
    source.parent.mkdir(parents=True)
    for content in (None, b"fare,tips\n1,2\n"):
        if content:
            source.write_bytes(content)
        with pytest.raises(DataError, match="missing, or another file") as caught:
            taxi.read_taxi(tmp_path, None)
        assert caught.value.where == str(source)
