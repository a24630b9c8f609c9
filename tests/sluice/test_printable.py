"""Escaping of text for terminals."""

from __future__ import annotations

import pytest

from sluice.errors import printable, printable_output

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("naïve 数据 ─ 🙂", "naïve 数据 ─ 🙂"),
        ("a\nerror: b", r"a\nerror: b"),
        ("\x1b[2J", r"\u001b[2J"),
        ("a\rb\bc\x7f", r"a\rb\bc\u007f"),
        ("\u202egnp.exe", r"\u202egnp.exe"),
        ("\udcff.tfrecord", r"\udcff.tfrecord"),
    ],
)
def test_control_characters_are_escaped_once(text, shown):
    assert printable(text) == shown
    assert printable(shown) == shown


def test_output_keeps_lines_tabs_and_colours():
    kept = "a\tb\n\x1b[1;31mred\x1b[0m\n"
    assert printable_output(kept) == kept
    title, clear, back = "\x1b]0;title\x07", "\x1b[2J\x1b[1;1H", "50%\r100%\b"
    assert printable_output(title + clear + back + "\n") == (
        r"\u001b]0;title\u0007\u001b[2J\u001b[1;1H50%\r100%\b" + "\n"
    )
