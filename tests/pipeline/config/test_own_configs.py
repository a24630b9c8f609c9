"""The configs and profiles of this project are valid, with the targets of each."""

from __future__ import annotations

import pytest

from pipeline.checks.check_config import validate_config
from pipeline.config.load import load_config
from sluice.project import own_root

pytestmark = pytest.mark.unit

CONFIGS = sorted(path.stem for path in (own_root() / "configs").glob("*.yaml"))
PROFILES = sorted(path.stem for path in (own_root() / "configs/profiles").iterdir())
CLOUD = {"vertex", "vertex-gpu", "vertex-tpu", "vertex-dataflow", "kubeflow"}
FOR_ALL = {"quick", "gpu", "tpu", *CLOUD}


def _profiles_of(name: str) -> list[str]:
    return [p for p in PROFILES if p in FOR_ALL or p.startswith(f"{name}-")]


@pytest.mark.parametrize(
    ("name", "profile"),
    [(name, p) for name in CONFIGS for p in (None, *_profiles_of(name))],
)
def test_our_own_configs_are_valid(name, profile):
    valid = validate_config(load_config(name, profile=profile, cwd=own_root()))

    assert valid.warnings == ()
