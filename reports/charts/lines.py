"""Line charts: one quantity over another, of several series."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from reports import formats
from reports.charts.svg import (
    BOTTOM,
    WIDTH,
    Axis,
    Scale,
    draw_axes,
    image,
    is_finite,
    key,
    left_margin,
    make_scale,
    path,
    tag,
)

_HEIGHT = 198.0
_TOP = 22.0
# With more points than these, only the line is drawn.
_MAX_MARKERS = 30
_Run = list[tuple[float, float]]


@dataclass(frozen=True)
class Series:
    """A line.

    Attributes:
      name: its label.
      x: of each point, ascending.
      y: of each point; None and what is not finite interrupts the line.
      style: which of the five dashes and colours, from 0.
      counts: how many values each point stands for: its area is in proportion.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float | str | None]
    style: int = 0
    counts: Sequence[int] = ()


def line_chart(
    title: str,
    series: Sequence[Series],
    x_axis: Axis,
    y_axis: Axis,
    *,
    mark: tuple[float, str] | None = None,
    diagonal: bool = False,
) -> Markup:
    """Returns a line chart.

    Args:
      title: read by a screen reader.
      series: the lines.
      x_axis: the horizontal axis.
      y_axis: the vertical axis.
      mark: a place on the horizontal axis, with its label.
      diagonal: whether to draw the line from the lower left to the upper right.
    """
    names, top = key([(item.name, item.style) for item in series], is_filled=False)
    height = _HEIGHT + top
    values = (value for item in series for value in item.y)
    y = make_scale(y_axis, values, height - BOTTOM, top + _TOP)
    places = (place for item in series for place in item.x)
    x = make_scale(x_axis, places, left_margin(y), WIDTH - 14)
    parts = [names, draw_axes(x, y)]
    if diagonal:
        line = {"x1": x.start, "y1": y.start, "x2": x.end, "y2": y.end}
        parts.append(tag("line", class_="reference", **line))
    if mark and is_finite(mark[0]):
        parts.append(_mark(*mark, x, y))
    runs = [_runs(item, is_log=y.log) for item in series]
    parts += [_line(*pair, x, y) for pair in zip(series, runs, strict=True)]
    summary = "; ".join(_summary(*pair) for pair in zip(series, runs, strict=True))
    return image(WIDTH, height, title, summary or "no data", *parts)


def _runs(series: Series, *, is_log: bool) -> list[_Run]:
    """Returns the points in runs without a gap."""
    runs: list[_Run] = [[]]
    for x, y in zip(series.x, series.y, strict=True):
        if is_finite(x) and is_finite(y) and not (is_log and float(y or 0) <= 0):
            runs[-1].append((float(x), float(y or 0)))
        elif runs[-1]:
            runs.append([])
    return [run for run in runs if run]


def _line(series: Series, runs: list[_Run], x: Scale, y: Scale) -> Markup:
    drawn = [[(x.at(a), y.at(b)) for a, b in run] for run in runs if len(run) > 1]
    counts = dict(zip(series.x, series.counts, strict=False))
    most = max(series.counts, default=1) or 1
    is_marked = sum(map(len, runs)) <= _MAX_MARKERS
    points = [
        tag(
            "circle",
            tag("title", _value(series, a, b, counts.get(a))),
            cx=x.at(a),
            cy=y.at(b),
            r=1.5 + 4.5 * math.sqrt(counts[a] / most) if a in counts else 2.5,
        )
        for run in runs
        if is_marked or len(run) == 1
        for a, b in run
    ]
    line = tag("path", class_="line", d="".join(map(path, drawn))) if drawn else None
    return tag("g", line, *points, class_=f"s{series.style}")


def _value(series: Series, x: float, y: float, count: int | None) -> str:
    of = "" if count is None else f", of {count:,}"
    return f"{series.name}: {formats.number(y)} at {formats.number(x)}{of}"


def _mark(value: float, label: str, x: Scale, y: Scale) -> Markup:
    at = x.at(value)
    is_right = at > (x.start + x.end) / 2
    place, anchor = (at - 4, "end") if is_right else (at + 4, None)
    text = {"x": place, "y": y.end - 6, "text_anchor": anchor}
    line = tag("line", x1=at, y1=y.end, x2=at, y2=y.start)
    return tag(
        "g", line, tag("text", formats.shorten(label, 30), **text), class_="mark"
    )


def _summary(series: Series, runs: list[_Run]) -> str:
    values = [y for run in runs for _, y in run]
    left_out = len(series.y) - len(values)
    note = f", {left_out} without a number" if left_out else ""
    if not values:
        return f"{series.name}: no values{note}"
    texts = map(formats.number, (values[0], values[-1], min(values), max(values)))
    first, last, low, high = texts
    return f"{series.name}: from {first} to {last}, between {low} and {high}{note}"
