"""Kinds of features that are derived from the schema."""

from __future__ import annotations

import pytest

from pipeline.config.features import Hashed, MultiHot, Numeric, Vector, Vocabulary
from tests.kit.trainings import feature_set
from tests.pipeline.config.conftest import SCHEMA

pytestmark = pytest.mark.unit

LABEL = SCHEMA.splitlines()[1:3]
ONE = "type: INT value_count { min: 1 max: 1 }"
FIXED = "presence { min_fraction: 1 } shape { dim { size: 3 } }"
CLASSES = "int_domain { min: 1 max: 12 is_categorical: true }"
ALL = ("features=null", "evaluate.slices=[]")


@pytest.fixture
def write_schema(project):
    def write_schema(*features: str) -> None:
        path = project / "schemas" / "fares" / "schema.pbtxt"
        path.write_text("\n".join([*LABEL, *features]))

    return write_schema


@pytest.mark.parametrize(
    ("feature", "spec"),
    [
        ("type: FLOAT", Numeric()),
        ("type: INT", Numeric()),
        (f"type: INT {CLASSES}", Vocabulary(top_k=12)),
        ("type: INT int_domain { min: 1 max: 1001 is_categorical: true }", Hashed()),
        ("type: BYTES", Hashed(buckets=64)),
        ('type: BYTES string_domain { value: "a" value: "b" }', Vocabulary(top_k=2)),
        ('type: BYTES domain: "shared"', Vocabulary(top_k=2)),
    ],
)
def test_a_kind_is_derived_from_the_type(validate, write_schema, feature, spec):
    one = "value_count { min: 1 max: 1 }"
    shared = 'string_domain { name: "shared" value: "a" value: "b" }'
    write_schema(f'feature {{ name: "x" {one} {feature} }}', shared)

    config = validate(*ALL).config

    assert config.features == {"x": spec}
    assert config.feature_set == feature_set(
        {"x": spec.model_dump()}, label="big_tip", classes=(0, 1)
    )


@pytest.mark.parametrize(
    ("feature", "spec"),
    [
        (f"type: FLOAT {FIXED}", Vector()),
        (f"type: INT {CLASSES}", MultiHot(top_k=12)),
        ("type: BYTES", MultiHot(top_k=1000)),
    ],
)
def test_the_kind_of_a_list(validate, write_schema, feature, spec):
    shared = 'string_domain { name: "shared" value: "a" value: "b" }'
    write_schema(f'feature {{ name: "x" {feature} }}', shared)
    assert validate(*ALL).config.features == {"x": spec}


@pytest.mark.parametrize(
    ("feature", "spec", "what"),
    [
        ("type: FLOAT", None, "no kind can be derived for lists of numbers"),
        ("type: FLOAT", "{kind: vector}", "'x' has no fixed number of values"),
        ("type: BYTES", "{kind: vector}", "'vector' is not for 'x', which is BYTES"),
        (f"type: FLOAT {FIXED}", "{kind: numeric}", "not have exactly one value"),
        (f"type: INT {FIXED}", "{kind: vector, clip: [2, 1]}", "two bounds, the first"),
    ],
)
def test_lists_that_a_kind_does_not_take(refused, write_schema, feature, spec, what):
    write_schema(f'feature {{ name: "x" {feature} }}')
    settings = ("evaluate.slices=[]", f"features={{x: {spec}}}")
    assert what in refused(*(settings if spec else ALL))


PIXELS = "kind: pixels, height: 1, width: 3, channels: 1"


@pytest.mark.parametrize(
    ("feature", "features", "what"),
    [
        ("type: BYTES", "{x: {PIXELS}}", "'x' does not have exactly one value"),
        (f"type: INT {FIXED.replace('3', '4')}", "{x: {PIXELS}}", "4 values, not 3"),
        ("type: BYTES", "{x: {kind: passthrough}}", "no fixed number of values"),
        ("type: BYTES", "{x: {kind: passthrough}}", "takes no values as they are"),
        (ONE, "{x: {kind: hashed}, y: {kind: cross, of: [x, z]}}", "'z' is not listed"),
        (ONE, "{x: {kind: numeric}, y: {kind: cross, of: [x, x]}}", "kind 'numeric'"),
        (ONE, "{x: {kind: cross, of: [a, b]}}", "a cross needs a new name"),
    ],
)
def test_pixels_crosses_and_values_as_they_are(
    refused, write_schema, feature, features, what
):
    write_schema(f'feature {{ name: "x" {feature} }}')
    features = features.replace("PIXELS", PIXELS)
    settings = ("evaluate.slices=[]", f"features={features}", "model=dense")
    assert what in refused(*settings)
