"""Charts: the coordinates of what is drawn."""

import re
import xml.etree.ElementTree as ET

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reports.charts.bars import (
    Distribution,
    histogram_chart,
)
from reports.charts.lines import Series, line_chart
from reports.charts.svg import Axis, clamp, is_finite

pytestmark = pytest.mark.unit

NUMBERS = st.one_of(st.floats(), st.none(), st.sampled_from(["NaN", "Infinity"]))
EPOCHS = Axis("epoch", whole=True)


def parse(chart):
    svg = ET.fromstring(str(chart))
    assert svg.attrib["role"] == "img" and svg.attrib["aria-label"]
    assert svg.findtext("desc")
    return svg


def points(path):
    found = re.findall(r"[ML](\S+?) ([^ML]+)", path.attrib["d"])
    return [(float(x), float(y)) for x, y in found]


def by_class(svg, name):
    return [item for item in svg.iter() if name in item.get("class", "").split()]


def tick_place(svg, label, key):
    return next(float(t.attrib[key]) for t in svg.iter("text") if t.text == label)


def hints(svg):
    return [item.findtext("title") for item in by_class(svg, "hover")]


def test_lines_lie_where_the_ticks_say():
    series = [Series("train", [1, 2, 3], [0.8, 0.4, 0.2]), Series("eval", [1], [0], 1)]
    chart = line_chart("Loss", series, EPOCHS, Axis("loss"), mark=(2, "chosen"))
    svg = parse(chart)
    line = by_class(svg, "line")[-1]
    (x1, y1), (x2, y2), (x3, y3) = points(line)
    ticks = [tick_place(svg, label, "x") for label in "123"]
    assert [x1, x2, x3] == pytest.approx(ticks, abs=0.1)
    ticks = [tick_place(svg, label, "y") - 4 for label in ("0.8", "0.4", "0.2")]
    assert [y1, y2, y3] == pytest.approx(ticks, abs=0.1)
    (mark,) = by_class(svg, "mark")
    assert float(next(mark.iter("line")).attrib["x1"]) == pytest.approx(x2)
    names = [x.text for x in by_class(svg, "key")[0].iter("text")]
    assert names == ["train", "eval"]
    assert (svg.findtext("desc") or "").startswith("train: from 0.8000 to 0.2000")


def test_histograms_are_shares_of_each_data_set_on_the_same_edges():
    train = Distribution("train", [0, 10, 20], [0.0, 0.75, 1.0])
    wide = Distribution("eval", [0, 20, 40], [0.0, 0.5, 1.0], 1)
    svg = parse(histogram_chart("Fare", [train, wide]))
    assert len(hints(svg)) == 10
    assert hints(svg)[0] == "0 to 4\ntrain: 30 %\neval: 10 %"
    assert hints(svg)[-1] == "36 to 40\ntrain: 0 %\neval: 10 %"
    _, filled = by_class(svg, "filled")
    top, zero = (tick_place(svg, label, "y") - 4 for label in ("30 %", "0 %"))
    assert points(filled)[1][1] == pytest.approx(top, abs=0.1)
    assert points(filled)[0][1] == pytest.approx(zero, abs=0.1)


def test_an_outlier_does_not_hide_the_others_and_nothing_is_left_out():
    fares = Distribution("a", [0, 10, 20, 90_000], [0.0, 0.5, 0.99, 1.0])
    svg = parse(histogram_chart("Fare", [fares]))
    found = hints(svg)
    assert found[-1].startswith("18.2 to 90,000\n") and found[0].startswith("0 to 2\n")
    texts = [item.text for item in svg.iter("text")]
    assert "quantiles of a" in texts and {"0", "4", "90,000"} <= {*texts}
    shares = [float(re.findall(r"a: (\S+) %", hint)[0]) for hint in found]
    assert sum(shares) == pytest.approx(100, abs=0.5) and max(shares) < 20


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
    x = sorted(clamp(x) for x, _ in pairs if isinstance(x, float) and is_finite(x))
    below = [i / len(x) for i in range(len(x))]
    data = [Distribution("a", x, below)] if x else []
    data.append(Distribution("b", [0, 1], [0.0, 1.0]))
    charts = [
        line_chart("Any", series, Axis(), Axis(log=log), mark=(1.0, "here")),
        histogram_chart("Any", data),
    ]
    for chart in charts:
        assert not re.search(r'="[^"]*(nan|inf)', str(chart))
        ET.fromstring(str(chart))
