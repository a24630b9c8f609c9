"""Timelines: what ran when, one row each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup

from reports import formats
from reports.charts.svg import CHAR_WIDTH, image, is_finite, tag

_WIDTH = 720.0
_ROW = 22.0
_AXIS_HEIGHT = 24.0
_NAME_CHARS = 26
# Round distances of ticks, in seconds; beyond an hour, whole hours.
_STEPS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600)
_LONGEST_S = 1e9


class Bar(NamedTuple):
    """One row: a name, start and end since the beginning, a note, a CSS class."""

    name: str
    start_s: float
    end_s: float
    note: str = ""
    tone: str = ""


def timeline(title: str, bars: Sequence[Bar]) -> Markup:
    """Returns a bar for each row over a common axis of time, in the given order."""
    bars = [bar for bar in bars if is_finite(bar.start_s) and is_finite(bar.end_s)]
    longest = max((min(len(bar.name), _NAME_CHARS) for bar in bars), default=0)
    left, right = longest * CHAR_WIDTH + 14, _WIDTH - 12.0
    total = min(max([bar.end_s for bar in bars] + [_STEPS[0]]), _LONGEST_S)
    per_second = (right - left) / total
    bottom = _AXIS_HEIGHT + len(bars) * _ROW
    step = next((step for step in _STEPS if step >= total / 6), total // 21_600 * 3600)
    parts = []
    for value in (i * step for i in range(int(total / step) + 1)):
        x = left + value * per_second
        line = {"x1": x, "x2": x, "y1": _AXIS_HEIGHT - 6, "y2": bottom}
        parts.append(tag("line", class_="grid", **line))
        anchor = "end" if x + 30 > _WIDTH else "middle" if value else "start"
        text = formats.seconds(value)
        parts.append(tag("text", text, x=x, y=12.0, text_anchor=anchor))
    for i, bar in enumerate(bars):
        y = _AXIS_HEIGHT + i * _ROW
        start = left + min(max(0.0, bar.start_s), total) * per_second
        end = max(start, left + min(bar.end_s, total) * per_second)
        name = formats.shorten(bar.name, _NAME_CHARS)
        times = f"{formats.seconds(bar.start_s)} to {formats.seconds(bar.end_s)}"
        size = {"width": max(end - start, 2.0), "height": _ROW - 8, "rx": 2}
        note = formats.shorten(bar.note, 30)
        is_inside = end + 6 + len(note) * CHAR_WIDTH > _WIDTH
        x, anchor = (start - 5, "end") if is_inside else (end + 5, "start")
        row = (
            tag("title", f"{bar.name}: {times} {bar.note}"),
            tag("text", name, x=left - 6, y=y + 14, text_anchor="end"),
            tag("rect", x=start, y=y + 4, **size),
            tag("text", note, class_="note", y=y + 14, x=x, text_anchor=anchor),
        )
        parts.append(tag("g", *row, class_=f"row {bar.tone}".strip()))
    summary = "; ".join(f"{bar.name} {bar.note}".strip() for bar in bars[:30])
    return image(_WIDTH, bottom + 4, title, summary or "nothing ran", *parts)
