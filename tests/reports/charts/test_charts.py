"""Charts: the coordinates of what is drawn, and that every text is escaped."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markupsafe import Markup

from reports.charts.bars import (
    Histogram,
    Values,
    common_edges,
    histogram_chart,
    mini_histogram,
    top_values_chart,
)
from reports.charts.lines import Mark, Series, line_chart
from reports.charts.scale import Axis
from reports.charts.timeline import Bar, timeline

pytestmark = pytest.mark.unit

HOSTILE = "</title><script>alert(1)</script>\"'&\x00\x1b\u202e" + "x" * 10_000
NUMBERS = st.one_of(st.floats(), st.none(), st.sampled_from(["NaN", "Infinity"]))
EPOCHS = Axis("epoch", whole=True)


def parse(chart: Markup) -> ET.Element:
    svg = ET.fromstring(str(chart))
    assert svg.attrib["role"] == "img" and svg.attrib["aria-label"]
    description = svg.find("desc")
    assert description is not None and description.text
    return svg


def texts(svg: ET.Element) -> list[str]:
    return [item.text or "" for item in svg.iter("text")]


def points(path: ET.Element) -> list[tuple[float, float]]:
    found = re.findall(r"[ML](\S+?) ([^ML]+)", path.attrib["d"])
    return [(float(x), float(y)) for x, y in found]


def by_class(svg: ET.Element, name: str) -> list[ET.Element]:
    return [item for item in svg.iter() if name in item.get("class", "").split()]


def tick_place(svg: ET.Element, label: str, key: str) -> float:
    return next(float(t.attrib[key]) for t in svg.iter("text") if t.text == label)


def test_lines_lie_where_the_ticks_say():
    svg = parse(
        line_chart(
            "Loss",
            [Series("train", [1, 2, 3], [0.8, 0.4, 0.2]), Series("eval", [1], [0], 1)],
            EPOCHS,
            Axis("loss"),
            mark=Mark(2, "chosen"),
        )
    )

    (line,) = by_class(svg, "line")
    (x1, y1), (x2, y2), (x3, y3) = points(line)
    assert [x1, x2, x3] == pytest.approx(
        [tick_place(svg, label, "x") for label in "123"], abs=0.1
    )
    assert [y1, y2, y3] == pytest.approx(
        [tick_place(svg, label, "y") - 4 for label in ("0.8", "0.4", "0.2")], abs=0.1
    )
    (mark,) = by_class(svg, "mark")
    assert float(next(mark.iter("line")).attrib["x1"]) == pytest.approx(x2)
    assert [item.text for item in by_class(svg, "end")] == ["train", "eval"]
    assert (svg.findtext("desc") or "").startswith("train: from 0.8000 to 0.2000")


def test_labels_of_lines_that_end_together_do_not_overlap():
    series = [Series(f"s{i}", [1, 2], [0.0, 0.0], i) for i in range(5)]
    svg = parse(line_chart("Five", series, EPOCHS, Axis("loss")))

    places = sorted(float(item.attrib["y"]) for item in by_class(svg, "end"))
    assert all(b - a >= 14 for a, b in pairwise(places))
    assert places[-1] <= float(svg.attrib["height"])


def test_what_is_no_number_interrupts_a_line():
    y = [1.0, 2.0, None, 3.0, "NaN", 1.0, 2.0]
    svg = parse(line_chart("Gaps", [Series("a", range(7), y)], EPOCHS, Axis()))

    (line,) = by_class(svg, "line")
    assert line.attrib["d"].count("M") == 2
    assert len(list(svg.iter("circle"))) == 5
    assert "2 without a number" in (svg.findtext("desc") or "")


def test_thinned_lines_keep_their_extremes_and_ends():
    y = [0.5] * 10_000
    y[0], y[4321], y[8765], y[-1] = 0.4, 9.0, 0.1, 0.6
    svg = parse(line_chart("Long", [Series("a", range(10_000), y)], EPOCHS, Axis()))

    drawn = points(by_class(svg, "line")[0])
    assert len(drawn) < 1000
    heights = [y for _, y in drawn]
    low, high = max(heights), min(heights)
    assert [low - high, low - heights[0], low - heights[-1]] == pytest.approx(
        [(low - high), (low - high) * 0.3 / 8.9, (low - high) * 0.5 / 8.9], abs=0.2
    )
    assert drawn == sorted(drawn, key=lambda point: point[0])


def test_histograms_are_shares_of_each_data_set():
    svg = parse(
        histogram_chart(
            "Fare",
            [
                Histogram("train", [0, 10, 20], [300, 100]),
                Histogram("eval", [0, 10, 20], [1, 1], 1),
            ],
            Axis("fare"),
        )
    )

    hints = [item.findtext("title") for item in by_class(svg, "hover")]
    assert hints == [
        "0 to 10\ntrain: 75 %\neval: 50 %",
        "10 to 20\ntrain: 25 %\neval: 50 %",
    ]
    _, filled = by_class(svg, "filled")
    top = tick_place(svg, "80 %", "y") - 4
    zero = tick_place(svg, "0 %", "y") - 4
    assert points(filled)[1][1] == pytest.approx(zero + (top - zero) * 75 / 80, abs=0.1)


def test_histograms_with_other_edges_share_common_ones():
    narrow = Histogram("a", [0, 1, 2], [1, 3])
    wide = Histogram("b", [0, 2, 4], [1, 1])
    assert common_edges([narrow, narrow]) == [0, 1, 2]
    assert common_edges([narrow, wide]) == [0, 2, 4]
    svg = parse(histogram_chart("Two", [narrow, wide], Axis()))
    hints = [item.findtext("title") for item in by_class(svg, "hover")]
    assert hints == ["0 to 2\na: 100 %\nb: 50 %", "2 to 4\na: 0 %\nb: 50 %"]


def whole(name: str, edges: list[float], per_number: float) -> Histogram:
    """Returns a histogram in which every whole number is as frequent."""
    counts = [(b - a) * per_number for a, b in pairwise(edges)]
    return Histogram(name, edges, counts)


def test_bars_over_more_whole_numbers_are_not_higher():
    edges = [-0.5, 1.5, 2.5, 3.5, 5.5]
    svg = parse(histogram_chart("Month", [whole("a", edges, 5)], Axis(whole=True)))
    assert "share per whole number" in "".join(svg.itertext())
    hints = [item.findtext("title") for item in by_class(svg, "hover")]
    assert [hint and hint.partition("\n")[0] for hint in hints] == [
        *("0 to 1", "2", "3", "4 to 5")
    ]
    _, filled = by_class(svg, "filled")
    assert len({y for _, y in points(filled)[1:-1]}) == 1


def test_common_edges_do_not_cut_whole_numbers():
    a = whole("a", [-0.5, 1.5, 2.5, 12.5], 5)
    b = whole("b", [-0.5, 3.5, 7.5, 11.5], 7)
    edges = common_edges([a, b], whole=True)
    assert edges == [-0.5, 4.5, 9.5, 12.5]
    # As much where the chart begins at a quantile.
    assert common_edges([a], at_least=1, at_most=7, whole=True) == [0.5, 3.5, 6.5, 7.5]
    each = [whole(name, [i - 0.5 for i in range(5)], 1) for name in "ab"]
    assert common_edges([each[0], whole("c", [0.5, 1.5], 1)], whole=True) == [
        i - 0.5 for i in range(5)
    ]


def test_a_constant_is_one_bar():
    svg = parse(histogram_chart("Five", [Histogram("a", [5, 5], [7])], Axis()))
    (hint,) = [item.findtext("title") for item in by_class(svg, "hover")]
    assert hint == "5\na: 100 %"


def test_infinite_edges_are_left_out():
    histogram = Histogram("a", ["-Infinity", 0, 1, "Infinity"], [5, 2, 5])
    assert histogram.buckets() == [(0.0, 1.0, 2.0)]


def test_top_values_have_a_bar_and_a_line_for_each_other_data_set():
    svg = parse(
        top_values_chart(
            "Payment",
            ["Cash", "Card"],
            [
                Values("train", {"Cash": 0.6, "Card": 0.3}),
                Values("eval", {"Cash": 0.5}, 1),
            ],
        )
    )

    cash, card = by_class(svg, "bar")
    assert float(cash.attrib["width"]) == pytest.approx(
        2 * float(card.attrib["width"]), abs=0.2
    )
    lines = [item for item in by_class(svg, "line") if "z" not in item.attrib["d"]]
    at = float(re.match(r"M(\S+)", lines[-1].attrib["d"])[1])  # type: ignore[index]
    left = float(cash.attrib["x"])
    assert at - left == pytest.approx(float(cash.attrib["width"]) * 5 / 6, abs=0.2)
    assert {"60 %", "30 %"} <= set(texts(svg))


def test_bars_of_a_timeline_lie_between_start_and_end():
    bars = [Bar("Trainer", 0, 20, "20 s", "good"), Bar("Pusher", 20, 40, "20 s")]
    svg = parse(timeline("Run", bars))

    first, second = svg.iter("rect")
    assert float(first.attrib["width"]) == pytest.approx(
        float(second.attrib["width"]), abs=0.1
    )
    end = float(first.attrib["x"]) + float(first.attrib["width"])
    assert end == pytest.approx(float(second.attrib["x"]), abs=0.1)
    assert end == pytest.approx(tick_place(svg, "20.0 s", "x"), abs=0.1)
    assert "row good" in [item.get("class") for item in svg.iter("g")]


def test_every_text_is_escaped_and_short():
    charts = [
        line_chart(
            HOSTILE,
            [Series(HOSTILE, [1], [1]), Series("b", [1], [2])],
            Axis(HOSTILE),
            Axis(HOSTILE),
            mark=Mark(1, HOSTILE),
        ),
        histogram_chart(HOSTILE, [Histogram(HOSTILE, [0, 1], [1])], Axis(HOSTILE)),
        top_values_chart(HOSTILE, [HOSTILE], [Values(HOSTILE, {HOSTILE: 1.0})] * 2),
        timeline(HOSTILE, [Bar(HOSTILE, 0, 1, HOSTILE)]),
    ]
    for chart in charts:
        svg = parse(chart)
        assert not list(svg.iter("script")) and "\u202e" not in chart
        assert max(map(len, texts(svg))) < 100


@example([(0.0, 0.0), (5e-324, 0.0)], [1.0], False)
@example([(-1e308, 0.0), (1e308, 0.0)], [1.0], False)
@given(
    st.lists(st.tuples(NUMBERS, NUMBERS), max_size=5),
    st.lists(NUMBERS, max_size=5),
    st.booleans(),
)
def test_any_numbers_are_drawn_at_finite_coordinates(pairs, values, log):
    series = [
        Series("a", [x for x, _ in pairs], [y for _, y in pairs]),
        Series("b", range(len(values)), values, 1),
    ]
    counts = [value if value is not None else 0 for value in values]
    edges = sorted(x for x, _ in pairs if isinstance(x, float) and x == x)
    histogram = Histogram("a", edges, counts)
    charts = [
        line_chart("Any", series, Axis(), Axis(log=log), mark=Mark(1.0, "here")),
        histogram_chart("Any", [histogram, Histogram("b", [0, 1], [2])], Axis()),
        timeline("Any", [Bar("a", x, y) for x, y in pairs]),
    ]
    for chart in [*charts, mini_histogram(counts)]:
        assert not re.search(r'="[^"]*(nan|inf)', str(chart))
        ET.fromstring(str(chart))


@pytest.mark.parametrize(
    ("edges", "counts"),
    [
        ([0.0, 5e-324], [1.0]),
        ([-1.7e308, 1.7e308], [1.0]),
        ([0.0, 1.0, 2.0], [1.7e308, 1.7e308]),
    ],
)
def test_buckets_at_the_limits_of_floats(edges, counts):
    histograms = [Histogram("a", edges, counts), Histogram("b", [0.0, 1.0], [1.0])]
    chart = str(histogram_chart("Any", histograms, Axis()))
    assert not re.search(r'="[^"]*(nan|inf)', chart)


def test_quantiles_refine_histograms_that_are_brought_to_common_edges():
    """Half of b's first bucket lies in a's; its quantiles say that it is all of it."""
    a = Histogram("a", [0, 1, 2], [1, 1])
    without = Histogram("b", [0, 2, 4], [8, 2])
    refined = Histogram("b", [0, 2, 4], [8, 2], 0, ([0, 0.5, 1, 4], [4, 4, 2]))
    svg = parse(histogram_chart("Two", [a, without], Axis(high=2)))
    hints = [item.findtext("title") for item in by_class(svg, "hover")]
    assert hints == ["0 to 1\na: 50 %\nb: 40 %", "1 to 2\na: 50 %\nb: 40 %"]
    svg = parse(histogram_chart("Two", [a, refined], Axis(high=2)))
    hints = [item.findtext("title") for item in by_class(svg, "hover")]
    assert hints == ["0 to 1\na: 50 %\nb: 80 %", "1 to 2\na: 50 %\nb: 0 %"]
