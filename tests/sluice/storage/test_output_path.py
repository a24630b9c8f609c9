"""Output paths of the config, the options and the environment."""

from __future__ import annotations

import json
import os

import pytest

from pipeline.config.load import load_config
from sluice.errors import ConfigError, UsageError
from sluice.project import own_root
from sluice.storage.output_path import resolve_output_path

pytestmark = pytest.mark.unit


@pytest.fixture(autouse=True)
def _home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


def from_config(text):
    override = f"push.serving_dir={json.dumps(text)}"
    return load_config("digits", overrides=[override], cwd=own_root()).serving_dir


@pytest.mark.parametrize("text", ["s3://bucket/x", "file:///models", "hdfs://a/b", ""])
def test_other_addresses_are_refused(tmp_path, text):
    with pytest.raises(UsageError, match="expected a path of this machine"):
        resolve_output_path(text, tmp_path, "--output")
    with pytest.raises(ConfigError, match="push.serving_dir"):
        from_config(text)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("text", ["a\0b", "loop/x", "gs://bucket/x"])
def test_paths_that_cannot_be_used(tmp_path, text):
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(UsageError, match="not a usable output path"):
        resolve_output_path(text, tmp_path, "--output")


@pytest.mark.parametrize(
    ("text", "means"),
    [
        ("models", "{base}/models"),
        ("~/models", "{home}/models"),
        ("Modelle f\u00fcr ~/\u00e9", "{base}/Modelle f\u00fcr ~/\u00e9"),
        ("links/x", "{base}/disk/x"),
    ],
)
def test_a_path_is_made_absolute(tmp_path, text, means):
    (tmp_path / "links").symlink_to("disk")
    expected = means.format(base=tmp_path, home=tmp_path / "home")

    assert str(resolve_output_path(text, tmp_path, "--output")) == expected
    if text != "links/x":
        expected = means.format(base=own_root(), home=tmp_path / "home")
        assert from_config(text) == expected


def test_the_serving_directory_may_be_in_a_bucket():
    assert from_config("gs://bucket/x/") == "gs://bucket/x"
