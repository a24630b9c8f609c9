"""The command line without TensorFlow: help, errors, exit codes, history."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sluice.project import own_root

pytestmark = pytest.mark.unit

Sluice = Callable[..., tuple[int, str, str]]


def _one_screen(text: str) -> bool:
    return len(text.splitlines()) <= 20 and "Traceback" not in text


def test_a_python_without_the_packages_is_reported():
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(own_root() / "runners/cli/main.py")],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert "packages are not installed in this Python" in done.stderr
    assert "make setup" in done.stderr
    assert _one_screen(done.stderr)


def _rewrite(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('train: "train-*"', 'train: "tarin-*"', ["tarin-*", "no file matches"]),
        ("  epochs: 30", "  epocs: 30", ["epocs", "epochs"]),
    ],
)
def test_a_run_is_refused_before_anything_is_written(root, sluice, old, new, words):
    _rewrite(root / "configs" / "digits.yaml", old, new)
    code, out, err = sluice("run", "digits")
    assert code == 2
    for word in words:
        assert word in err
    assert "configs/digits.yaml" in err
    assert _one_screen(err)
    assert out == ""
    assert not (root / "workspace").exists()


def test_an_unwritable_workspace(root, sluice):
    (root / "file").write_text("")
    code, _, err = sluice("run", "digits", "--workspace", str(root / "file"))
    assert code == 2
    assert "the workspace cannot be written" in err and "--workspace" in err


@pytest.mark.parametrize(
    "arguments",
    [
        "init nothing --examples nothing",
        "run nothing",
        "validate",
        "run digits --workers 0",
        "nothing",
    ],
)
def test_every_error_has_the_same_json_form(root, sluice, arguments):
    code, out, err = sluice(*arguments.split(), "--json")
    document = json.loads(out)
    assert document.keys() >= {"schema_version", "status", "exit_code", "error"}
    assert (code, document["exit_code"], document["status"]) == (2, 2, "failed")
    error = document["error"]
    assert error.keys() >= {"node", "message", "log", "log_tail"}
    assert error["message"].splitlines()[0] in err


@pytest.mark.parametrize(
    ("arguments", "keys"),
    [
        pytest.param(
            *("validate taxi", "pipeline file warnings"),
            marks=pytest.mark.tf,
        ),
        ("config digits --set train.epochs=3", "pipeline config"),
        ("data list", "data_sets"),
        ("data make taxi", "name path records"),
        ("schema show digits", "pipeline schema features"),
        ("schema infer taxi", "pipeline records text"),
        (
            "gc digits --dry-run",
            "pipeline dry_run deleted freed_bytes kept_runs",
        ),
    ],
)
def test_success_is_one_json_object(root, sluice, arguments, keys):
    if arguments == "schema infer taxi":
        sluice("data", "make", "taxi")
    code, out, _ = sluice(*arguments.split(), "--json")
    document = json.loads(out)
    assert (code, document["schema_version"]) == (0, 1)
    assert document.keys() == {"schema_version", *keys.split()}


@pytest.mark.parametrize("given", ["--json", " "])
def test_accept_data_needs_a_reason(root, sluice, given):
    code, _, err = sluice("run", "digits", "--accept-data", given)
    assert code == 2 and "needs a reason" in err


def test_a_bug_is_one_json_object_too(root, sluice, monkeypatch):
    import runners.operations.run as module

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("we are wrong")

    monkeypatch.setattr(module, "check_before_run", broken)
    code, out, err = sluice("run", "digits", "--json")
    assert (code, json.loads(out)["exit_code"]) == (1, 1)
    assert "Sluice itself failed: RuntimeError: we are wrong" in err
    assert _one_screen(err)


@pytest.mark.tf
def test_missing_data_is_a_warning_to_validate(root, sluice):
    code, _, err = sluice("validate", "taxi")

    assert code == 0
    assert "sluice data make taxi" in err
