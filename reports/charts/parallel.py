"""Parallel coordinates: an axis per quantity, and a line through all for each item."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from reports import formats
from reports.charts.svg import (
    CHAR_WIDTH,
    Axis,
    Scale,
    image,
    is_finite,
    make_scale,
    path,
    tag,
)

_TOP, _BOTTOM, _HEIGHT = 40.0, 12.0, 260.0
_WIDTH, _STEP, _RIGHT = 720.0, 110.0, 60.0
_MAX_CHARS = 16
_LEFT = _MAX_CHARS * CHAR_WIDTH


# A label, and a place on each axis; one that is not finite ends the line.
Line = tuple[str, Sequence[float | None]]


def parallel_chart(title: str, axes: Sequence[Axis], lines: Sequence[Line]) -> Markup:
    """Returns the chart; the first line stands out, with a point on each axis."""
    columns = zip(*(values for _, values in lines), strict=True)
    scales = [_scale(*pair) for pair in zip(axes, columns, strict=True)]
    step = max((_WIDTH - _LEFT - _RIGHT) / max(len(axes) - 1, 1), _STEP)
    places = [_LEFT + i * step for i in range(len(axes))]
    first, *others = lines
    parts = [
        *(_line(line, places, scales, "other") for line in reversed(others)),
        *map(_axis, places, scales),
        _line(first, places, scales, "s0"),
    ]
    description = f"{formats.plural(len(lines), 'line')}; the best: {first[0]}"
    return image(places[-1] + _RIGHT, _HEIGHT, title, description, *parts)


def _scale(axis: Axis, values: Sequence[float | None]) -> Scale:
    bottom = _HEIGHT - _BOTTOM
    if not axis.texts:
        return make_scale(axis, values, bottom, _TOP)
    places = tuple(map(float, range(len(axis.texts))))
    return Scale(axis, 0.0, max(places[-1], 1.0), bottom, _TOP, False, places)


def _axis(x: float, scale: Scale) -> Markup:
    name = formats.shorten(scale.axis.label, _MAX_CHARS)
    parts = [
        tag("line", class_="axis", x1=x, x2=x, y1=scale.start, y2=scale.end),
        tag("text", name, class_="name", x=x, y=_TOP - 24, text_anchor="middle"),
    ]
    if scale.log:
        note = {"x": x, "y": _TOP - 11, "text_anchor": "middle"}
        parts.append(tag("text", "log scale", **note))
    for value, text in zip(scale.places, scale.labels, strict=True):
        y, label = scale.at(value), formats.shorten(text, _MAX_CHARS)
        parts.append(tag("line", class_="tick", x1=x - 4, x2=x, y1=y, y2=y))
        place = {"x": x - 7, "y": y + 4, "text_anchor": "end"}
        parts.append(tag("text", label, class_="over", **place))
    return tag("g", *parts)


def _line(
    line: Line, places: Sequence[float], scales: Sequence[Scale], class_: str
) -> Markup:
    points = []
    for x, scale, value in zip(places, scales, line[1], strict=True):
        if value is None or not is_finite(value):
            break
        points.append((x, scale.at(value)))
    is_first = class_ == "s0"
    dots = [tag("circle", cx=x, cy=y, r=3.5) for x, y in points if is_first]
    if not points:
        return tag("g")
    drawn = tag("path", tag("title", line[0]), class_="line", d=path(points))
    return tag("g", drawn, *dots, class_=class_)
