"""SVG elements as markup; every text and attribute is escaped.

Charts have no ids, scripts, styles or colours of their own: a page may hold thousands
of them, its content-security policy forbids inline styles, and ``charts.css`` colours
classes by custom properties, in light and dark.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

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
    width: float, height: float, title: str, description: str, *children: Markup
) -> Markup:
    """Returns an ``<svg>`` that a screen reader announces as one image.

    One wider than ``WIDTH`` has the class ``wide``: on a phone, it has to scroll.
    """
    return tag(
        "svg",
        tag("desc", formats.shorten(description, 2000)),
        *children,
        class_="chart wide" if width > WIDTH else "chart",
        viewBox=f"0 0 {number(width)} {number(height)}",
        width=width,
        height=height,
        role="img",
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
