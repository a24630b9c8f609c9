"""Errors for a deleted directory and for unusable names, overrides and options."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    "arguments",
    [
        "status",
        "run digits",
        "runs digits",
        "resume digits",
        "validate digits",
        "gc digits",
    ],
)
def test_a_deleted_current_directory_is_reported(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    sluice: Callable[..., tuple[int, str, str]],
    arguments: str,
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    monkeypatch.setenv("PWD", str(gone))
    gone.rmdir()
    code, _, err = sluice(*arguments.split())
    assert code == 2, err
    assert err.startswith("error: the current directory cannot be found")
    assert str(gone) in err
    assert "cd to the project" in err


@pytest.mark.parametrize(
    "arguments",
    [
        ["validate", "x" * 300],
        ["validate", "x" * 300 + ".yaml"],
        ["validate", "x/" * 3000 + "x.yaml"],
        ["status", "digits", "--workspace", "x" * 300],
        ["validate", "digits", "--set", "schema=" + "x" * 300],
        ["lineage", "9" * 300, "v1"],
        ["validate", "digits", "--profile", "x" * 300],
    ],
    ids=lambda arguments: " ".join(item[:16] for item in arguments),
)
def test_names_too_long_for_a_file_are_refused(
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    sluice: Callable[..., tuple[int, str, str]],
    arguments: list[str],
) -> None:
    monkeypatch.chdir(project)
    code, _, err = sluice(*arguments)
    assert code == 2, err
    assert "Sluice itself failed" not in err
    assert len(err) < 7000


def test_a_deeply_nested_override_is_refused(
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    sluice: Callable[..., tuple[int, str, str]],
) -> None:
    monkeypatch.chdir(project)
    deep = "--set=" + ".".join("a" * 2000) + "=1"
    code, _, err = sluice("config", "digits", deep, deep)
    assert code == 2
    assert "error: a --set key is nested too deeply" in err
    assert "found:    2,000 levels" in err


def test_an_override_that_is_not_utf_8_is_refused(
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    sluice: Callable[..., tuple[int, str, str]],
) -> None:
    monkeypatch.chdir(project)
    code, _, err = sluice("config", "digits", "--set", "description=\udcff")
    assert code == 2
    assert "error: this is not UTF-8 text" in err
    assert r"--set description=\udcff" in err


@pytest.mark.parametrize("given", ["--json", " ", "", "a\udcff", "a\nb"])
def test_accept_data_refuses_an_option_as_the_reason(
    sluice: Callable[..., tuple[int, str, str]], given: str
) -> None:
    code, out, err = sluice("run", "digits", "--accept-data", given)
    assert code == 2
    assert out == "" or json.loads(out)["exit_code"] == 2
    assert "--accept-data needs a reason" in err
