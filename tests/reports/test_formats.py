"""Formats of the pages: few digits, units, and no invisible characters."""

from __future__ import annotations

import pytest

from reports import formats

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, formats.MISSING),
        (0, "0"),
        (1200, "1,200"),
        (0.98000001, "0.9800"),
        (12.3456, "12.35"),
        (-0.01, "-0.01000"),
        (1234567.8, "1,234,568"),
        (0.0000123, "1.230e-5"),
        (3.0, "3"),
        (float("nan"), "NaN"),
        (float("inf"), "∞"),
        ("-Infinity", "-Infinity"),
    ],
)
def test_number(value, text):
    assert formats.number(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.04, "0.0 s"), (59.94, "59.9 s"), (59.96, "1 min 00 s"), (3725, "1 h 02 min")],
)
def test_seconds(value, text):
    assert formats.seconds(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(999, "999 B"), (999_999, "1 MB"), (1_420_000, "1.42 MB"), (5e15, "5,000 TB")],
)
def test_size(value, text):
    assert formats.size(value) == text


def test_progress_of_an_epoch_and_of_a_step():
    epoch = {"event": "epoch", "epoch": 2, "epochs": 5, "examples_per_second": 5321.4}
    epoch |= {"metrics": {"loss": 1.0, "val_loss": 0.25}, "eta_s": 90.0}
    step = {**epoch, "event": "step", "step": 120, "steps": 400, "metrics": {}}
    last = {**epoch, "epoch": 5, "eta_s": 0.0}
    assert formats.progress(epoch) == [
        "epoch 2/5",
        "val_loss 0.2500",
        "5,321 examples/s",
        "at most 1 min 30 s left",
    ]
    assert formats.progress(step)[:2] == ["epoch 2/5", "step 120/400"]
    assert formats.progress(last)[-1] == "5,321 examples/s"
    assert formats.progress({"event": "something new"}) == []


def test_percent():
    values = (0, 0.0001, 0.125, 1)
    assert [formats.percent(value) for value in values] == [
        "0 %",
        "<0.1 %",
        "12.5 %",
        "100 %",
    ]


def test_invisible_characters_are_escaped():
    hostile = "a\u202eb\u200b\x00c\ud800\u2028\n\td é 数"
    assert (
        formats.visible(hostile) == "a\\u202eb\\u200b\\u0000c\\ud800\\u2028\n\td é 数"
    )


def test_a_log_has_no_terminal_colours():
    assert formats.log_text("\x1b[31mred\x1b[0m\r\nnext") == "red\nnext"


def test_shortened_text_is_marked():
    assert formats.shorten("x" * 11, 10) == "x" * 9 + "…"
    assert formats.shorten("x" * 10, 10) == "x" * 10
