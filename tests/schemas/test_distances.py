"""Distances of features as TFDV measures them, of real trips and of changed ones."""

import math
import random
from dataclasses import replace
from typing import Any

import pytest
from tensorflow_metadata.proto.v0 import schema_pb2

from components.data_verdict import drift as gate
from sample_data import catalog
from sample_data.tf_example import encode, encode_png
from schemas.data_statistics import compute_statistics, decode_records
from schemas.distances import MISSING, distances_of_all, sizes, with_chance
from schemas.image_statistics import add_measures, measure
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


@pytest.mark.parametrize(
    ("value", "other"), [(0.0, -1.0), (0.0, 0.5), (2.0, 3.0), (2.0, 1.5), (0.0, 4.0)]
)
def test_another_value_of_many_examples_is_a_distance(value, other):
    """Found: zeros that became -1 had the distance 0."""
    chosen = random.Random(3)
    numbers = [chosen.choice([0.0, chosen.uniform(0, 2), 2.0]) for _ in range(3000)]
    other_numbers = [other if x == value else x for x in numbers]
    share = numbers.count(value) / 3000
    (found,) = compare(
        [encode({"x": [x]}) for x in other_numbers],
        [encode({"x": [x]}) for x in numbers],
    )
    # A bucket may have further values, so that it is less.
    assert 0.5 * share < found.distance < share + 0.05


def test_values_without_a_meaning_have_no_large_distance():
    def records(first):
        return [
            encode(
                {"id": [b"id %d" % n], "image": [b"\xff%d" % n], "zero": [n % 2]},
            )
            for n in range(first, first + 3000)
        ]

    distances = {x.feature: x for x in compare(records(0), records(9000))}
    assert "image" not in distances and distances["zero"].distance == 0
    ids = distances["id"]
    assert ids.measure == "L-infinity" and ids.distance < 0.01


def _records(count, seed, **features):
    chosen = random.Random(seed)
    return [
        encode({name: value(chosen) for name, value in features.items()})
        for _ in range(count)
    ]


AS_BEFORE = {
    "text": lambda r: [r.choice([b"a", b"b", b"c", b"d"])],
    "flag": lambda r: [int(r.random() < 0.5)],
    "number": lambda r: [r.gauss(0, 1)],
    "id": lambda r: [b"%d" % r.randrange(10**9)],
    "many_ids": lambda r: [b"%d" % int(100 * r.paretovariate(0.4))],
    # The values of an example are the same one.
    "list": lambda r: [r.choice([b"a", b"b", b"c", b"d"])] * 40,
    "nan": lambda r: [math.nan if r.random() < 0.3 else r.gauss(0, 1)],
    "infinite": lambda r: [math.inf if r.random() < 0.1 else r.gauss(0, 1)],
}
CHANGED = {
    "text": lambda r: [r.choice([b"a", b"a", b"b", b"c"])],
    "flag": lambda r: [int(r.random() < 0.8)],
    "number": lambda r: [r.gauss(0.5, 1)],
    "id": lambda r: [b"0" if r.random() < 0.3 else b"%d" % r.randrange(10**9)],
    "list": lambda r: [r.choice([b"a", b"a", b"b", b"c"])] * 40,
    "nan": lambda r: [math.nan if r.random() < 0.6 else r.gauss(0, 1)],
}
CATEGORIES = {"text", "id", "many_ids", "list"}


@pytest.mark.parametrize(
    ("count", "other", "expected"),
    [(10, 1000, set()), (1000, 10, set()), (40, 40, set()), (1500, 3000, {*CHANGED})],
)
def test_what_chance_gives_is_no_failure(count, other, expected):
    """Found: 10 requests of the same distribution as 1,000 examples were skew."""
    schema = schema_pb2.Schema()
    for name in AS_BEFORE:
        kind = {"flag": schema_pb2.INT}.get(name, schema_pb2.FLOAT)
        kind = schema_pb2.BYTES if name in CATEGORIES else kind
        feature = schema.feature.add(name=name, type=kind)
        found = feature.skew_comparator
        if name in CATEGORIES:
            found.infinity_norm.threshold = 0.02
        if name != "id":
            found.jensen_shannon_divergence.threshold = 0.02
    control = compute_statistics(_records(other, 1, **AS_BEFORE))

    def judge(features, seed):
        current = compute_statistics(_records(count, seed, **features))
        pair = gate.Pair("skew", "train", "before", current, control)
        return gate.compare(schema, pair).rows

    for seed in (2, 3, 4):
        rows = judge(AS_BEFORE, seed)
        assert [(x.feature, x.measure) for x in rows if not x.passed] == []
        (size,) = {
            row.why.partition(", w")[0].removeprefix("not judged: ") for row in rows
        }
        assert size == f"{count:,} examples against {other:,}"
    rows = judge(AS_BEFORE | CHANGED, 5)
    assert {x.feature for x in rows if not x.passed} >= expected
    assert all(f"{count:,} examples against {other:,}" in x.why for x in rows)


