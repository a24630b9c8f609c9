"""Line charts: one quantity over another, of several series."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from reports import formats
from reports.charts.svg import (
    BOTTOM,
    MIN_LEFT,
    WIDTH,
    Axis,
    Scale,
    draw_axes,
    image,
    is_finite,
    key,
    left_margin,
    make_scale,
    number,
    path,
    tag,
)
from sluice.record.states import Tone

_HEIGHT = 198.0
_TOP = 22.0
_RIGHT = 14.0
# With labels of three characters, as those of shares have.
_SQUARE_HEIGHT = _TOP + WIDTH - MIN_LEFT - _RIGHT + BOTTOM
# With more points than these, only the line is drawn.
_MAX_MARKERS = 30
_Run = list[tuple[float, float]]
# Shapes around the origin; a state has one of its own, so that colour is not needed.
SHAPES = {
    "good": "M-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0-7 0z",
    "bad": "M-3.5-3.5l7 7m0-7l-7 7",
    "warn": "M0-4.5l4.5 8h-9z",
    "active": "M-3-3h6v6h-6z",
}


@dataclass(frozen=True)
class Point:
    """The state that a point of a line stands for, and where it is explained.

    Attributes:
      label: what it is, such as a run and its verdict.
      tone: of its state: the colour and the shape.
      href: the address of its page; None without one.
    """

    label: str
    tone: Tone
    href: str | None = None


@dataclass(frozen=True)
class Series:
    """A line.

    Attributes:
      name: its label.
      x: of each point, ascending.
      y: of each point; None and what is not finite interrupts the line.
      style: which of the six dashes and colours, from 0.
      counts: how many values each point stands for: its area is in proportion.
      points: the state of each point.
      ring: a point of the line that is marked.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float | str | None]
    style: int = 0
    counts: Sequence[int] = ()
    points: Sequence[Point] = ()
    ring: tuple[float, float] | None = None


def line_chart(
    title: str,
    series: Sequence[Series],
    x_axis: Axis,
    y_axis: Axis,
    *,
    mark: tuple[float, str] | None = None,
    diagonal: bool = False,
    level: float | None = None,
    square: bool = False,
) -> Markup:
    """Returns a line chart.

    Args:
      title: read by a screen reader.
      series: the lines.
      x_axis: the horizontal axis.
      y_axis: the vertical axis.
      mark: a place on the horizontal axis, with its label.
      diagonal: whether to draw the line from the lower left to the upper right.
      level: a value of the vertical axis at which to draw a line.
      square: whether both axes have the same length.
    """
    names, top = key([(item.name, item.style) for item in series], is_filled=False)
    height = top + (_SQUARE_HEIGHT if square else _HEIGHT)
    values = (value for item in series for value in item.y)
    y = make_scale(y_axis, values, height - BOTTOM, top + _TOP)
    places = (place for item in series for place in item.x)
    x = make_scale(x_axis, places, left_margin(y), WIDTH - _RIGHT)
    parts = [names, draw_axes(x, y)]
    if diagonal:
        line = {"x1": x.start, "y1": y.start, "x2": x.end, "y2": y.end}
        parts.append(tag("line", class_="reference", **line))
    if level is not None:
        at = y.at(level)
        parts.append(
            tag("path", class_="reference", d=path([(x.start, at), (x.end, at)]))
        )
    if mark and is_finite(mark[0]):
        parts.append(_mark(*mark, x, y))
    runs = [_runs(item, is_log=y.log) for item in series]
    has_states = any(item.points for item in series)
    for item, found in zip(series, runs, strict=True):
        parts.append(_line(item, found, x, y, is_marked=not has_states))
    parts += [_states(item, x, y) for item in series if item.points]
    summary = "; ".join(_summary(*pair) for pair in zip(series, runs, strict=True))
    # What is inside an image cannot be followed.
    role = "group" if has_states else "img"
    return image(WIDTH, height, title, summary or "no data", *parts, role=role)


def _runs(series: Series, *, is_log: bool) -> list[_Run]:
    """Returns the points in runs without a gap."""
    runs: list[_Run] = [[]]
    for x, y in zip(series.x, series.y, strict=True):
        if is_finite(x) and is_finite(y) and not (is_log and float(y or 0) <= 0):
            runs[-1].append((float(x), float(y or 0)))
        elif runs[-1]:
            runs.append([])
    return [run for run in runs if run]


def _line(
    series: Series, runs: list[_Run], x: Scale, y: Scale, *, is_marked: bool
) -> Markup:
    drawn = [[(x.at(a), y.at(b)) for a, b in run] for run in runs if len(run) > 1]
    counts = dict(zip(series.x, series.counts, strict=False))
    most = max(series.counts, default=1) or 1
    is_few = sum(map(len, runs)) <= _MAX_MARKERS
    points = [
        tag(
            "circle",
            tag("title", _value(series, a, b, counts.get(a))),
            cx=x.at(a),
            cy=y.at(b),
            r=1.5 + 4.5 * math.sqrt(counts[a] / most) if a in counts else 2.5,
        )
        for run in runs
        if is_marked and (is_few or len(run) == 1)
        for a, b in run
    ]
    if series.ring and all(map(is_finite, series.ring)):
        a, b = series.ring
        title = tag("title", _value(series, a, b, None))
        points.append(tag("circle", title, class_="ring", cx=x.at(a), cy=y.at(b), r=5))
    line = tag("path", class_="line", d="".join(map(path, drawn))) if drawn else None
    return tag("g", line, *points, class_=f"s{series.style}")


def _states(series: Series, x: Scale, y: Scale) -> Markup:
    """Returns a shape for each point; of many, only those that are not good."""
    is_marked = len(series.points) <= _MAX_MARKERS
    shapes = []
    for at, value, point in zip(series.x, series.y, series.points, strict=True):
        if is_finite(value) and (is_marked or point.tone != "good"):
            place = f"translate({number(x.at(at))} {number(y.at(float(value or 0)))})"
            text = f"{point.label}: {formats.number(value)}"
            shape = tag(
                "path",
                tag("title", text),
                class_=f"point {point.tone}",
                d=SHAPES.get(point.tone, SHAPES["active"]),
                transform=place,
            )
            # The table of runs has the same links for the keyboard.
            link = {"href": point.href, "tabindex": -1, "aria_label": text}
            shapes.append(tag("a", shape, **link) if point.href else shape)
    return tag("g", *shapes)


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
