"""Arguments, prompt and output of ``sluice init``."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline.config.load import load_config
from pipeline.config.validate import ValidConfig, validate_config
from runners.cli.init import init
from sluice.errors import UsageError
from sluice.project import own_root

pytestmark = pytest.mark.unit

Init = Callable[..., Any]


@pytest.fixture
def call(here: Path, capsys: pytest.CaptureFixture[str]) -> Init:
    """Calls ``sluice init``; returns what it wrote: ``out`` and ``err``."""

    def call(*arguments: str) -> Any:
        init.main(list(arguments), standalone_mode=False)
        return capsys.readouterr()

    return call


def valid(name: str) -> ValidConfig:
    return validate_config(load_config(name))


def test_the_proposal_for_a_table_is_printed(clicks, call, here):
    result = call("clicks", "--examples", "data/the clicks")

    assert "looked at  all 180 records of 3 files" in result.out
    assert "train train *, eval validation *, test test *" in result.out
    assert "wrote configs/clicks.yaml" in result.out
    assert "wrote schemas/clicks/schema.pbtxt" in result.out
    assert "next: sluice validate clicks, then sluice run clicks" in result.out
    config = valid("clicks").config
    assert {n: spec.kind for n, spec in (config.features or {}).items()} == {
        "colour": "vocabulary",
        "x": "numeric",
    }
    assert config.label.classes == (0, 1)
    assert config.evaluate.thresholds[0].metric == "auc"
    assert sorted(p.name for p in (here / "configs").iterdir()) == ["clicks.yaml"]


def test_the_project_root_is_found_from_a_subdirectory(clicks, call, here, monkeypatch):
    (here / "configs").mkdir()
    monkeypatch.chdir(clicks)

    result = call("clicks", "--examples", "*")

    assert (here / "configs" / "clicks.yaml").is_file()
    assert load_config("clicks").data.dir == "data/the clicks"
    assert "wrote ../../configs/clicks.yaml" in result.out


def test_json_on_stdout_and_text_on_stderr(clicks, call, here):
    result = call("clicks", "--examples", "data/the clicks/*", "--json")

    found = json.loads(result.out)
    assert found["schema_version"] == 1
    assert found["config"] == str(here / "configs" / "clicks.yaml")
    assert found["label"]["feature"] == "clicked"
    assert found["splits"]["eval"] == "validation *"
    assert found["features"][0] == {
        "name": "colour",
        "seen_as": "categorical",
        "spec": {"kind": "vocabulary"},
        "why": "3 values, assumed complete",
    }
    assert "looked at" in result.err


def test_control_characters_in_feature_names_are_escaped(here, call, write_table):
    disturbing: Any = {"a\x1b[2J\u202e": lambda n: 1}
    write_table(here / "d" / "part-0", 0, **disturbing)

    out = call("clicks", "--examples", "d").out

    assert "\x1b" not in out and "\u202e" not in out
    assert r"a\u001b[2J\u202e" in out
    assert r"warning: a\u001b[2J\u202e is left out" in out


def test_a_pattern_expanded_by_the_shell_is_refused(clicks, call):
    with pytest.raises(UsageError, match="unexpected argument: b") as caught:
        call("clicks", "--examples", "a", "b", "c")
    assert "quote the pattern" in (caught.value.hint or "")


def test_the_label_is_prompted_for_in_a_terminal(here, write_table):
    disturbing: Any = {"bo\x1b[2Jught": lambda n: n * 37 % 101 % 2}
    write_table(here / "d" / "part-0", 0, **disturbing)
    code = (
        "from runners.cli.init import init\n"
        "init(['clicks', '--examples', 'd/*'], standalone_mode=False)"
    )
    ours, theirs = pty.openpty()
    environment = {**os.environ, "PYTHONPATH": str(own_root()), "COLUMNS": "120"}
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=theirs,
        env=environment,
        text=True,
    )
    os.close(theirs)
    os.write(ours, b"clicked\n")
    out, _ = process.communicate(timeout=60)
    asked = os.read(ours, 10_000).decode()
    os.close(ours)

    assert process.returncode == 0, asked
    assert "Which feature should the model predict?" in asked
    assert r"bo\u001b[2Jught: its values are 0 and 1" in asked
    assert r"label [bo\u001b[2Jught]:" in asked
    assert "label      clicked, 2 classes (your choice)" in out
