"""Distributions: histograms and the most frequent values, several data sets in one.

Data sets have different sizes, so heights are shares of each one's values. All of them
are counted on the same edges.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

import numpy as np
from markupsafe import Markup

from reports import formats
from reports.charts.svg import (
    BOTTOM,
    CHAR_WIDTH,
    WIDTH,
    Axis,
    Scale,
    draw_axes,
    image,
    key,
    left_margin,
    make_scale,
    number,
    path,
    tag,
)

_HEIGHT = 182.0
_TOP = 22.0
_NAME_CHARS = 18
_ROW = 20.0
_BARS = 10
# Up to so many whole numbers have a bar each.
MAX_WHOLE = 31
# Values are skewed if more of them would be in one of the bars of the same width.
_SKEWED = 0.5


@dataclass(frozen=True)
class Distribution:
    """How the values of one data set are distributed.

    Attributes:
      name: of the data set.
      x: values, ascending and finite.
      below: the share of all values that is at most each; between them, values are
        taken to be spread evenly.
      style: which of the five dashes and colours, from 0.
    """

    name: str
    x: Sequence[float]
    below: Sequence[float]
    style: int = 0

    def shares(self, edges: Sequence[float]) -> list[float]:
        """Returns the share between edges; the outermost hold what is beyond them."""
        inner = np.interp(edges[1:-1], self.x, self.below)
        return np.diff([self.below[0], *inner, self.below[-1]]).tolist()


def histogram_chart(
    title: str,
    data: Sequence[Distribution],
    *,
    is_whole: bool = False,
    edges: Sequence[float] = (),
    label: str = "",
) -> Markup:
    """Returns one chart of all data sets: the first filled, the others as outlines.

    Args:
      title: read by a screen reader.
      data: at least one data set with values.
      is_whole: whether all values are whole numbers.
      edges: of the bars; by default they are chosen.
      label: of the horizontal axis.
    """
    scale = ""
    if not edges:
        edges, scale = common_edges(data, is_whole=is_whole)
    shares = [item.shares(edges) for item in data]
    names, top = key([(item.name, item.style) for item in data], is_filled=True)
    height = _HEIGHT + top
    axis = Axis("share of values", low=0.0, percent=True)
    y = make_scale(axis, chain(*shares), height - BOTTOM, top + _TOP)
    half = 0.5 if is_whole else 0.0
    # An edge between whole numbers is labelled by the last that is below it.
    labels = [max(edge - half, edges[0] + half) for edge in edges]
    texts = [_text(x) for x in labels] if scale else []
    ends = Axis(scale or label, edges[0], edges[-1], whole=is_whole, texts=texts)
    x = make_scale(ends, edges, left_margin(y), WIDTH - 14)
    places = range(len(edges)) if scale else edges
    ranges = _ranges(edges, data, is_whole)
    parts = [names, draw_axes(x, y)]
    for item, row in zip(data, shares, strict=True):
        class_ = "filled" if item is data[0] else "line"
        outline = tag("path", class_=class_, d=_outline(places, row, x, y))
        parts.append(tag("g", outline, class_=f"s{item.style}"))
    for i, (low, high) in enumerate(pairwise(places)):
        found = ((item.name, row[i]) for item, row in zip(data, shares, strict=True))
        lines = (f"{name}: {formats.percent(share)}" for name, share in found)
        column = {"x": x.at(low), "width": x.at(high) - x.at(low)}
        hint = tag("title", "\n".join([ranges[i], *lines]))
        size = {"y": y.end, "height": y.start - y.end}
        parts.append(tag("rect", hint, class_="hover", **column, **size))
    summary = "; ".join(
        f"{item.name}: {formats.percent(max(row))} of the values are "
        f"{ranges[row.index(max(row))]}"
        for item, row in zip(data, shares, strict=True)
    )
    return image(WIDTH, height, title, summary, *parts)


def common_edges(
    data: Sequence[Distribution], *, is_whole: bool
) -> tuple[list[float], str]:
    """Returns edges of bars over all values, and the name of their scale.

    Bars have the same width, and no name. If most values were in one of them, the edges
    are quantiles of the first data set. Edges of whole numbers are between them, and
    few have a bar each.
    """
    low, high = min(item.x[0] for item in data), max(item.x[-1] for item in data)
    linear, first = _edges(low, high, is_whole), data[0]
    if len(linear) <= 2 or (is_whole and high - low <= MAX_WHOLE):
        return linear, ""
    tenths = np.linspace(0.0, 1.0, _BARS + 1)
    quantiles = np.interp(tenths[1:-1], first.below, first.x)
    edges = [low, *quantiles.tolist(), high]
    unique = {math.floor(x) + 0.5 for x in edges} if is_whole else _round(edges)
    choices = [(linear, ""), (sorted(unique), f"quantiles of {first.name}")]
    return min(choices, key=lambda item: max(_SKEWED, *first.shares(item[0])))


def _edges(low: float, high: float, is_whole: bool) -> list[float]:
    if is_whole:
        low, high = math.floor(low) + 0.5, math.floor(high) + 0.5
        high = max(high, low + 1)
        step = 1 if high - low <= MAX_WHOLE else math.ceil((high - low) / _BARS)
        return np.arange(low, high + step, step).tolist()
    if not high - low > max(abs(low), abs(high)) * 1e-9:
        pad = abs(low) * 0.1 or 0.5
        return [low - pad, low + pad]
    return sorted(_round(np.linspace(low, high, _BARS + 1).tolist()))


def _round(edges: Sequence[float]) -> set[float]:
    """Rounds edges to the digits that tell neighbours apart, so that labels hold."""
    gaps = [high - low for low, high in pairwise(edges)]
    narrow = map(min, [gaps[0], *gaps], [*gaps, gaps[-1]])
    decimals = [min(1 - math.floor(math.log10(gap or 1.0)), 300) for gap in narrow]
    inner = [*map(round, edges, decimals)][1:-1]
    low = math.floor(edges[0] * 10.0 ** decimals[0]) / 10.0 ** decimals[0]
    high = math.ceil(edges[-1] * 10.0 ** decimals[-1]) / 10.0 ** decimals[-1]
    return {low, *inner, high}


def _ranges(
    edges: Sequence[float], data: Sequence[Distribution], is_whole: bool
) -> list[str]:
    """Returns the values of each bar: ``0.1 to 0.2``, or ``7``."""
    low, high = min(item.x[0] for item in data), max(item.x[-1] for item in data)
    if low == high:
        return [formats.number(low)]
    half = 0.5 if is_whole else 0.0
    pairs = [(_text(a + half), _text(b - half)) for a, b in pairwise(edges)]
    return [a if a == b else f"{a} to {b}" for a, b in pairs]


def _text(edge: float) -> str:
    return f"{edge:,.12g}"


def _outline(
    edges: Sequence[float], shares: Sequence[float], x: Scale, y: Scale
) -> str:
    points = [(x.at(edges[0]), y.start)]
    for (low, high), share in zip(pairwise(edges), shares, strict=True):
        points += [(x.at(low), y.at(share)), (x.at(high), y.at(share))]
    return path([*points, (x.at(edges[-1]), y.start)])


def top_values_chart(
    title: str,
    values: Sequence[str],
    data: Sequence[tuple[str, int, Mapping[str, float]]],
) -> Markup:
    """Returns horizontal bars: the first data set's, with a line for each other one.

    Args:
      title: read by a screen reader.
      values: those to show, in their order.
      data: name, style and the share of each value of the data sets; a value without a
        share has no bar.
    """
    names, top = key([(name, style) for name, style, _ in data], is_filled=True)
    shares = [shown.get(value, 0.0) for _, _, shown in data for value in values]
    widest = max((len(formats.percent(share)) for share in shares), default=0)
    longest = max((min(len(value), _NAME_CHARS) for value in values), default=0)
    left, right = longest * CHAR_WIDTH + 12, WIDTH - max(6, widest) * CHAR_WIDTH - 9
    x = make_scale(Axis(low=0.0), shares, left, right)
    parts = [names]
    for i, value in enumerate(values):
        y = top + i * _ROW
        shown = [(name, style, has[value]) for name, style, has in data if value in has]
        lines = (f"{name}: {formats.percent(share)}" for name, _, share in shown)
        place = {"x": left - 6, "y": y + 13, "text_anchor": "end"}
        row = [
            tag("title", "\n".join([value, *lines])),
            tag("text", formats.shorten(value, _NAME_CHARS), **place),
        ]
        for name, style, share in shown:
            if name == data[0][0]:
                size = {"x": left, "y": y + 3, "height": _ROW - 6}
                bar = tag("rect", class_="bar", width=x.at(share) - left, **size)
            else:
                line = f"M{number(x.at(share))} {number(y + 1)}v{number(_ROW - 2)}"
                bar = tag("path", class_="line", d=line)
            row.append(tag("g", bar, class_=f"s{style}"))
        if shown:
            end = max(x.at(share) for _, _, share in shown) + 5
            text = formats.percent(shown[0][2])
            row.append(tag("text", text, class_="value", x=end, y=y + 13))
        parts.append(tag("g", *row))
    summary = ", ".join(
        f"{formats.shorten(value, 60)} {formats.percent(data[0][2].get(value))}"
        for value in values[:5]
    )
    height = top + max(len(values), 1) * _ROW
    return image(WIDTH, height, title, summary or "no values", *parts)
