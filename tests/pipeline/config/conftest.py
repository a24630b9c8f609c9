"""A project with one config and schema, for the tests of loading and validating."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.checks.check_config import ValidConfig, validate_config
from pipeline.config.load import load_config
from sluice.errors import ConfigError

_ONE = "presence { min_fraction: 1 } shape { dim { size: 1 } }"
_THREE = "presence { min_fraction: 1 } shape { dim { size: 3 } }"
SCHEMA = f"""
feature {{ name: "big_tip" type: INT {_ONE}
  int_domain {{ min: 0 max: 1 is_categorical: true }} }}
feature {{ name: "digit" type: INT {_ONE}
  int_domain {{ min: 0 max: 9 is_categorical: true }} }}
feature {{ name: "fare" type: FLOAT {_ONE} }}
feature {{ name: "hour" type: INT {_ONE}
  int_domain {{ min: 0 max: 23 is_categorical: true }} }}
feature {{ name: "seconds" type: INT {_ONE} }}
feature {{ name: "company" type: BYTES value_count {{ min: 1 max: 1 }} }}
feature {{ name: "payment_type" type: BYTES {_ONE} domain: "payment_type" }}
feature {{ name: "photo" type: BYTES {_ONE} image_domain {{}} }}
feature {{ name: "history" type: FLOAT shape {{ dim {{ size: 7 }} }} }}
feature {{ name: "tags" type: BYTES value_count {{ min: 0 max: 5 }} }}
feature {{ name: "nested" type: STRUCT }}
feature {{ name: "genres" type: BYTES domain: "genres" }}
feature {{ name: "one_hot" type: FLOAT {_THREE} float_domain {{ min: 0 max: 1 }} }}
feature {{ name: "three_ids" type: INT {_THREE} }}
string_domain {{ name: "genres" value: "war" value: "crime" value: "drama" }}
string_domain {{ name: "payment_type" value: "Cash" value: "Credit Card" }}
"""
CONFIG = """\
version: 1
name: fares
data:
  dir: data/fares
  splits: {train: "train-*", eval: "eval-*", test: "test-*"}
label:
  feature: big_tip
features:
  fare: {kind: numeric}
  company: {kind: hashed, buckets: 16}
model: dense
train:
  epochs: 7
evaluate:
  metrics: [AUC, BinaryAccuracy, ExampleCount]
  slices: [[payment_type], [payment_type, hour], [seconds]]
  thresholds:
    - {metric: auc, lower_bound: 0.9}
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Returns the root of a project with the config ``fares`` and its schema."""
    (tmp_path / "configs" / "profiles").mkdir(parents=True)
    (tmp_path / "configs" / "fares.yaml").write_text(CONFIG)
    (tmp_path / "schemas" / "fares").mkdir(parents=True)
    (tmp_path / "schemas" / "fares" / "schema.pbtxt").write_text(SCHEMA)
    return tmp_path.resolve()


@pytest.fixture(scope="session")
def config_text() -> str:
    """Returns the text of the project's config."""
    return CONFIG


@pytest.fixture
def profile(project: Path) -> Callable[..., None]:
    """Returns a function that writes a profile, ``gpu`` unless it is named."""

    def profile(text: str, name: str = "gpu") -> None:
        (project / "configs" / "profiles" / f"{name}.yaml").write_text(text)

    return profile


@pytest.fixture
def validate(project: Path) -> Callable[..., ValidConfig]:
    """Returns a function that validates the config with overrides."""

    def validate(*overrides: str) -> ValidConfig:
        return validate_config(load_config("fares", overrides=overrides, cwd=project))

    return validate


@pytest.fixture
def refused(validate: Callable[..., ValidConfig]) -> Callable[..., str]:
    """Returns a function that returns the error of a config with overrides."""

    def refused(*overrides: str) -> str:
        with pytest.raises(ConfigError) as caught:
            validate(*overrides)
        return str(caught.value)

    return refused
