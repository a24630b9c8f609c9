"""Semantic types and schemas inferred from records, compared with reviewed ones."""

from __future__ import annotations

import io
import random

import pytest
from google.protobuf import text_format
from PIL import Image
from tensorflow_metadata.proto.v0 import schema_pb2

from pipeline.scaffold.choose_features import (
    choose_features,
    find_leaks,
    group_feature,
    image_size,
)
from pipeline.scaffold.choose_label import label_candidates, why_no_label
from pipeline.scaffold.infer_schema import infer_schema
from pipeline.scaffold.semantic_type import semantic_type_of
from pipeline.scaffold.summarize import Summary, summarize
from sample_data import taxi
from sample_data.tf_example import encode
from schemas import loader
from sluice.project import own_root

pytestmark = pytest.mark.unit


@pytest.fixture(scope="module")
def taxi_summary() -> Summary:
    # A third of the records, and those few that have what no others have.
    records = taxi.records()
    rare = (b"Prcard", b"pickup_census_tract")
    few = [record for record in records if any(word in record for word in rare)]
    return summarize(records[::3] + few)


def table(count: int = 200, **columns) -> Summary:
    """Counts records of one value per column: a function of the row, None for none."""
    return summarize(rows(count, **columns))


def rows(count: int = 200, **columns) -> list[bytes]:
    made = []
    for row in range(count):
        values = {name: column(row) for name, column in columns.items()}
        made.append(
            encode(
                {
                    name: value if isinstance(value, list) else [value]
                    for name, value in values.items()
                    if value is not None
                }
            )
        )
    return made


def semantic_type(column, name: str = "x", count: int = 200):
    return semantic_type_of(table(count, **{name: column}).features[name])


def picture(width: int, height: int, mode: str = "RGB", kind: str = "PNG") -> bytes:
    file = io.BytesIO()
    Image.new(mode, (width, height)).save(file, kind)
    return file.getvalue()


@pytest.mark.parametrize(
    ("name", "column", "expected"),
    [
        ("x", lambda n: n / 7, "number"),
        ("x", lambda n: n * n, "number"),
        ("trip_seconds", lambda n: n % 4, "number"),
        ("x", lambda n: n % 4, "categorical"),
        ("store_code", lambda n: 37 * (n % 60), "categorical"),
        ("x", lambda n: 17_031_000_000 + 100 * (n % 80), "categorical"),
        ("x", lambda n: b"abc"[n % 3 : n % 3 + 1], "categorical"),
        ("colour", lambda n: f"colour {n % 50}".encode(), "categorical"),
        ("latitude", lambda n: 41 + n / 1000, "position"),
        ("latitude", lambda n: 41.0 + n, "number"),
        ("lon", lambda n: -87 + n / 1000, "position"),
        ("row", lambda n: n, "identifier"),
        ("user_id", lambda n: 7919 * n, "identifier"),
        ("filename", lambda n: f"a {n}.png".encode(), "identifier"),
        ("review", lambda n: f"good film no {n}".encode(), "text"),
        ("review", lambda n: b"long " * 100 + str(n).encode(), "text"),
        ("created_at", lambda n: 1_700_000_000 + 61 * n, "timestamp"),
        ("event_time_ms", lambda n: 1_700_000_000_000 + n, "timestamp"),
        ("response_time", lambda n: 3 * n, "number"),
        ("x", lambda n: 5, "constant"),
        ("x", lambda n: b"same", "constant"),
        ("x", lambda n: 5 if n == 3 else None, "rare"),
        ("x", lambda n: float("nan") if n == 3 else 1.0 * n, "not_finite"),
        ("x", lambda n: [1, 2] if n % 2 else [1], "several_values"),
        ("x", lambda n: n if n % 2 else b"n", "mixed_types"),
        ("x", lambda n: bytes([200, n % 7]), "binary"),
        ("email", lambda n: b"a@b" if n % 2 else b"c@d", "sensitive"),
        ("customer.firstName", lambda n: b"Ann" if n % 2 else b"Bo", "sensitive"),
        ("mobile", lambda n: 49_170_000 + n % 2, "sensitive"),
        ("email", lambda n: [b"a@b", b"c@d"], "sensitive"),
        ("email", lambda n: n if n % 2 else b"a@b", "sensitive"),
        ("is_mobile", lambda n: n % 2, "categorical"),
        ("visits", lambda n: max(n - 190, 0), "number"),
        ("weekday", lambda n: max(n - 190, 0), "categorical"),
        ("x", lambda n: n % 12, "categorical"),
        ("x", lambda n: picture(8, 6), "image"),
        ("x", lambda n: picture(8, 6) if n % 2 else None, "binary"),
    ],
)
def test_semantic_types_of_features(name, column, expected):
    rare = 200 if expected != "rare" else 300

    found = semantic_type(column, name, rare)

    assert found.name == expected
    assert found.why
    assert not found.why.endswith(".")


def test_webp_images_are_not_used():
    file = io.BytesIO()
    Image.new("RGB", (8, 8)).save(file, "WEBP")

    found = semantic_type(lambda n: file.getvalue())

    assert found.name == "binary"
    assert "does not decode WebP" in found.why


