"""Distances of features as TFDV measures them, of real trips and of changed ones."""

import math
import random

import pytest
from tensorflow_metadata.proto.v0 import schema_pb2

from components.data_verdict import drift as gate
from sample_data import catalog
from sample_data.tf_example import encode
from schemas.data_statistics import compute_statistics
from schemas.distances import MISSING, distances_of_all
from sluice.tfrecords import tfrecord
from sluice.tfrecords.tf_example_pb2 import Example

pytestmark = pytest.mark.tf


@pytest.fixture(scope="module")
def trips(tmp_path_factory):
    """Taxi's records of train and eval."""
    folder = tmp_path_factory.mktemp("taxi") / "taxi"
    catalog.make("taxi", folder)
    return [
        [x for path in sorted(folder.glob(f"{split}-*")) for x in tfrecord.read(path)]
        for split in ("train", "eval")
    ]


def changed(records, share, change):
    """Returns records, a share of which is changed."""
    chosen, found = random.Random(17), []
    for record in records:
        example = Example.FromString(record)
        if chosen.random() < share:
            change(example.features.feature)
        found.append(example.SerializeToString())
    return found


def compare(current, control, left_out=()):
    found = distances_of_all(
        compute_statistics(current), compute_statistics(control), left_out
    )
    return sorted(found, key=lambda item: -item.distance)


def test_equal_data_is_near_and_a_changed_feature_comes_first(trips):
    """Found: in TFDV's own histograms trip_miles was 0.7 off, and fare eleventh."""
    train, evaluation = trips
    names = Example.FromString(train[0]).features.feature
    same = compare(train, evaluation)
    assert {item.feature for item in same} >= {*names}
    assert same[0].distance < 0.02 and {item.limit for item in same} == {None}

    def triple(features):
        features["fare"].float_list.value[0] *= 3

    tripled = changed(evaluation, 0.5, triple)
    first, second, *_ = compare(train, tripled)
    assert (first.feature, first.measure) == ("fare", "Jensen-Shannon")
    assert first.distance > 0.08 > 0.02 > second.distance
    limited = schema_pb2.Schema()
    feature = limited.feature.add(name="fare", type=schema_pb2.FLOAT)
    feature.drift_comparator.jensen_shannon_divergence.threshold = 0.05
    judged = [
        gate.compare(limited, gate.Pair("split_drift", "train", "eval", *pair))
        for pair in (map(compute_statistics, (train, x)) for x in (evaluation, tripled))
    ]
    assert [item.rows[0].passed for item in judged] == [True, False]
    assert judged[1].rows[0].actual == pytest.approx(first.distance)


def test_missing_values_and_nan_are_a_shift(trips):
    train, _ = trips

    def lose(features):
        del features["fare"]
        features["trip_miles"].float_list.value[0] = random.choice(
            [math.nan, -math.inf]
        )
        features["new"].int64_list.value.append(1)

    found = compare(train, changed(train, 0.3, lose), left_out=["company"])
    shares = {x.feature: x.distance for x in found if x.measure == MISSING}
    assert [item.feature for item in found].count("company") == 0
    assert shares.pop("new") == pytest.approx(0.3, abs=0.02)
    assert shares == {
        name: pytest.approx(0.3, abs=0.02) for name in ("fare", "trip_miles")
    }


def test_values_without_a_meaning_have_no_large_distance():
    def records(first):
        return [
            encode(
                {"id": [b"id %d" % n], "image": [b"\xff%d" % n], "zero": [n % 2]},
            )
            for n in range(first, first + 3000)
        ]

    found = {x.feature: x for x in compare(records(0), records(9000))}
    assert "image" not in found and found["zero"].distance == 0
    assert found["id"].measure == "L-infinity" and found["id"].distance < 0.01


def test_a_rare_class_that_becomes_frequent_is_a_shift():
    rare, frequent = (
        [encode({"x": [int(n % k > 0)]}) for n in range(900)] for k in (50, 3)
    )
    (found,) = compare(frequent, rare)
    assert found.distance > 0.1
