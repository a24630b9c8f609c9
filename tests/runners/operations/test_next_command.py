"""``next_command``: quoted words, the program as it was called, the workspace."""

from __future__ import annotations

import sys

import pytest

from sluice.workspace import next_command

pytestmark = pytest.mark.unit


@pytest.fixture(autouse=True)
def no_workspace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLUICE_WORKSPACE", raising=False)
    monkeypatch.setattr(sys, "argv", ["sluice", "status"])


def test_words_are_quoted_where_a_shell_needs_it():
    assert next_command("run", "my digits") == "sluice run 'my digits'"


@pytest.mark.parametrize(
    ("called", "shown"),
    [
        (".venv/bin/sluice", ".venv/bin/sluice run digits"),
        ("/x/main.py", "sluice run digits"),
    ],
)
def test_the_command_names_the_program_that_was_called(monkeypatch, called, shown):
    monkeypatch.setattr(sys, "argv", [called])
    assert next_command("run", "digits") == shown


def test_the_command_names_the_workspace(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SLUICE_WORKSPACE", "w")
    given = next_command("run", "digits")
    assert given == f"sluice run digits --workspace {tmp_path / 'w'}"
    monkeypatch.setenv("SLUICE_WORKSPACE", "/elsewhere")
    found = next_command("run", "digits")
    assert found == "sluice run digits --workspace /elsewhere"
