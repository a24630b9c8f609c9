"""The frame of a chart: grid lines, tick labels and the names of the axes."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from reports import formats
from reports.charts.scale import Axis, Scale
from reports.charts.svg import CHAR_WIDTH, tag

TOP = 22.0
BOTTOM = 36.0
MIN_LEFT = 30.0


@dataclass(frozen=True)
class PlotArea:
    """The rectangle in which values are drawn."""

    left: float
    top: float
    right: float
    bottom: float


def left_margin(scale: Scale) -> float:
    """Returns the room that the tick labels of a vertical axis need."""
    longest = max((len(label) for _, label in scale.ticks), default=0)
    return max(MIN_LEFT, longest * CHAR_WIDTH + 8)


def draw_axes(area: PlotArea, x: Scale, y: Scale, x_axis: Axis, y_axis: Axis) -> Markup:
    """Returns the grid, the ticks and the labels; labels that overlap are left out."""
    parts = []
    for value, label in y.ticks:
        at = y.at(value)
        parts.append(_line("grid", area.left, at, area.right, at))
        parts.append(_text(label, area.left - 5, at + 4, "end"))
    free = 0.0
    for value, label in x.ticks:
        at, half = x.at(value), len(label) * CHAR_WIDTH / 2
        parts.append(_line("tick", at, area.bottom, at, area.bottom + 4))
        if at - half >= free:
            parts.append(_text(label, at, area.bottom + 16, "middle"))
            free = at + half + 4
    parts.append(_line("axis", area.left, area.bottom, area.right, area.bottom))
    middle = (area.left + area.right) / 2
    parts.append(_text(x_axis.label, middle, area.bottom + 31, "middle", "name"))
    y_label = ", ".join(filter(None, (y_axis.label, "log scale" if y.log else "")))
    parts.append(_text(y_label, 2.0, area.top - 10, "start", "name"))
    return Markup("").join(parts)


def _line(class_: str, x1: float, y1: float, x2: float, y2: float) -> Markup:
    return tag("line", class_=class_, x1=x1, y1=y1, x2=x2, y2=y2)


def _text(
    label: str, x: float, y: float, anchor: str, class_: str | None = None
) -> Markup:
    return tag(
        "text", formats.shorten(label, 50), class_=class_, x=x, y=y, text_anchor=anchor
    )
