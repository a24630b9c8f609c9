"""Taxi trips: types, missing cells, label."""

from __future__ import annotations

import pytest

from sample_data import taxi
from sluice.errors import DataError, UsageError

pytestmark = pytest.mark.unit

ROW = {
    "pickup_community_area": "",
    "fare": "12.45",
    "trip_start_month": "5",
    "trip_start_hour": "0",
    "trip_start_day": "6",
    "trip_start_timestamp": "1400269500",
    "pickup_latitude": "",
    "pickup_longitude": "-87.62",
    "dropoff_latitude": "",
    "dropoff_longitude": "",
    "trip_miles": "0.0",
    "pickup_census_tract": "",
    "dropoff_census_tract": "17031839100",
    "payment_type": "Credit Card",
    "company": "",
    "trip_seconds": "0",
    "dropoff_community_area": "",
    "tips": "2.5",
}


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
        ("10.0", "0.0", 0),
        ("0", "0", 0),
        ("0.0", "0.5", 1),
    ],
)
def test_the_label(fare, tips, big_tip):
    features = taxi.features(ROW | {"fare": fare, "tips": tips})

    assert features["big_tip"] == [big_tip]


def test_without_tfx(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)

    with pytest.raises(UsageError, match="not installed here") as caught:
        taxi.records()
    assert caught.value.hint == "make setup"


@pytest.mark.parametrize("content", [None, b"fare,tips\n1,2\n"])
def test_another_source_is_refused(monkeypatch, tmp_path, content):
    source = tmp_path / taxi._SOURCE
    source.parent.mkdir(parents=True)
    if content is not None:
        source.write_bytes(content)

    class Found:
        submodule_search_locations = (str(tmp_path),)

    monkeypatch.setattr("importlib.util.find_spec", lambda name: Found)

    with pytest.raises(DataError, match="has an unexpected digest") as caught:
        taxi.records()
    assert caught.value.where == str(source)
    assert (caught.value.actual == "no such file") == (content is None)
