"""Formats of the pages: few digits, units, and no invisible characters."""

from typing import Any

import pytest

from reports import formats
from reports.compare import MetricChange
from reports.environment import environment
from reports.tables import Table, numbers

pytestmark = pytest.mark.unit


CASES: list[tuple[Any, dict[Any, str]]] = [
    (
        formats.number,
        {
            **{None: formats.MISSING, 0: "0", 1200: "1,200", 12.3456: "12.35"},
            **{0.98000001: "0.9800", -0.01: "-0.0100", 1234567.8: "1,234,568"},
            **{0.0000123: "1.23e-5", 3.0: "3", float("inf"): "\N{INFINITY}"},
            "-Infinity": "-Infinity",
        },
    ),
    (formats.seconds, {0.04: "0.0 s", 59.96: "1 min 00 s", 3725: "1 h 02 min"}),
    (formats.size, {999: "999 B", 999_999: "1 MB", 1_420_000: "1.42 MB"}),
    (
        formats.percent,
        {
            0: "0 %",
            0.0001: "<0.1 %",
            0.125: "12.5 %",
            0.9999: ">99.9 %",
            1: "100 %",
        },
    ),
    (formats.log_text, {"\x1b[31mred\x1b[0m\r\nnext": "red\nnext"}),
    (formats.shape, {None: "?", (None, 28, -1): "[?, 28, ?]"}),
    (
        formats.visible,
        {"a\u202eb\x00\ud800\n\xe9": "a\\u202eb\\u0000\\ud800\n\xe9"},
    ),
]


@pytest.mark.parametrize(("format", "texts"), CASES)
def test_formats(format, texts):
    assert {value: format(value) for value in texts} == texts


@pytest.mark.parametrize(
    ("after", "better", "tone", "text"),
    [
        (0.5283, "higher", "good", "+0.0283 better"),
        (0.5283, "lower", "bad", "+0.0283 worse"),
        (0.4717, "higher", "bad", "-0.0283 worse"),
        (67.5, None, "quiet", "+67.0"),
        (0.5, "higher", "quiet", "0"),
        (float("nan"), "higher", "quiet", "NaN"),
    ],
)
def test_a_change_has_the_colour_and_the_word_of_its_direction(
    after, better, tone, text
):
    change = MetricChange("overall", "auc", 0.5, after, better).change
    assert change is not None
    table = Table("t", "Changes", [numbers("Change")], [[change]])
    ui: Any = environment().globals["ui"]
    html = ui.table(table)
    assert f'<td class="number {tone}" data-value="{change.value}">{text}</td>' in html
