"""The reviewed schemas validate the sample data and reject bad records."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

import pytest

import schemas
from sample_data import catalog, tf_example
from schemas import loader
from sluice.tfrecords import tfrecord

pytestmark = pytest.mark.tf

NAMES = ["digits", "taxi", "diabetes"]

TRIP: dict[str, tf_example.Values] = {
    "fare": [12.45],
    "trip_start_month": [5],
    "trip_start_hour": [0],
    "trip_start_day": [6],
    "trip_start_timestamp": [1400269500],
    "pickup_latitude": [41.88],
    "trip_miles": [0.0],
    "trip_seconds": [300],
    "payment_type": [b"Cash"],
    "company": [b"Top Cab Affiliation"],
}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    root = tmp_path_factory.mktemp("data")
    for name in NAMES:
        catalog.make(name, root / name)
    return root


def load(name):
    return loader.load(Path(schemas.__file__).parent / name / "schema.pbtxt")


def anomalies(schema, pattern, environment=None):
    """Per feature what TFDV finds wrong, for every file that a pattern takes."""
    import tensorflow_data_validation as tfdv

    statistics = tfdv.generate_statistics_from_tfrecord(str(pattern))
    assert statistics.datasets[0].num_examples
    found = tfdv.validate_statistics(statistics, schema, environment=environment)
    assert not found.HasField("dataset_anomaly_info")
    return {
        feature: {reason.short_description for reason in info.reason}
        for feature, info in found.anomaly_info.items()
    }


@pytest.mark.parametrize("split", ["train", "eval", "test"])
@pytest.mark.parametrize("name", NAMES)
def test_no_split_has_an_anomaly(data, name, split):
    assert anomalies(load(name), data / name / f"{split}-*") == {}


def test_serving_needs_no_label(tmp_path):
    schema = load("taxi")
    areas = {"pickup_community_area": [8], "dropoff_community_area": [8]}
    ends = {
        "pickup_longitude": [-87.6],
        "dropoff_latitude": [41.9],
        "dropoff_longitude": [-87.6],
    }
    tract = {"dropoff_census_tract": [17031839100]}
    request = tf_example.encode(TRIP | areas | ends | tract)
    tfrecord.write(tmp_path / "request", [request])

    assert anomalies(schema, tmp_path / "request", "SERVING") == {}
    assert anomalies(schema, tmp_path / "request", "TRAINING") == {
        "big_tip": {"Column dropped"}
    }


def test_a_bad_trip_is_an_anomaly(data, tmp_path):
    bad: list[dict[str, tf_example.Values]] = [
        {"payment_type": [b"Barter"]},
        {"trip_start_hour": [24]},
        {"trip_miles": [float("nan")]},
        {"fare": [-1.0]},
        {"pickup_latitude": [0.0]},
        {"company": [b"one", b"two"]},
        {"big_tip": [2]},
        {"tips": [3.0]},
    ]
    tfrecord.write(
        tmp_path / "bad",
        [
            *chain(*map(tfrecord.read, (data / "taxi").glob("test-*"))),
            *(tf_example.encode(TRIP | {"big_tip": [0]} | change) for change in bad),
        ],
    )

    assert anomalies(load("taxi"), tmp_path / "bad") == {
        "payment_type": {"Unexpected string values"},
        "trip_start_hour": {"Out-of-range values"},
        "trip_miles": {"Invalid values"},
        "fare": {"Out-of-range values"},
        "pickup_latitude": {"Out-of-range values"},
        "company": {"Superfluous values"},
        "big_tip": {"Out-of-range values"},
        "tips": {"New column"},
    }


GRAY = {"image": [b"png"], "label": [9]}
FLOWER = {
    "image": [b"jpeg"],
    "label": [b"tulips"],
    "class": [4],
    "one_hot_class": [0.0, 0.0, 0.0, 0.0, 1.0],
    "size": [192, 192],
}


@pytest.mark.parametrize(
    ("name", "good", "bad", "expected"),
    [
        ("mnist", GRAY, [{"label": [10]}], {"label": {"Out-of-range values"}}),
        ("fashion-mnist", GRAY, [{"label": [-1]}], {"label": {"Out-of-range values"}}),
        ("cifar10", GRAY, [{"name": [b"cat"]}], {"name": {"New column"}}),
        (
            "flowers",
            FLOWER,
            [
                {"label": [b"peony"]},
                {"class": [5], "one_hot_class": [1.0], "size": [9]},
            ],
            {
                "label": {"Unexpected string values"},
                "class": {"Out-of-range values"},
                "one_hot_class": {"Feature shape dropped"},
                "size": {"Feature shape dropped"},
            },
        ),
    ],
)
def test_a_bad_image_record_is_an_anomaly(tmp_path, name, good, bad, expected):
    records = [tf_example.encode(good | change) for change in ({}, *bad)]
    tfrecord.write(tmp_path / "bad", records)

    assert anomalies(load(name), tmp_path / "bad") == expected
