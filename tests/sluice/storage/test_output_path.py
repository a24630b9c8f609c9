"""Output paths of the config, the options and the environment."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pipeline.config.load import load_config
from sluice.errors import ConfigError, UsageError
from sluice.project import own_root
from sluice.storage.output_path import resolve_output_path
from sluice.workspace import locate

pytestmark = pytest.mark.unit

REFUSED = {
    "s3://bucket/x": "of this machine",
    "file:///models": "of this machine",
    "$HOME/models": "not replaced",
    "models/${NAME}": "not replaced",
    "~nobody-of-that-name/x": "home directory",
    "a\0b": "control characters",
    "models\n": "control characters",
    "\x1b[31m": "control characters",
    "\udcff": "control characters",
    " models": "blanks at its ends",
    "": "blanks at its ends",
}


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


def _from_config(text: str) -> str | None:
    override = "push.serving_dir=" + _yaml(text)
    return load_config("digits", overrides=[override], cwd=own_root()).serving_dir


def _yaml(text: str) -> str:
    odd = {c: f"\\u{ord(c):04x}" for c in text if not c.isprintable()}
    return '"' + "".join(odd.get(c, c) for c in text) + '"'


@pytest.mark.parametrize(("text", "why"), REFUSED.items(), ids=map(repr, REFUSED))
def test_unexpanded_variables_and_addresses_are_rejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, why: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=why):
        resolve_output_path(text, tmp_path, "--output")
    if not text.startswith("\udcff"):  # YAML has no such character.
        with pytest.raises(ConfigError, match=f"(?s)push.serving_dir.*{why}"):
            _from_config(text)
    if text:
        with pytest.raises(UsageError, match=f"(?s)^--workspace .*{why}"):
            locate(tmp_path, "digits", text)
    if text and "\0" not in text:
        monkeypatch.setenv("SLUICE_WORKSPACE", text)
        with pytest.raises(UsageError, match=f"(?s)^SLUICE_WORKSPACE .*{why}"):
            locate(tmp_path, "digits")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("text", "means"),
    [
        ("models", "{base}/models"),
        ("a/../models/", "{base}/models"),
        ("../models", "{above}/models"),
        ("./~/models", "{base}/~/models"),
        ("~/models", "{home}/models"),
        ("~", "{home}"),
        ("/srv/models", "/srv/models"),
        ("Modelle für $ und ~/é", "{base}/Modelle für $ und ~/é"),
        ("c:models", "{base}/c:models"),
    ],
)
def test_a_path_is_made_absolute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, means: str
) -> None:
    base = tmp_path / "base"
    base.mkdir()

    def expected(base: Path) -> Path:
        text = means.format(base=base, above=base.parent, home=tmp_path / "home")
        return Path(text)

    assert resolve_output_path(text, base, "--output") == expected(base)
    assert _from_config(text) == str(expected(own_root()))
    monkeypatch.chdir(base)
    assert locate(tmp_path, "digits", text).root == expected(base) / "digits"


def test_only_the_serving_directory_may_be_in_a_bucket(tmp_path: Path) -> None:
    assert _from_config("gs://bucket/x/") == "gs://bucket/x"
    with pytest.raises(ConfigError, match="an address such as gs://bucket/folder"):
        _from_config("gs:/bucket/x")
    with pytest.raises(UsageError, match="a directory or file of this machine"):
        resolve_output_path("gs://bucket/x", tmp_path, "--output")


def test_a_loop_of_links_is_refused_and_other_links_are_followed(
    tmp_path: Path,
) -> None:
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "disk").mkdir()
    (tmp_path / "models").symlink_to("disk")

    with pytest.raises(UsageError, match="not a usable output path"):
        resolve_output_path("loop/x", tmp_path, "--output")
    assert resolve_output_path("models", tmp_path, "--output") == tmp_path / "disk"
