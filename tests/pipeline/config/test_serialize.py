"""The config that a run stores is the one that it ran with."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from pipeline.config.load import load_config
from pipeline.config.serialize import read_stored_config, write_stored_config
from pipeline.config.validate import validate_config
from sluice.project import own_root

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("name", ["digits", "taxi"])
def test_round_trip(tmp_path: Path, name: str) -> None:
    config = validate_config(
        load_config(name, cwd=own_root(), overrides=["train.epochs=3"])
    ).config
    path = tmp_path / "config.json"
    with warnings.catch_warnings():
        # Pydantic warns on stderr where a value has not the declared type.
        warnings.simplefilter("error")
        write_stored_config(config, path)
        stored = read_stored_config(path)
    assert stored.model_dump() == config.model_dump()
    assert (stored.root, stored.train.epochs) == (config.root, 3)
    assert stored.origin.overrides == ("train.epochs=3",)
