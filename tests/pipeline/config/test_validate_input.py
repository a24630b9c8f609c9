"""Weights and augmentation that fit the label, the schema and the features."""

from __future__ import annotations

import json

import pytest

from pipeline.config.resolve_features import feature_set_of

pytestmark = pytest.mark.unit

PHOTO = "features={photo: {kind: image, height: 8, width: 8, channels: 1}}"


@pytest.mark.parametrize(
    ("given", "what", "rest"),
    [
        ("balance", "Input should be 'balanced'", "class_weights"),
        ("3", "Input should be 'balanced'", "class_weights"),
        ("{'0': -1}", "class_weights.0", "greater than or equal to 0"),
        ("{'0': 0, '1': 0.0}", "no class has a weight", "above 0"),
    ],
)
def test_a_wrong_class_weight_is_one_problem(refused, given, what, rest):
    message = refused(f"train.class_weights={given}")
    assert what in message
    assert rest in message
    assert "problems" not in message


def test_class_weights_are_of_classes(validate, refused):
    validate("train.class_weights={'0': 1.0, '1': 2.5}")
    validate("train.class_weights=balanced")
    message = refused("train.class_weights={'0': 1.0, '2': 2.5}")
    assert "there is no class '2'" in message


@pytest.mark.parametrize(
    ("feature", "problem"),
    [
        ("big_tip", "'big_tip' is the label"),
        ("far", "fare"),
        ("payment_type", "the sample weight 'payment_type' is no number"),
        ("history", "may be missing or have several values"),
    ],
)
def test_the_sample_weight_is_one_number(refused, feature, problem):
    assert problem in refused(f"train.sample_weight={feature}")


def test_the_sample_weight_is_no_input_unless_it_is_listed(validate):
    valid = validate("train.sample_weight=seconds")
    feature_set = feature_set_of(valid.config, valid.schema)
    assert feature_set.sample_weight == "seconds"
    assert "seconds" not in feature_set.features
    text = json.dumps(feature_set.model_dump())
    assert type(feature_set).model_validate_json(text) == feature_set


def test_only_images_are_augmented(validate, refused):
    assert "there is no image to augment" in refused("train.input.augment.rotate=5")
    validate(PHOTO, "train.input.augment.rotate=5")
    message = refused(PHOTO, "train.input.augment.saturation=0.5")
    assert "gray images have no saturation" in message
