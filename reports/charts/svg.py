"""SVG elements as markup, and the axes of charts.

Every text and attribute is escaped. Charts have no ids, scripts, styles or colours of
their own: a page may hold thousands of them, its content-security policy forbids inline
styles, and ``charts.css`` colours classes by custom properties, in light and dark.

Scales are linear or logarithmic, with round ticks. The steps are those of Heckbert,
"Nice Numbers for Graph Labels", Graphics Gems (1990): 1, 2 or 5 times a power of ten.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from markupsafe import Markup, escape

from reports import formats

# Widths of charts whose text stays readable when a phone scales them down.
WIDTH = 360.0
# Mean width of a character of 12 units in a wide font, such as DejaVu Sans.
CHAR_WIDTH = 7.2
# Values beyond are drawn at it: the difference of two floats has to stay finite.
_LARGEST = 1e300
_KEY_HEIGHT = 18.0
_KEY_CHARS = 18
BOTTOM = 36.0
MIN_LEFT = 30.0
_SMALLEST = 1e-300
_TICKS = 5


def tag(name: str, *children: str | float | None, **attributes: object) -> Markup:
    """Returns an element; strings among the children are escaped, markup is not.

    Args:
      name: of the element.
      children: text and elements; None is left out.
      attributes: underscores become hyphens, ``class_`` is ``class``; None is left out.
    """
    texts = Markup("").join(
        Markup(' {}="{}"').format(
            key.rstrip("_").replace("_", "-") if key != "viewBox" else key,
            number(value) if isinstance(value, float) else formats.visible(value),
        )
        for key, value in attributes.items()
        if value is not None
    )
    content = Markup("").join(
        child if isinstance(child, Markup) else escape(formats.visible(child))
        for child in children
        if child is not None
    )
    return Markup("<{0}{1}>{2}</{0}>").format(name, texts, content)


def image(
    width: float,
    height: float,
    title: str,
    description: str,
    *children: Markup,
    role: str = "img",
) -> Markup:
    """Returns an ``<svg>`` that a screen reader announces as one image."""
    return tag(
        "svg",
        tag("desc", formats.shorten(description, 2000)),
        *children,
        class_="chart",
        viewBox=f"0 0 {number(width)} {number(height)}",
        width=width,
        height=height,
        role=role,
        aria_label=formats.shorten(title, 200),
    )


def key(names: Sequence[tuple[str, int]], *, is_filled: bool) -> tuple[Markup, float]:
    """Returns the names of series beside a sample of their look, and the height.

    Args:
      names: name and style of each; a single one needs no key.
      is_filled: whether the first is an area.
    """
    if len(names) < 2:
        return Markup(), 0.0
    parts, x, y = [], 0.0, 12.0
    for i, (name, style) in enumerate(names):
        name = formats.shorten(name, _KEY_CHARS)
        width = 36 + len(name) * CHAR_WIDTH
        if x + width > WIDTH:
            x, y = 0.0, y + _KEY_HEIGHT
        class_, end = ("filled", "z") if is_filled and i == 0 else ("line", "")
        sample = tag("path", class_=class_, d=f"M{number(x + 1)} {y}v-8h16v8{end}")
        parts.append(
            tag("g", sample, tag("text", name, x=x + 22, y=y), class_=f"s{style}")
        )
        x += width
    return tag("g", *parts, class_="key"), y + 6


def number(value: float) -> str:
    """Returns a coordinate with at most one decimal."""
    return f"{value:.1f}".removesuffix(".0")


def path(points: list[tuple[float, float]]) -> str:
    """Returns the path through the points, in their order."""
    return "M" + "L".join(f"{number(x)} {number(y)}" for x, y in points)


def is_finite(value: object) -> bool:
    """Returns whether a value is a finite number."""
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and math.isfinite(value)
    )


def clamp(value: float) -> float:
    """Returns a number so close to zero that differences of such are finite."""
    return min(max(value, -_LARGEST), _LARGEST)


@dataclass(frozen=True)
class Axis:
    """What an axis shows.

    Attributes:
      label: the quantity, with its unit.
      low: where it begins; None for the smallest value, rounded down.
      high: where it ends, likewise.
      log: whether it is logarithmic; without any positive value it is not.
      whole: whether all ticks are whole numbers, such as epochs.
      percent: whether values are fractions, shown in percent.
      texts: labels of 0, 1, 2 and so on; empty for numbers.
    """

    label: str = ""
    low: float | None = None
    high: float | None = None
    log: bool = False
    whole: bool = False
    percent: bool = False
    texts: Sequence[str] = ()


@dataclass(frozen=True)
class Scale:
    """A mapping from the values ``low`` to ``high`` to ``start`` to ``end``."""

    axis: Axis
    low: float
    high: float
    start: float
    end: float
    log: bool
    places: tuple[float, ...]

    def at(self, value: float) -> float:
        """Returns the coordinate of a value; values outside are at the ends."""
        value = min(max(value, self.low), self.high)
        low, high = self.low, self.high
        if self.log:
            low, high, value = (math.log10(item) for item in (low, high, value))
        return self.start + (value - low) / (high - low) * (self.end - self.start)

    @property
    def labels(self) -> list[str]:
        """The labels of the ticks; of a linear scale all have as many decimals."""
        if self.axis.texts:
            return [self.axis.texts[int(place)] for place in self.places]
        factor, unit = (100.0, " %") if self.axis.percent else (1.0, "")
        places = [value * factor for value in self.places]
        largest = max(map(abs, places), default=0.0)
        step = min((b - a for a, b in pairwise(places)), default=1.0)
        if not self.axis.whole and (largest >= 1e6 or (largest and step < 1e-4)):
            texts = [f"{value:.5g}" if value else "0" for value in places]
        elif self.log:
            texts = [f"{value:,g}" for value in places]
        else:
            decimals = max(0, -math.floor(math.log10(step) + 1e-9))
            texts = [f"{value + 0.0:,.{decimals}f}" for value in places]
        return [f"{text}{unit}" for text in texts]


def make_scale(axis: Axis, values: Iterable[object], start: float, end: float) -> Scale:
    """Returns a scale from the coordinate ``start`` of the lowest value to ``end``.

    NaN and infinities do not count; without any value it goes from 0 to 1.
    """
    kept = [clamp(float(x)) for x in values if is_finite(x)]  # type: ignore[arg-type]
    if axis.log and (positive := [x for x in kept if x >= _SMALLEST]):
        first = math.floor(math.log10(min(positive)) + 1e-9)
        last = max(math.ceil(math.log10(max(positive)) - 1e-9), first + 1)
        exponents = range(first, last + 1, math.ceil((last - first) / _TICKS))
        places = tuple(10.0**exponent for exponent in exponents)
        return Scale(axis, 10.0**first, 10.0**last, start, end, True, places)
    if axis.texts:
        last = len(axis.texts) - 1
        # Every second one, so that the last has room.
        places = tuple(map(float, range(last % 2, last + 1, 2)))
        return Scale(axis, 0.0, float(last), start, end, False, places)
    low = clamp(min(kept, default=0.0) if axis.low is None else axis.low)
    high = clamp(max(kept, default=max(low, 1.0)) if axis.high is None else axis.high)
    if not high - low > max(abs(low), abs(high), _SMALLEST) * 1e-9:
        pad = max(abs(low) * 0.1, _SMALLEST) if low else 1.0
        low = low if axis.low is not None or not low else low - pad
        # Of a share, such as an accuracy of 1 in every epoch, nothing is above 1.
        high = high if high == 1.0 and low < high else max(low, high) + pad
    step = _step((high - low) / (_TICKS - 1))
    step = max(step, 1.0) if axis.whole else step
    first, last = math.ceil(low / step - 1e-6), math.floor(high / step + 1e-6)
    if not axis.whole and axis.low is None:
        first = math.floor(low / step + 1e-6)
        low = min(low, first * step)
    if not axis.whole and axis.high is None:
        last = math.ceil(high / step - 1e-6)
        high = max(high, last * step)
    places = tuple(i * step for i in range(first, last + 1))
    return Scale(axis, low, high, start, end, False, places)


def _step(rough: float) -> float:
    power = 10.0 ** math.floor(math.log10(rough))
    steps = (factor * power for factor in (1.0, 2.0, 5.0, 10.0))
    return next(step for step in steps if step >= rough)


def left_margin(y: Scale) -> float:
    """Returns the room that the tick labels of a vertical axis need."""
    return max([MIN_LEFT, *(len(label) * CHAR_WIDTH + 8 for label in y.labels)])


def draw_axes(x: Scale, y: Scale) -> Markup:
    """Returns the grid, the ticks and the labels; labels that overlap are left out."""
    parts, free = [], 0.0
    left, right, bottom, top = x.start, x.end, y.start, y.end
    for value, label in zip(y.places, y.labels, strict=True):
        at = y.at(value)
        parts.append(tag("line", class_="grid", x1=left, x2=right, y1=at, y2=at))
        parts.append(_text(label, left - 5, at + 4, "end"))
    for value, label in zip(x.places, x.labels, strict=True):
        at, half = x.at(value), len(label) * CHAR_WIDTH / 2
        tick = {"y1": bottom, "y2": bottom + 4}
        parts.append(tag("line", class_="tick", x1=at, x2=at, **tick))
        if at - half >= free:
            parts.append(_text(label, at, bottom + 16, "middle"))
            free = at + half + 4
    line = {"x1": left, "x2": right, "y1": bottom, "y2": bottom}
    parts.append(tag("line", class_="axis", **line))
    parts.append(_text(x.axis.label, (left + right) / 2, bottom + 31, "middle", "name"))
    y_label = ", ".join(filter(None, (y.axis.label, "log scale" if y.log else "")))
    parts.append(_text(y_label, 2.0, top - 10, "start", "name"))
    return Markup("").join(parts)


def _text(
    label: str, x: float, y: float, anchor: str, class_: str | None = None
) -> Markup:
    text = formats.shorten(label, 50)
    return tag("text", text, class_=class_, x=x, y=y, text_anchor=anchor)
