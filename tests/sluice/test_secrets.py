"""Secret references: resolution and redaction."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from sluice import progress, secrets
from sluice.errors import ConfigError
from sluice.project import own_root

pytestmark = pytest.mark.unit


@pytest.fixture(autouse=True)
def token(monkeypatch):
    monkeypatch.setattr(secrets, "_resolved", {})
    monkeypatch.setenv("TOKEN", "MARKER")
    monkeypatch.setenv("EMPTY", "")


@pytest.mark.parametrize(
    ("value", "resolved"),
    [
        ("${env:TOKEN}", "MARKER"),
        ("Bearer ${env:TOKEN}, ${env:TOKEN}", "Bearer MARKER, MARKER"),
        ("[${env:EMPTY}]", "[]"),
        ("$${env:TOKEN}", "${env:TOKEN}"),
        ("$TOKEN ${TOKEN} $$ {env:TOKEN}", "$TOKEN ${TOKEN} $$ {env:TOKEN}"),
        ({"a": ["${env:TOKEN}", 1, None]}, {"a": ["MARKER", 1, None]}),
        ({"${env:TOKEN}": True}, {"${env:TOKEN}": True}),
        (3.5, 3.5),
    ],
)
def test_references_are_resolved_at_any_depth(value, resolved):
    assert secrets.resolve(value) == resolved


@pytest.mark.parametrize("text", ["${env:}", "${env:1A}", "${env:A B}", "${env:TOKEN"])
def test_a_reference_must_name_a_variable(text):
    assert secrets.references(text) == [None]
    with pytest.raises(ConfigError, match="is not followed by"):
        secrets.resolve(text)


def test_a_variable_that_is_not_set_is_named(monkeypatch):
    monkeypatch.delenv("TOKEN")
    with pytest.raises(ConfigError, match="variable TOKEN is not set"):
        secrets.resolve(["${env:TOKEN}"])


def test_exec_properties_that_are_json_stay_json(monkeypatch):
    monkeypatch.setenv("TOKEN", 'a"b\\c')
    properties = {
        "json": json.dumps({"auth": ["${env:TOKEN}"]}),
        "plain": '{"spaces":  1}',
        "no_json": "{not ${env:TOKEN}",
        "number": 3,
    }
    resolved = secrets.resolve_exec_properties(properties)

    assert json.loads(resolved["json"]) == {"auth": ['a"b\\c']}
    assert resolved["plain"] == properties["plain"]
    assert resolved["no_json"] == '{not a"b\\c'
    assert resolved["number"] == 3


def test_values_are_redacted_also_in_their_escaped_forms(monkeypatch):
    value = 'a"b\\c'
    monkeypatch.setenv("TOKEN", value)
    assert secrets.redact(value) == value
    secrets.resolve("${env:TOKEN}")

    for text in (value, json.dumps({"x": value}), repr([value])):
        redacted = secrets.redact(text)
        assert "${env:TOKEN}" in redacted
        assert "a" not in redacted


def test_of_two_secrets_the_longer_is_redacted_as_a_whole(monkeypatch):
    monkeypatch.setenv("SHORT", "MARK")
    monkeypatch.setenv("NAME", "SHORT")
    secrets.resolve("${env:SHORT} ${env:TOKEN} ${env:NAME}")
    text = secrets.redact("MARKER MARK SHORT")
    assert text == "${env:TOKEN} ${env:SHORT} ${env:NAME}"


def test_each_line_of_a_secret_is_redacted(monkeypatch):
    monkeypatch.setenv("TOKEN", '-----BEGIN\nAAAA\n}\n  BBBB"\n-----END')
    secrets.resolve("${env:TOKEN}")
    for line in ("-----BEGIN", "AAAA", 'BBBB"', json.dumps('BBBB"')[1:-1]):
        assert secrets.redact(f"x {line} y") == "x ${env:TOKEN} y"
    assert secrets.redact("{}") == "{}"


def test_progress_is_redacted(tmp_path, monkeypatch):
    monkeypatch.setenv(progress.PROGRESS_FILE, str(tmp_path / "progress"))
    secrets.resolve("${env:TOKEN}")
    progress.report(line="with MARKER", epoch=1)
    lines, _ = progress.read(tmp_path / "progress")
    assert lines == [{"line": "with ${env:TOKEN}", "epoch": 1}]


def test_a_log_is_redacted_whoever_wrote_it(tmp_path):
    log = tmp_path / "Trainer.log"
    program = """
import os, subprocess
os.write(1, b"\\xff native " + os.environb[b"TOKEN"] + b"\\n")
subprocess.run(["echo", "subprocess", os.environ["TOKEN"]])
"""
    with log.open("ab") as file:
        subprocess.run([sys.executable, "-c", program], stdout=file, check=True)
    written = log.read_bytes()
    secrets.redact_file(log)
    assert log.read_bytes() == written, "no secret is known"

    secrets.remember('{"a": "${env:TOKEN}", "b": "${env:NOT_SET} $${env:EMPTY}"}')
    secrets.redact_file(log)
    assert log.read_bytes() == b"\xff native ${env:TOKEN}\nsubprocess ${env:TOKEN}\n"
    secrets.redact_file(tmp_path / "missing.log")


def test_what_python_prints_and_logs_is_redacted():
    program = """
import logging, sys
from sluice import secrets
logging.basicConfig(stream=sys.stderr)
secrets.redact_output()
token = secrets.resolve("${env:TOKEN}")
print("print", token)
print("to stderr", token, file=sys.stderr)
logging.warning("args %s", token)
try:
    raise ValueError(token)
except ValueError:
    logging.exception("failed")
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=own_root(), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "print ${env:TOKEN}\n"
    assert "to stderr ${env:TOKEN}" in done.stderr
    assert "WARNING:root:args ${env:TOKEN}" in done.stderr
    assert "ValueError: ${env:TOKEN}" in done.stderr
    assert "MARKER" not in done.stdout + done.stderr
