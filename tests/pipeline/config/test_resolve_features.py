"""Kinds of features that are derived from the schema."""

from __future__ import annotations

import pytest

from pipeline.config.features import Hashed, Numeric, Vocabulary
from tests.kit.trainings import feature_set
from tests.pipeline.config.conftest import SCHEMA

pytestmark = pytest.mark.unit

LABEL = SCHEMA.splitlines()[1:3]
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
        ("type: INT int_domain { min: 0 max: 9 }", Numeric()),
        (
            "type: INT int_domain { min: 1 max: 12 is_categorical: true }",
            Vocabulary(top_k=12),
        ),
        (
            "type: INT int_domain { min: 1 max: 1000 is_categorical: true }",
            Vocabulary(top_k=1000),
        ),
        ("type: INT int_domain { min: 1 max: 1001 is_categorical: true }", Hashed()),
        ("type: INT int_domain { is_categorical: true }", Hashed()),
        ("type: BYTES", Hashed(buckets=64)),
        (
            'type: BYTES string_domain { value: "a" value: "b" value: "c" }',
            Vocabulary(top_k=3),
        ),
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
    ("feature", "what"),
    [
        ("type: BYTES image_domain {}", "no kind can be derived for an image"),
        ("type: STRUCT", "no kind can be derived for this type"),
        ("type: TYPE_UNKNOWN", "no kind can be derived for this type"),
    ],
)
def test_other_features_must_be_described(refused, write_schema, feature, what):
    one = "presence { min_fraction: 1 } shape { dim { size: 1 } }"
    write_schema(f'feature {{ name: "x" {one} {feature} }}')

    message = refused(*ALL)

    assert what in message
    assert "x: {kind: image, height: 28, width: 28" in message