def test_few_examples_that_are_all_different_from_before_are_a_shift():
    pair = _records(10, 1, x=lambda r: [b"new"]), _records(1000, 2, x=AS_BEFORE["text"])
    for current, control in (pair, pair[::-1]):
        sides = compute_statistics(current), compute_statistics(control)
        (found,) = distances_of_all(*sides, ())
        found = with_chance(replace(found, limit=0.1), *sides)
        assert (found.distance, found.is_by_chance) == (1.0, False)
        assert found.chance is not None and 0.1 < found.chance < 0.6
        assert "examples against" in sizes(*sides, found)
        assert (
            with_chance(replace(found, chance=None, limit=None), *sides).chance is None
        )


def test_missing_values_of_few_examples():
    """Neither of two examples has a value; half of 1,000 have one."""
    rare = [encode({"y": [1]}), encode({"y": [1]})]
    half = [encode({"y": [1], "x": [1]} if n % 2 else {"y": [1]}) for n in range(1000)]
    for current, is_by_chance in ((rare, True), (rare * 10, False)):
        sides = compute_statistics(current), compute_statistics(half)
        (item,) = [x for x in distances_of_all(*sides, ()) if x.measure == MISSING]
        item = with_chance(replace(item, limit=0.1), *sides)
        assert (item.distance, item.is_by_chance) == (0.5, is_by_chance)


def _images(brightness: float, size: int = 16, count: int = 200) -> list[bytes]:
    import numpy as np

    random = np.random.default_rng(5)
    pixels = random.uniform(0, 255 * brightness, (count, size, size)).astype(np.uint8)
    shades = random.uniform(0.5, 1.0, count)
    shaded = [
        (x * shade).astype(np.uint8) for x, shade in zip(pixels, shades, strict=True)
    ]
    return [encode({"image": [encode_png(image)]}) for image in shaded]


def _of_images(records: list[bytes]) -> Any:
    """Returns the statistics as StatisticsGen computes them."""
    statistics = compute_statistics(records)
    batch = decode_records(records)
    add_measures(statistics, [measure(batch.slice(0, 77)), measure(batch.slice(77))])
    return type(statistics).FromString(statistics.SerializeToString())


def test_images_are_compared_by_brightness_and_size():
    damaged = encode({"image": [b"\x89PNG\r\n\x1a\n damaged"]})
    plain = _of_images([*_images(1.0), damaged])

    def measured(records: list[bytes]) -> dict[str, float]:
        found = [*distances_of_all(_of_images(records), plain, ())]
        assert {x.feature for x in found} == {"image"}
        return {x.measure.partition(":")[0]: x.distance for x in found}

    assert max(measured(_images(1.0)).values()) < 0.01
    darker = measured(_images(0.5))
    assert darker["brightness"] > 0.8 and max(darker["width"], darker["height"]) == 0
    larger = measured(_images(1.0, size=32))
    assert min(larger["width"], larger["height"]) == pytest.approx(1.0)
    assert larger["brightness"] < 0.1


@pytest.mark.parametrize(("brightness", "by_chance"), [(1.0, True), (0.5, False)])
def test_few_images_differ_by_chance(brightness, by_chance):
    few, many = _of_images(_images(brightness, count=12)), _of_images(_images(1.0))
    found = [x for x in distances_of_all(few, many, ()) if "bright" in x.measure]
    (judged,) = [with_chance(replace(x, limit=0.01), few, many) for x in found]
    assert judged.distance > 0.01 and judged.is_by_chance is by_chance
