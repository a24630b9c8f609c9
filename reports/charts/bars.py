"""Distributions: histograms and the most frequent values, several data sets in one.

Data sets have different sizes, so heights are shares of each one's values.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain, pairwise
from operator import truediv

from markupsafe import Markup

from reports import formats
from reports.charts.plot_area import BOTTOM, PlotArea, draw_axes, left_margin
from reports.charts.scale import Axis, Scale, clamp, make_scale
from reports.charts.svg import CHAR_WIDTH, WIDTH, image, is_finite, number, path, tag

_HEIGHT = 200.0
_KEY_HEIGHT = 18.0
_NAME_CHARS = 18
_ROW = 20.0
# Bars over fewer whole numbers hold whole ones; of more, an edge between two of them
# changes no bar visibly.
MAX_WHOLE = 1000


@dataclass(frozen=True)
class Histogram:
    """A histogram of one data set.

    Attributes:
      name: of the data set.
      edges: bucket i lies between the edges i and i + 1; numbers, or the record's
        strings for infinities.
      counts: of each bucket.
      style: which of the four dashes and colours, from 0.
      quantiles: edges and counts of more buckets of the same data, such as quantiles.
    """

    name: str
    edges: Sequence[float | str]
    counts: Sequence[float | str]
    style: int = 0
    quantiles: tuple[Sequence[float | str], Sequence[float | str]] | None = None

    def buckets(self) -> list[tuple[float, float, float]]:
        """Returns low, high and count of each bucket with finite edges."""
        return _buckets(self.edges, self.counts)

    def shares_below(self) -> list[tuple[float, float]]:
        """Returns values, ascending, and the share of all values that is below each.

        Between them, values are taken to be spread evenly.
        """
        points = []
        for rows in (self.buckets(), _buckets(*(self.quantiles or ((), ())))):
            total = sum(count for _, _, count in rows)
            below = 0.0
            for low, high, count in rows if total else ():
                points.append((low, below / total))
                below += count
                points.append((high, below / total))
        points.sort()
        # Both are estimates: neither may go down.
        highest = accumulate((share for _, share in points), max)
        return [(x, share) for (x, _), share in zip(points, highest, strict=True)]


def _buckets(
    edges: Sequence[float | str], counts: Sequence[float | str]
) -> list[tuple[float, float, float]]:
    rows = []
    for (low, high), count in zip(pairwise(edges), counts, strict=False):
        if is_finite(low) and is_finite(high) and is_finite(count):
            ends = clamp(float(low)), clamp(float(high))
            rows.append((*ends, max(0.0, clamp(float(count)))))
    return rows


def histogram_chart(title: str, histograms: Sequence[Histogram], x: Axis) -> Markup:
    """Returns one chart of all histograms: the first filled, the others as outlines.

    Histograms with other edges are brought to common ones.

    Args:
      title: read by a screen reader.
      histograms: of the data sets.
      x: the axis; values below its ``low`` and above its ``high`` are not shown, but
        count in the shares.
    """
    known = [item for item in histograms if item.buckets()]
    edges = common_edges(known, x.low, x.high, x.whole)
    heights = shares = [_shares(item, edges) for item in known]
    label, widths = "share of values", [high - low for low, high in pairwise(edges)]
    if _is_whole(edges) and len(set(widths)) > 1:
        # Bars of different widths are compared by their area.
        heights = [[*map(truediv, row, widths)] for row in shares]
        label = "share per whole number"
    y_axis = Axis(label, low=0.0, percent=True)
    top = _KEY_HEIGHT * 2 + 4
    y = make_scale(y_axis, chain(*heights), _HEIGHT - BOTTOM, top)
    area = PlotArea(left_margin(y), top, WIDTH - 14, _HEIGHT - BOTTOM)
    # Edges between whole numbers lie half a number outside of the values.
    low, high = x.low, x.high
    if edges:
        low = edges[0] if low is None else min(low, edges[0])
        high = edges[-1] if high is None else max(high, edges[-1])
    exact = replace(x, low=low, high=high)
    x_scale = make_scale(exact, edges, area.left, area.right)
    parts = [draw_axes(area, x_scale, y, x, y_axis), _key(known)]
    for item, row in zip(known, heights, strict=True):
        filled = "filled" if item is known[0] else "line"
        outline = tag("path", class_=filled, d=_outline(edges, row, x_scale, y, area))
        parts.append(tag("g", outline, class_=f"s{item.style}"))
    parts += _hover(known, shares, edges, x_scale, area)
    summary = "; ".join(
        f"{item.name}: {formats.percent(max(row))} of the values are "
        + _range(*edges[row.index(max(row)) :][:2])
        for item, row in zip(known, shares, strict=True)
        if row
    )
    return image(WIDTH, _HEIGHT, title, summary or "no values", *parts)


def common_edges(
    histograms: Sequence[Histogram],
    at_least: float | None = None,
    at_most: float | None = None,
    whole: bool = False,
) -> list[float]:
    """Returns the edges that all share, or as many equal buckets over all of them.

    Whole numbers below ``MAX_WHOLE`` in number are not cut: the edges are between them.

    Args:
      histograms: with at least one bucket each.
      at_least: where the edges begin; None for the lowest value.
      at_most: where they end; None for the highest value.
      whole: whether all values are whole numbers.
    """
    rows = [item.buckets() for item in histograms]
    if not rows:
        return []
    lowest, highest = min(row[0][0] for row in rows), max(row[-1][1] for row in rows)
    low = lowest if at_least is None else max(lowest, at_least)
    high = highest if at_most is None else min(highest, at_most)
    if not high - low > max(abs(low), abs(high)) * 1e-9:
        pad = abs(low) * 0.1 or 0.5
        return [low - pad, low + pad]
    ours = [[start for start, _, _ in row] + [row[-1][1]] for row in rows]
    first = ours[0]
    is_common = all(edges == first for edges in ours) and len(set(first)) == len(first)
    if is_common and (low, high) == (lowest, highest):
        return first
    count = max(map(len, rows))
    if whole and high - low <= MAX_WHOLE:
        start, end = math.ceil(low) - 0.5, math.floor(high) + 0.5
        is_each = all(b - a == 1.0 for edges in ours for a, b in pairwise(edges))
        step = 1 if is_each else math.ceil((end - start) / count)
        return [*(start + i for i in range(0, round(end - start), step)), end]
    width = (high - low) / count
    return [*(low + i * width for i in range(count)), high]


def _is_whole(edges: Sequence[float]) -> bool:
    """Whether each edge is in the middle between two whole numbers."""
    return all(edge % 1 == 0.5 for edge in edges)


def _range(low: float, high: float) -> str:
    """Returns the values of a bucket: ``0.1 to 0.2``, or whole numbers."""
    if _is_whole((low, high)):
        low, high = low + 0.5, high - 0.5
    texts = dict.fromkeys(map(formats.number, (low, high)))
    return " to ".join(texts)


def _shares(histogram: Histogram, edges: Sequence[float]) -> list[float]:
    """Returns the share of a histogram's values that lies in each common bucket."""
    points = histogram.shares_below()
    below = [_share_below(points, edge) for edge in edges]
    if edges and bisect_right(points, (edges[-1], math.inf)) == len(points):
        below[-1] = 1.0  # The last bucket has its upper edge.
    return [max(0.0, high - low) for low, high in pairwise(below)]


