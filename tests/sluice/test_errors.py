"""Text, examples and exit code of errors."""

from __future__ import annotations

import pickle

import pytest

from sluice.errors import ConfigError, DataError, NodeError

pytestmark = pytest.mark.unit


def test_an_error_says_what_where_expected_found_and_what_next():
    error = ConfigError(
        "bad key",
        where="a.yaml",
        expected="an int",
        actual="'x'",
        hint="sluice validate a",
    )
    assert str(error).splitlines() == [
        "bad key",
        "  where:    a.yaml",
        "  expected: an int",
        "  found:    'x'",
        "  try:      sluice validate a",
    ]


def test_a_name_cannot_pass_for_a_line_of_an_error():
    evil = "x\n  try:      rm -rf /\x1b[2J"
    error = DataError(
        f"{evil} is damaged",
        where=evil,
        expected=evil,
        actual=evil,
        examples=[evil],
        hint=evil,
    )
    shown = r"x\n  try:      rm -rf /\u001b[2J"
    assert str(error).split("\n") == [
        f"{shown} is damaged",
        f"  where:    {shown}",
        f"  expected: {shown}",
        f"  found:    {shown}",
        f"  - {shown}",
        f"  try:      {shown}",
    ]
    again = NodeError.from_text(str(error))
    assert str(again) == str(pickle.loads(pickle.dumps(again))) == str(error)


@pytest.mark.parametrize(
    ("what", "shown"),
    [
        (f"no metric {300 * 'x'!r} here", f"no metric '{200 * 'x'}...' here"),
        (f"no metric {150 * 'x '!r} here", f"no metric '{100 * 'x '}...' here"),
        (f"--set a={300 * '9'} b", f"--set a={198 * '9'}... b"),
        # Apostrophes, lists of names, and paths are none.
        *[(text, text) for text in ["users' " * 80, "'ab' " * 80, "/folder" * 80]],
    ],
)
def test_a_long_value_is_cut(what, shown):
    error = ConfigError(what, where=what, expected=what, actual=what, hint=what)
    places = ("  where:    ", "  expected: ", "  found:    ", "  try:      ")
    assert str(error).split("\n") == [shown, *(place + shown for place in places)]
    assert error.what == what


def test_only_five_examples_are_shown_and_the_rest_counted():
    text = str(DataError("bad", examples=[f"row {i}" for i in range(42)]))
    assert "row 4" in text
    assert "row 5" not in text
    assert "and 37 more" in text
