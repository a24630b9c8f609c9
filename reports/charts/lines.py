"""Line charts: one quantity over another, several series, labelled at their ends."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from reports import formats
from reports.charts.plot_area import BOTTOM, TOP, PlotArea, draw_axes, left_margin
from reports.charts.scale import Axis, Scale, make_scale
from reports.charts.svg import CHAR_WIDTH, WIDTH, image, is_finite, path, tag

_HEIGHT = 220.0
_LABEL_CHARS = 14
_LINE_HEIGHT = 14.0
# With more points than these, only the line is drawn.
_MAX_MARKERS = 30


@dataclass(frozen=True)
class Series:
    """A line.

    Attributes:
      name: its label.
      x: of each point, ascending.
      y: of each point; None and what is not finite interrupts the line.
      style: which of the four dashes and colours, from 0.
      counts: how many values each point stands for: its area is in proportion.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float | str | None]
    style: int = 0
    counts: Sequence[int] = ()


@dataclass(frozen=True)
class Mark:
    """A position on the horizontal axis that is marked by a line and a label."""

    at: float
    label: str


def line_chart(
    title: str,
    series: Sequence[Series],
    x_axis: Axis,
    y_axis: Axis,
    *,
    mark: Mark | None = None,
    diagonal: bool = False,
) -> Markup:
    """Returns a line chart.

    Args:
      title: read by a screen reader.
      series: the lines; those with more points than pixels are thinned out.
      x_axis: the horizontal axis.
      y_axis: the vertical axis.
      mark: of the horizontal axis.
      diagonal: whether to draw the line from the lower left to the upper right.
    """
    segments = [_segments(item, log=y_axis.log) for item in series]
    values = (value for runs in segments for run in runs for _, value in run)
    y = make_scale(y_axis, values, _HEIGHT - BOTTOM, TOP)
    if y_axis.log and not y.log:
        segments = [_segments(item, log=False) for item in series]
    named = len(series) > 1
    longest = max((min(len(item.name), _LABEL_CHARS) for item in series), default=0)
    right = WIDTH - (longest * CHAR_WIDTH + 12 if named else 14)
    area = PlotArea(left_margin(y), TOP, right, _HEIGHT - BOTTOM)
    places = (place for item in series for place in item.x)
    x = make_scale(x_axis, places, area.left, area.right)
    parts = [draw_axes(area, x, y, x_axis, y_axis)]
    if diagonal:
        line = {"x1": area.left, "y1": area.bottom, "x2": area.right, "y2": area.top}
        parts.append(tag("line", class_="reference", **line))
    if mark and is_finite(mark.at):
        parts.append(_mark(mark, x.at(mark.at), area))
    ends = []
    for item, runs in zip(series, segments, strict=True):
        parts.append(_line(item, runs, x, y))
        if named and runs:
            ends.append((y.at(runs[-1][-1][1]), item))
    parts += _end_labels(ends, area)
    summary = "; ".join(_summary(*pair) for pair in zip(series, segments, strict=True))
    return image(WIDTH, _HEIGHT, title, summary or "no data", *parts)


_Run = list[tuple[float, float]]


def _segments(series: Series, *, log: bool) -> list[_Run]:
    """Returns the points in runs without a gap."""
    runs: list[_Run] = [[]]
    for x, y in zip(series.x, series.y, strict=True):
        if is_finite(x) and is_finite(y) and not (log and float(y or 0) <= 0):
            runs[-1].append((float(x), float(y or 0)))
        elif runs[-1]:
            runs.append([])
    return [run for run in runs if run]


def _thin(run: _Run, limit: int) -> _Run:
    """Returns about ``limit`` points: of each part the lowest and the highest."""
    if len(run) <= limit:
        return run
    size = -(-len(run) * 2 // limit)
    kept: _Run = []
    for start in range(0, len(run), size):
        part = run[start : start + size]
        ends = {min(part, key=lambda p: p[1]), max(part, key=lambda p: p[1])}
        kept += sorted({run[0], run[-1]} & set(part) | ends)
    return kept


def _line(series: Series, runs: list[_Run], x: Scale, y: Scale) -> Markup:
    width = int(abs(x.end - x.start))
    drawn = [[(x.at(a), y.at(b)) for a, b in _thin(run, width)] for run in runs]
    line = "".join(path(run) for run in drawn if len(run) > 1)
    few = sum(map(len, runs)) <= _MAX_MARKERS
    counts = dict(zip(series.x, series.counts, strict=False))
    most = max(series.counts, default=1) or 1
    points = [
        tag(
            "circle",
            tag("title", _value(series, a, b, counts.get(a))),
            cx=x.at(a),
            cy=y.at(b),
            r=1.5 + 4.5 * math.sqrt(counts[a] / most) if a in counts else 2.5,
        )
        for run in runs
        if few or len(run) == 1
        for a, b in run
    ]
    return tag(
        "g",
        tag("path", class_="line", d=line) if line else None,
        *points,
        class_=f"s{series.style}",
    )


def _value(series: Series, x: float, y: float, count: int | None) -> str:
    of = "" if count is None else f", of {count:,}"
    return f"{series.name}: {formats.number(y)} at {formats.number(x)}{of}"


def _mark(mark: Mark, at: float, area: PlotArea) -> Markup:
    line = tag("line", x1=at, y1=area.top, x2=at, y2=area.bottom)
    is_right = at > (area.left + area.right) / 2
    x, anchor = (at - 4, "end") if is_right else (at + 4, None)
    label = formats.shorten(mark.label, 30)
    text = tag("text", label, y=area.top - 6, x=x, text_anchor=anchor)
    return tag("g", line, text, class_="mark")


def _end_labels(ends: list[tuple[float, Series]], area: PlotArea) -> list[Markup]:
    """Returns the series' names beside their last points, moved apart."""
    ends = sorted(ends, key=lambda end: end[0])
    places: list[float] = []
    for at, _ in ends:
        places.append(max([at + 4, *(place + _LINE_HEIGHT for place in places[-1:])]))
    beyond = max(0.0, max(places, default=0.0) - area.bottom)
    return [
        tag(
            "text",
            formats.shorten(series.name, _LABEL_CHARS),
            class_=f"end s{series.style}",
            x=area.right + 6,
            y=place - beyond,
        )
        for place, (_, series) in zip(places, ends, strict=True)
    ]


def _summary(series: Series, runs: list[_Run]) -> str:
    points = [point for run in runs for point in run]
    left_out = len(series.y) - len(points)
    note = f", {left_out} without a number" if left_out else ""
    if not points:
        return f"{series.name}: no values{note}"
    low, high = min(y for _, y in points), max(y for _, y in points)
    return (
        f"{series.name}: from {formats.number(points[0][1])} to "
        f"{formats.number(points[-1][1])}, between {formats.number(low)} and "
        f"{formats.number(high)}{note}"
    )
