"""Options of Beam pipelines, by the section ``beam``."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.config.beam import Beam
from pipeline.graph.beam_arguments import LOCAL_BEAM_ARGS, beam_args

pytestmark = pytest.mark.unit
_ENGINE = {
    "--runner=sluice.engine_runner.EngineRunner",
    "--environment_type=EXTERNAL",
    "--environment_config=127.0.0.1:50000",
    *LOCAL_BEAM_ARGS[1:],
}


@pytest.mark.parametrize(
    ("section", "expected"),
    [
        ({"workers": 3}, {*LOCAL_BEAM_ARGS}),
        (
            {"engine": "flink"},
            {*_ENGINE, "--flink_master=[local]", "--job_endpoint=127.0.0.1:8099"},
        ),
        (
            {"engine": "flink", "master": "10.0.0.5:8081", "workers": 3},
            {
                *_ENGINE,
                "--flink_master=10.0.0.5:8081",
                "--job_endpoint=127.0.0.1:8099",
                "--parallelism=3",
            },
        ),
        (
            {"engine": "portable", "job_endpoint": "spark:8099"},
            {*_ENGINE, "--job_endpoint=spark:8099"},
        ),
    ],
)
def test_arguments(section: dict[str, Any], expected: set[str]):
    assert {*beam_args(Beam.model_validate(section))} == expected


@pytest.mark.parametrize(
    "section", [{"master": "10.0.0.5:8081"}, {"engine": "flink", "master": "10.0.0.5"}]
)
def test_master_is_refused(section: dict[str, Any]):
    with pytest.raises(ValueError, match="master"):
        Beam.model_validate(section)