def _share_below(points: Sequence[tuple[float, float]], value: float) -> float:
    i = bisect_left(points, (value, -1.0))
    if i == len(points):
        return 1.0
    x, share = points[i]
    if x == value or i == 0:
        return share
    before, share_before = points[i - 1]
    return share_before + (share - share_before) * (value - before) / (x - before)


def _outline(
    edges: Sequence[float], shares: Sequence[float], x: Scale, y: Scale, area: PlotArea
) -> str:
    points = [(x.at(edges[0]), area.bottom)]
    for (low, high), share in zip(pairwise(edges), shares, strict=True):
        points += [(x.at(low), y.at(share)), (x.at(high), y.at(share))]
    return path([*points, (x.at(edges[-1]), area.bottom)])


def _hover(
    histograms: Sequence[Histogram],
    shares: Sequence[Sequence[float]],
    edges: Sequence[float],
    x: Scale,
    area: PlotArea,
) -> list[Markup]:
    """Returns a transparent column over each bucket, with its numbers as a tooltip."""
    columns = []
    for (low, high), *row in zip(pairwise(edges), *shares, strict=True):
        lines = [_range(low, high)]
        for item, share in zip(histograms, row, strict=True):
            lines.append(f"{item.name}: {formats.percent(share)}")
        title = tag("title", "\n".join(lines))
        place = {"x": x.at(low), "width": x.at(high) - x.at(low)}
        size = {"y": area.top, "height": area.bottom - area.top}
        columns.append(tag("rect", title, class_="hover", **place, **size))
    return columns


