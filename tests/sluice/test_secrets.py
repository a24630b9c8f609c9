"""Secret references: resolution and redaction."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice import secrets
from sluice.errors import ConfigError

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


@pytest.mark.parametrize(
    ("pieces", "written"),
    [
        (["MAR", "KER\n"], ["", "${env:TOKEN}\n"]),
        (["ask", " MA", "T", "MARKER"], ["ask", " ", "MAT", "${env:TOKEN}"]),
        # A secret within another, and two that overlap.
        (["MARK", ".ABCAB", "X"], ["", "${env:SHORT}.", "${env:LOOP}X"]),
        (["MARK", "ER"], ["", "${env:TOKEN}"]),
        (["ABCAB", "CAB"], ["", "${env:LOOP}CAB"]),
        # The process was killed while it printed one.
        (["at MARKE"], ["at ${env:TOKEN}"]),
        (["a MAR"], ["a MAR"]),
        (["\udcff caf", "é"], ["\udcff ", "${env:TEXT}"]),
    ],
)
def test_output_is_redacted_in_pieces(monkeypatch, pieces, written):
    for name, value in {"SHORT": "MARK", "LOOP": "ABCAB", "TEXT": "café"}.items():
        monkeypatch.setenv(name, value)
    secrets.remember("${env:TOKEN} ${env:SHORT} ${env:LOOP} ${env:TEXT} ${env:NO}")
    assert secrets.are_known()
    redactor = secrets.Redactor()
    *first, last = [piece.encode(errors="surrogateescape") for piece in pieces]
    found = [*map(redactor.redact, first), redactor.redact(last, is_last=True)]
    assert [item.decode(errors="surrogateescape") for item in found] == written


@given(st.text("MARKEB\n"), st.lists(st.integers(0, 20)))
def test_pieces_are_redacted_as_the_whole(text, lengths):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(secrets, "_resolved", {})
        for name, value in {"A": "MARKER", "B": "RKER", "C": "KEBM\nEBME"}.items():
            patch.setenv(name, value)
            secrets.remember(f"${{env:{name}}}")
        redactor, data, written = secrets.Redactor(), text.encode(), b""
        for length in lengths:
            written += redactor.redact(data[:length])
            data = data[length:]
        written += redactor.redact(data + b".", is_last=True)
        assert written.decode() == secrets.redact(text + ".")


def test_each_line_of_a_secret_is_redacted(monkeypatch):
    monkeypatch.setenv("TOKEN", '-----BEGIN\nAAAA\n}\n  BBBB"\n-----END')
    secrets.resolve("${env:TOKEN}")
    for line in ("-----BEGIN", "AAAA", 'BBBB"', json.dumps('BBBB"')[1:-1]):
        assert secrets.redact(f"x {line} y") == "x ${env:TOKEN} y"
    assert secrets.redact("{}") == "{}"