def test_few_values_are_complete_and_many_rare_ones_are_not():
    assert semantic_type(lambda n: f"v{n % 20}".encode()).closed
    assert semantic_type(lambda n: f"v{n % 40}".encode()).closed
    assert not semantic_type(lambda n: f"v{n if n < 40 else 0}".encode()).closed
    assert semantic_type(lambda n: n % 5).closed
    # With gaps: what lies between may come.
    assert not semantic_type(lambda n: 10 * (n % 5), "zip").closed


def test_the_taxi_schema_is_near_the_reviewed_one(taxi_summary):
    reviewed = loader.load(own_root() / "schemas" / "taxi" / "schema.pbtxt")

    proposed = infer_schema(taxi_summary, "big_tip")

    ours = {feature.name: feature for feature in proposed.feature}
    assert set(ours) == set(loader.feature_names(reviewed))
    for theirs in reviewed.feature:
        found = ours[theirs.name]
        assert found.type == theirs.type, theirs.name
        assert found.shape == theirs.shape, theirs.name
        assert found.value_count == theirs.value_count, theirs.name
        assert list(found.not_in_environment) == list(theirs.not_in_environment)
        low = theirs.presence.min_fraction
        assert abs(found.presence.min_fraction - low) <= 0.05, theirs.name
        values = loader.class_values(proposed, theirs.name)
        # Community areas and tracts are left open: not all of them were seen.
        if not theirs.name.endswith(("_area", "_tract")):
            assert values == loader.class_values(reviewed, theirs.name), theirs.name
    assert ours["fare"].float_domain.min == 0
    assert ours["company"].domain == ""
    assert list(proposed.default_environment) == ["TRAINING", "SERVING"]


def test_the_taxi_features_are_near_the_reviewed_ones(taxi_summary):
    choices = choose_features(taxi_summary, "big_tip", {})

    kinds = {c.name: c.spec["kind"] if c.spec else None for c in choices}
    assert kinds["company"] == kinds["dropoff_census_tract"] == "hashed"
    assert kinds["payment_type"] == kinds["trip_start_hour"] == "vocabulary"
    assert kinds["pickup_latitude"] == "bucketized"
    assert kinds["fare"] == kinds["trip_seconds"] == "numeric"
    assert kinds["pickup_census_tract"] is None
    assert kinds["trip_start_timestamp"] is None


def test_presence_shape_and_counts_of_values():
    schema = infer_schema(
        table(
            always=lambda n: n / 7,
            half=lambda n: n / 7 if n % 2 else None,
            pair=lambda n: [n / 7, 1.0],
            some=lambda n: [1.0] * (1 + n % 3),
            never_quite=lambda n: 1 if n == 7 else None,
        )
    )
    features = {feature.name: feature for feature in schema.feature}

    def dense(name):
        return [dim.size for dim in features[name].shape.dim]

    assert dense("always") == [1]
    assert dense("pair") == [2]
    assert features["always"].presence.min_fraction == 1
    assert not features["half"].HasField("shape")
    assert features["half"].value_count.max == 1
    assert 0.1 < features["half"].presence.min_fraction < 0.5
    assert not features["some"].HasField("shape")
    assert not features["some"].value_count.HasField("max")
    assert features["never_quite"].presence.min_fraction == 0
    assert features["never_quite"].presence.min_count == 0


def test_domains_are_added_only_for_complete_values():
    schema = infer_schema(
        table(
            age=lambda n: n * n,
            balance=lambda n: n / 7 - 5,
            colour=lambda n: b"red" if n % 2 else b"blue",
            email=lambda n: b"a@b" if n % 2 else b"c@d",
            level=lambda n: 1 + n % 3,
            mixed=lambda n: n if n % 3 else b"n",
            worse=lambda n: float("inf") if n == 4 else float(n),
        )
    )
    features = {feature.name: feature for feature in schema.feature}

    assert features["age"].int_domain.min == 0
    assert not features["age"].int_domain.HasField("max")
    assert not features["balance"].float_domain.HasField("min")
    assert loader.class_values(schema, "colour") == ["blue", "red"]
    assert loader.class_values(schema, "level") == [1, 2, 3]
    assert features["mixed"].WhichOneof("domain_info") is None
    assert not features["worse"].float_domain.disallow_inf
    assert features["worse"].float_domain.disallow_nan
    assert "a@b" not in text_format.MessageToString(schema)


def test_the_label_gets_the_domain_that_its_classes_need():
    summary = table(count_of_stars=lambda n: 1 + n % 5, x=lambda n: n / 7)

    plain, labelled = infer_schema(summary), infer_schema(summary, "count_of_stars")

    assert loader.class_values(plain, "count_of_stars") is None
    assert loader.class_values(labelled, "count_of_stars") == [1, 2, 3, 4, 5]
    assert list(labelled.feature[0].not_in_environment) == ["SERVING"]


def test_a_label_that_is_no_text_has_no_domain():
    schema = infer_schema(table(label=lambda n: [b"good", b"\xff"][n % 2]), "label")

    assert schema.feature[0].WhichOneof("domain_info") is None
    assert not schema.string_domain


