"""The data sections of a config are validated against the schema and each other."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pipeline.config.config import Config
from pipeline.config.load import load_config
from pipeline.config.validate import validate_config
from sluice.errors import ConfigError
from sluice.project import own_root

pytestmark = pytest.mark.unit

Validate = Callable[..., Config]


@pytest.fixture
def validate() -> Validate:
    def taxi(*overrides: str) -> Config:
        config = load_config("taxi", overrides=overrides, cwd=own_root())
        return validate_config(config).config

    return taxi


HASHED = (
    "data.splits=null",
    "data.files='*.tfrecord'",
    "data.hash_splits={train: 8, eval: 1, test: 1}",
)


def test_hashed_splits_are_named_and_counted(validate):
    config = validate(*HASHED, "data.hash_splits.by=company")

    assert config.data.split_names == ["train", "eval", "test"]
    assert config.data.patterns == {None: "*.tfrecord"}
    assert config.data.hash_splits is not None
    assert config.data.hash_splits.buckets == {"train": 8, "eval": 1, "test": 1}


@pytest.mark.parametrize(
    ("override", "says"),
    [
        ("data.splits.train='{SPAN'", r"'\{SPAN' is invalid"),
        ("data.splits.train='{YYYY}/train-*'", r"all of \{YYYY\}, \{MM\} and \{DD\}"),
        ("data.serving='{DAY}/x'", r"\{SPAN\}, \{SPAN:2\}"),
        ("sensitive=[compani]", "no feature 'compani'[\\s\\S]*'company'"),
        ("sensitive=[big_tip]", "the label cannot be sensitive"),
        ("sensitive=[payment_type]", "'payment_type' would show its values"),
        (
            "validate.rules=[{anomaly: new_vale, action: warn}]",
            "no kind of anomaly 'new_vale'[\\s\\S]*did you mean 'new_value'",
        ),
        (
            "validate.rules=[{feature: compani, anomaly: drift, action: fail}]",
            "no feature 'compani'[\\s\\S]*'company'",
        ),
        (
            "validate.rules=[{feature: company, anomaly: count, action: warn}]",
            "'count' have no feature, so this rule can never apply",
        ),
        (
            "validate={min_examples: {eval: 9}, max_examples: {eval: 3}}",
            "max_examples is less than min_examples[\\s\\S]*9 or more",
        ),
    ],
)
def test_invalid_data_settings_name_their_key(validate, override, says):
    with pytest.raises(ConfigError, match=says) as caught:
        validate(override)
    assert override.partition("=")[0] in str(caught.value)


def test_some_allowed_format_must_decode_to_the_channels_of_a_feature():
    def validate(*overrides: str) -> Config:
        return load_config("digits", overrides=overrides, cwd=own_root())

    one = "features.image.channels=1"
    for formats in ("[gif]", "[bmp, gif]"):
        config = validate(one, f"examples.images.formats={formats}")
        with pytest.raises(
            ConfigError, match="no allowed image format can be decoded to 1"
        ) as caught:
            validate_config(config)
        assert "features.image.channels" in str(caught.value)
    validate_config(validate(one, "examples.images.formats=[bmp, jpeg]"))
    validate_config(validate("features.image.channels=3", "examples.images={}"))


@pytest.mark.parametrize(
    ("by", "says"),
    [
        ("compny", "did you mean 'company'"),
        ("fare", "cannot be split by[\\s\\S]*FLOAT"),
    ],
)
def test_a_feature_to_split_by_must_be_there_and_no_float(validate, by, says):
    with pytest.raises(ConfigError, match=says):
        validate(*HASHED, f"data.hash_splits.by={by}")


def test_a_limit_on_an_unknown_split(validate):
    with pytest.raises(ConfigError, match="no split 'test'"):
        validate("data.splits.test=null", "validate.min_examples={test: 5}")


@pytest.mark.parametrize(
    "override",
    ["data.files=x", "data.hash_splits={train: 1, eval: 1}", "data.splits=null"],
)
def test_splits_and_files_exclude_each_other(validate, override):
    with pytest.raises(ConfigError, match="splits"):
        validate(override)


@pytest.mark.parametrize(
    ("given", "marker", "quiet"),
    [
        ("always", None, None),
        ("{marker: _DONE}", "_DONE", None),
        ("{quiet_for_s: 60}", None, 60.0),
    ],
)
def test_when_a_span_is_complete(validate, given, marker, quiet):
    found = validate(f"examples.complete_when={given}").examples.complete_when

    assert (found.marker, found.quiet_for_s) == (marker, quiet)


@pytest.mark.parametrize("given", ["often", "{marker: a, quiet_for_s: 1}", "3"])
def test_other_ways_to_be_complete_are_refused(validate, given):
    with pytest.raises(ConfigError, match="always, {marker: NAME} or {quiet_for_s"):
        validate(f"examples.complete_when={given}")


def test_a_feature_that_is_not_known_yet_may_have_a_rule(validate):
    rules = "[{feature: tolls, anomaly: new_feature, action: warn}, "
    config = validate(f"validate.rules={rules}{{feature: tolls, action: warn}}]")
    assert len(config.validate_data.rules) == 2