def _key(items: Sequence[Histogram | Values]) -> Markup:
    """Returns the names of the data sets, each beside a sample of its look."""
    parts, x = [], WIDTH - 14
    for item in reversed(items):
        name = formats.shorten(item.name, _NAME_CHARS)
        x -= len(name) * CHAR_WIDTH
        class_, end = ("filled", "z") if item is items[0] else ("line", "")
        sample = tag("path", class_=class_, d=f"M{number(x - 22)} 12v-8h16v8{end}")
        text = tag("text", name, x=x, y=12.0)
        parts.append(tag("g", sample, text, class_=f"s{item.style}"))
        x -= 34
    return tag("g", *reversed(parts), class_="key")


@dataclass(frozen=True)
class Values:
    """The shares of the most frequent values of one data set, by value."""

    name: str
    shares: dict[str, float]
    style: int = 0


def top_values_chart(
    title: str, names: Sequence[str], data: Sequence[Values]
) -> Markup:
    """Returns horizontal bars: the first data set's, with a line for each other one.

    Args:
      title: read by a screen reader.
      names: the values to show, in their order.
      data: the data sets; a value without a share has no bar.
    """
    longest = max((min(len(name), _NAME_CHARS) for name in names), default=0)
    top = _KEY_HEIGHT + 6
    axis = Axis("share", low=0.0)
    shares = [item.shares.get(name, 0.0) for item in data for name in names]
    widest = max((len(formats.percent(share)) for share in shares), default=0)
    left, right = longest * CHAR_WIDTH + 12, WIDTH - max(6, widest) * CHAR_WIDTH - 9
    x = make_scale(axis, shares, left, right)
    parts = [_key(data)] if len(data) > 1 else []
    for i, name in enumerate(names):
        y = top + i * _ROW
        found = [(item, item.shares[name]) for item in data if name in item.shares]
        hint = "\n".join([name, *(f"{s.name}: {formats.percent(v)}" for s, v in found)])
        row = [tag("title", hint)]
        label = {"x": left - 6, "y": y + 13, "text_anchor": "end"}
        row.append(tag("text", formats.shorten(name, _NAME_CHARS), **label))
        for item, share in found:
            if item is data[0]:
                size = {"x": left, "y": y + 3, "height": _ROW - 6}
                bar = tag("rect", class_="bar", width=x.at(share) - left, **size)
            else:
                line = f"M{number(x.at(share))} {number(y + 1)}v{number(_ROW - 2)}"
                bar = tag("path", class_="line", d=line)
            row.append(tag("g", bar, class_=f"s{item.style}"))
        if found:
            end = max(x.at(share) for _, share in found)
            value = formats.percent(found[0][1])
            row.append(tag("text", value, class_="value", x=end + 5, y=y + 13))
        parts.append(tag("g", *row))
    summary = ", ".join(
        f"{formats.shorten(name, 60)} {formats.percent(data[0].shares.get(name))}"
        for name in names[:5]
        if data
    )
    height = top + max(len(names), 1) * _ROW
    return image(WIDTH, height, title, summary or "no values", *parts)


def mini_histogram(counts: Sequence[float | str]) -> Markup:
    """Returns bars of the height of text; the numbers have to stand beside them."""
    width, height = 80.0, 18.0
    kept = [float(c) if is_finite(c) else 0.0 for c in counts]
    largest = max(kept, default=0.0)
    step = width / max(len(kept), 1)
    bars = [
        f"M{number(i * step)} {number(height)}v-{number(size)}h{number(step * 0.85)}"
        f"v{number(size)}z"
        for i, count in enumerate(kept)
        if count > 0
        and (size := max(1.0, count / largest * (height - 1)))
        and math.isfinite(size)
    ]
    return tag(
        "svg",
        tag("path", class_="bar s0", d="".join(bars)) if bars else None,
        class_="spark",
        viewBox=f"0 0 {width:g} {height:g}",
        aria_hidden="true",
    )
