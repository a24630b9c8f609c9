"""Features and classes derived from config and schema."""

from __future__ import annotations

import pytest
from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2

from pipeline.config.config import Config
from pipeline.config.features import Hashed, Image, Numeric, Vocabulary
from pipeline.config.resolve_features import feature_set_of, resolve_features
from sluice.errors import ConfigError
from tests.kit.trainings import feature_set

pytestmark = pytest.mark.unit

LABEL = (
    'feature { name: "y" type: INT int_domain { min: 0 max: 1 is_categorical: true } }'
)


def schema(text: str) -> schema_pb2.Schema:
    return text_format.Parse(LABEL + text, schema_pb2.Schema())


def config(**changes) -> Config:
    return Config.model_validate(
        {
            "version": 1,
            "name": "x",
            "data": {"dir": "data", "splits": {"train": "t", "eval": "e"}},
            "label": {"feature": "y"},
            "model": "dense",
            "evaluate": {"metrics": ["AUC"]},
            **changes,
        }
    )


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
        (
            "type: INT int_domain { min: 1 max: 9999999999 is_categorical: true }",
            Hashed(),
        ),
        ("type: INT int_domain { is_categorical: true }", Hashed()),
        ("type: BYTES", Hashed(buckets=64)),
        (
            'type: BYTES string_domain { value: "a" value: "b" value: "c" }',
            Vocabulary(top_k=3),
        ),
        ('type: BYTES domain: "shared"', Vocabulary(top_k=2)),
    ],
)
def test_a_kind_is_derived_from_the_type(feature, spec):
    shared = 'string_domain { name: "shared" value: "a" value: "b" }'
    reviewed = schema(f'feature {{ name: "x" {feature} }} {shared}')

    assert resolve_features(config(), reviewed) == {"x": spec}


def test_only_the_features_of_the_config_are_used():
    reviewed = schema('feature { name: "a" type: FLOAT } feature { name: "b" }')
    described = config(features={"a": {"kind": "numeric"}})

    assert resolve_features(described, reviewed) == {"a": Numeric()}


def test_an_image_must_be_described():
    reviewed = schema('feature { name: "photo" type: BYTES image_domain {} }')

    with pytest.raises(ConfigError, match="'photo' is an image") as caught:
        resolve_features(config(), reviewed)

    assert "photo: {kind: image, height: 28, width: 28" in str(caught.value)
    image = {"kind": "image", "height": 8, "width": 8, "channels": 1}
    described = config(features={"photo": image})
    assert resolve_features(described, reviewed) == {
        "photo": Image(height=8, width=8, channels=1)
    }


@pytest.mark.parametrize("kind", ["STRUCT", "TYPE_UNKNOWN"])
def test_a_type_without_a_kind_is_named(kind):
    reviewed = schema(f'feature {{ name: "x" type: {kind} }}')

    with pytest.raises(ConfigError, match=f"'x' has the type {kind}"):
        resolve_features(config(), reviewed)


def test_the_feature_set_of_the_nodes():
    reviewed = schema(
        'feature { name: "a" type: FLOAT } feature { name: "b" type: BYTES }'
    )

    assert feature_set_of(config(), reviewed) == feature_set(
        {"a": "numeric", "b": {"kind": "hashed", "buckets": 64}}
    )
