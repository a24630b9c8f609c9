"""``next_command``: quoted words, the program as it was called, the workspace."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from runners.operations.pipeline_request import next_command

pytestmark = pytest.mark.unit


@pytest.fixture(autouse=True)
def no_workspace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLUICE_WORKSPACE", raising=False)
    monkeypatch.setattr(sys, "argv", ["sluice", "status"])


def test_words_are_quoted_where_a_shell_needs_it() -> None:
    assert next_command("run", "my digits") == "sluice run 'my digits'"


@pytest.mark.parametrize(
    ("called", "shown"),
    [
        (".venv/bin/sluice", ".venv/bin/sluice run digits"),
        ("/x/main.py", "sluice run digits"),
    ],
)
def test_the_command_names_the_program_that_was_called(
    monkeypatch: pytest.MonkeyPatch, called: str, shown: str
) -> None:
    monkeypatch.setattr(sys, "argv", [called])
    assert next_command("run", "digits") == shown


def test_the_command_names_the_workspace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    given = next_command("run", "digits", workspace_dir="w")
    assert given == f"sluice run digits --workspace {tmp_path / 'w'}"
    monkeypatch.setenv("SLUICE_WORKSPACE", "/elsewhere")
    found = next_command("run", "digits")
    assert found == "sluice run digits --workspace /elsewhere"