def test_a_feature_without_any_value_is_not_in_the_schema():
    empty = bytes.fromhex("0a090a070a016112021a00")

    assert infer_schema(summarize([empty])) == schema_pb2.Schema(
        default_environment=["TRAINING", "SERVING"]
    )


@pytest.mark.parametrize(
    ("columns", "best"),
    [
        ({"label": lambda n: n % 3, "y_flag": lambda n: n % 2}, "label"),
        (
            {
                "image/class/label": lambda n: 1 + n % 3,
                "image/class/text": lambda n: b"abc"[n % 3 : n % 3 + 1],
            },
            "image/class/label",
        ),
        ({"isTarget": lambda n: n % 2, "day": lambda n: n % 7}, "isTarget"),
        ({"won": lambda n: n % 2, "day": lambda n: n % 7}, "won"),
        ({"label": lambda n: n / 7, "day": lambda n: n % 7}, None),
        ({"day": lambda n: n % 7, "x": lambda n: n / 7}, None),
        ({"label": lambda n: n % 2 if n else None}, None),
    ],
)
def test_the_likeliest_label(columns, best):
    found = label_candidates(table(**columns))

    assert (found[0].name if found else None) == best
    assert all(candidate.reasons for candidate in found)


@pytest.mark.parametrize(
    ("column", "why"),
    [
        (lambda n: n / 7, "FLOAT"),
        (lambda n: n % 2 if n else None, "in 1,999 of 2,000 records"),
        (lambda n: [1, 2], "2 values in a record"),
        (lambda n: 7, "only one value"),
        (lambda n: n, "the label must be categorical"),
        (lambda n: 10**6 * (n % 2), "spread over 1,000,001 numbers"),
        (lambda n: bytes([255, n % 2]), "not text"),
    ],
)
def test_why_a_feature_cannot_be_the_label(column, why):
    feature = table(2000, label=column).features["label"]

    assert why in (why_no_label(feature) or "")


def test_why_a_sensitive_feature_of_two_values_cannot_be_the_label():
    feature = table(email=lambda n: [b"a@b", b"c@d"]).features["email"]

    assert "2 values in a record" in (why_no_label(feature) or "")


def test_a_feature_that_determines_the_label_is_found():
    chance = random.Random(3)
    records = rows(
        label=lambda n: n % 3,
        name_of_label=lambda n: b"abc"[n % 3 : n % 3 + 1],
        paid=lambda n: 10 + n % 3 if n % 4 else None,
        noise=lambda n: chance.randrange(3),
        unique=lambda n: 7919 * n,
    )
    summary = summarize(records)
    names = [name for name in summary.features if name != "label"]

    leaks = find_leaks(records, summary, "label", names)

    assert leaks == {"name_of_label": 1.0, "paid": 1.0}
    choices = {c.name: c for c in choose_features(summary, "label", leaks)}
    assert choices["paid"].spec is None
    assert choices["paid"].why == "it determines the label in 100.0% of the records"


def test_with_an_image_the_cnn_uses_no_other_feature():
    summary = table(
        40, image=lambda n: picture(9, 9), label=lambda n: n % 2, x=lambda n: n / 7
    )

    choices = {c.name: c for c in choose_features(summary, "label", {})}

    assert choices["image"].spec == {
        "kind": "image",
        "height": 9,
        "width": 9,
        "channels": 3,
    }
    assert choices["x"].spec is None
    assert choices["x"].why == "the CNN uses only the image"


@pytest.mark.parametrize(
    ("images", "expected"),
    [
        ([picture(8, 8, "L")], (8, 8, 1)),
        ([picture(1000, 500)], (48, 96, 3)),
        ([picture(8, 8, "RGBA")], (8, 8, 4)),
        ([picture(8, 8, "RGBA"), picture(8, 8)], (8, 8, 3)),
        ([picture(20, 30), picture(20, 30), picture(90, 10)], (30, 20, 3)),
        ([picture(2, 2)], (4, 4, 3)),
        # TensorFlow decodes no BMP to 1 channel, and no JPEG to 4.
        ([picture(8, 8, "L"), picture(8, 8, "L", "BMP")], (8, 8, 3)),
        ([picture(8, 8, "CMYK", "JPEG")], (8, 8, 3)),
    ],
)
def test_images_are_resized_within_limits(images, expected):
    records = [encode({"image": [image]}) for image in images]

    assert image_size(summarize(records).features["image"]) == expected


def test_records_of_one_person_stay_together():
    summary = table(
        count=300,
        user_id=lambda n: f"u{n % 30}".encode(),
        order_id=lambda n: n,
        label=lambda n: n % 2,
    )

    assert group_feature(summary, "label") == "user_id"
    choices = {c.name: c for c in choose_features(summary, "label", {}, "user_id")}
    assert choices["user_id"].spec is None
    assert group_feature(table(user_id=lambda n: n), "label") is None
    # Records cannot be split by it.
    assert group_feature(table(user_id=lambda n: float(n % 30)), "label") is None
    missing = table(user_id=lambda n: n % 30 if n else None)
    assert group_feature(missing, "label") is None
