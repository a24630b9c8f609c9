"""The section ``serving_check``, and which servers are older than an export."""

from __future__ import annotations

import pytest

from components.serving_check.judge import server_rows
from components.serving_check.settings import ServingCheck
from pipeline.config.load import load_config
from sluice.errors import ConfigError
from sluice.project import own_root

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("server", "result"),
    [
        ("2.16.1", "pass"),
        ("2.17", "pass"),
        ("tensorflow/serving:2.16.1-gpu", "pass"),
        ("x.y:5000/team/tf-serving-1.2:v2.16", "pass"),
        ("tensorflow/serving:2.15.1", "warn"),
        ("tensorflow/serving:2.9.0@sha256:2.17", "warn"),
        ("us-docker.pkg.dev/vertex-ai/prediction/tf2-cpu.2-15:latest", "warn"),
        ("tensorflow/serving:1.15.0", "FAIL"),
    ],
)
def test_a_server_is_compared_by_major_and_minor_version(server, result):
    (row,) = server_rows(server, "2.16.2")
    assert (row.result, row.actual) == (result, server)


def digits(*overrides: str) -> ServingCheck | None:
    return load_config("digits", cwd=own_root(), overrides=overrides).serving_check


def test_the_check_is_on_unless_it_is_switched_off():
    assert digits() == digits("serving_check=true") == ServingCheck()
    assert digits("serving_check=false") is digits("serving_check=null") is None
    section = digits("serving_check.max_p99_ms=50")
    assert section is not None and (section.max_p99_ms, section.batch) == (50.0, 32)


@pytest.mark.parametrize(
    ("override", "text"),
    [
        ("serving_check.server=tensorflow/serving:latest", "an image with a version"),
        ("serving_check.max_p99=50", "did you mean 'max_p99_ms'"),
        ("serving_check.timeout_s=0", "greater than 0"),
        ("serving_check=off-ish", "serving_check"),
    ],
)
def test_what_is_refused(override, text):
    with pytest.raises(ConfigError, match=text):
        digits(override)
