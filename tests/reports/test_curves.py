"""Curves of a classifier, against TFMA's own areas and counts by hand."""

import xml.etree.ElementTree as ET

import pytest

from reports.evaluation import HISTOGRAM, OVERALL, read_metrics
from reports.sections.curves import draw

pytestmark = pytest.mark.unit


def test_areas_and_rings_of_taxi(taxi):
    (document,) = taxi().documents("metrics")
    overall = [x for x in read_metrics(document) if x.slice == OVERALL]
    histograms = {x.model: x.array for x in overall if x.name == HISTOGRAM}
    tfma = {x.model: x.value for x in overall if x.name == "auc" and x.value}
    charts = dict(draw(histograms, True))
    title = next(title for title in charts if title.startswith("ROC"))
    shown = float(title.partition("candidate ")[2][:4])
    assert title.startswith("ROC: area candidate 0.95, baseline 0.95")
    assert shown == pytest.approx(tfma["candidate"], abs=0.005)
    svg = ET.fromstring(str(charts[title]))
    ring = svg.find(".//circle[@class='ring']/title")
    # 416 of 464 positives and 182 of 1,786 negatives from 0.5 on.
    assert ring is not None and ring.text == "candidate: 0.8966 at 0.1019"
    (axis,) = svg.findall(".//line[@class='axis']")
    ticks = [float(x.attrib["y1"]) for x in svg.findall(".//line[@class='grid']")]
    width = float(axis.attrib["x2"]) - float(axis.attrib["x1"])
    assert width == pytest.approx(max(ticks) - min(ticks), abs=0.5)


def test_calibration_error_is_the_weighted_distance_of_ten_bins():
    wrong, right = [0.0] * 100, [0.0] * 100
    wrong[84], right[84] = 10.0, 90.0  # 90 % right at 84.5 %: off by 0.055
    wrong[25], right[25] = 50.0, 50.0  # 50 % right at 25.5 %: off by 0.245
    expected = (100 * 0.055 + 100 * 0.245) / 200
    assert _error(wrong + right) == pytest.approx(expected)
    # Of one bin, what is too high and what is too low cancels.
    wrong[26], right[26] = 99.0, 1.0
    high = abs((50 + 1) - (100 * 0.255 + 100 * 0.265))
    assert _error(wrong + right) == pytest.approx((5.5 + high) / 300, abs=5e-5)


def _error(histogram):
    ((title, _),) = draw({"candidate": histogram}, False)
    return float(title.removeprefix("Calibration: expected error candidate "))


def test_rare_positives_have_no_area():
    """All probabilities are in two of the hundred steps."""
    histogram = [9_000.0, 900.0, *[0.0] * 98, 20.0, 20.0, *[0.0] * 98]
    titles = [title for title, _ in draw({"candidate": histogram}, True)]
    assert titles[0] == "ROC: most probabilities are too close together for an area"


def test_few_heavy_examples_are_no_point_of_calibration():
    """Five examples with a weight of 100."""
    histogram = [*[0.0] * 100, *[0.0] * 70, 500.0, *[0.0] * 29]
    assert draw({"candidate": histogram}, False)
    assert not draw({"candidate": histogram}, False, effective=5.0)


def test_a_slice_of_one_class_has_no_curve_of_rates():
    histogram = [5.0, *[0.0] * 199]
    assert draw({"a": histogram}, True) == []
    histogram[0] = 50.0
    titles = [title for title, _ in draw({"a": histogram}, True)]
    assert titles == ["Calibration: expected error a 0.0050"]
