"""Curves of a classifier, against counts by hand."""

import re

import pytest

from reports.sections.curves import draw

pytestmark = pytest.mark.unit


def test_calibration_error_is_the_weighted_distance_of_ten_bins():
    wrong, right = [0.0] * 100, [0.0] * 100
    wrong[84], right[84] = 10.0, 90.0  # 90 % right at 84.5 %: off by 0.055
    wrong[25], right[25] = 50.0, 50.0  # 50 % right at 25.5 %: off by 0.245
    expected = (100 * 0.055 + 100 * 0.245) / 200
    assert _error(wrong + right) == pytest.approx(expected)
    # What is too high and what is too low in one bin cancels.
    wrong[26], right[26] = 99.0, 1.0
    high = abs((50 + 1) - (100 * 0.255 + 100 * 0.265))
    assert _error(wrong + right) == pytest.approx((5.5 + high) / 300, abs=5e-5)


def _error(histogram):
    ((title, _),) = draw({"candidate": histogram}, False)
    return float(title.removeprefix("Calibration: expected error candidate "))


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


@pytest.mark.parametrize(("threshold", "rings"), [(0.004, 0), (0.006, 2), (0.5, 2)])
def test_a_threshold_between_the_steps_has_no_ring(threshold, rings):
    """Found: the ring of a threshold of 0.002 was drawn at 0.01."""
    histogram = [30.0, *[1.0] * 99, 2.0, *[1.0] * 99]
    charts = draw({"candidate": histogram}, True, None, {"candidate": threshold})
    assert sum("ring" in chart for _, chart in charts) == rings


def test_the_prevalence_is_drawn_beside_precision():
    negatives, positives = [60.0, *[0.0] * 99], [*[0.0] * 99, 20.0]
    titles, charts = zip(*draw({"a": [*negatives, *positives]}, True), strict=True)
    chart = charts[[title.startswith("Precision") for title in titles].index(True)]
    (at,) = re.findall(r'class="reference" d="M[\d.]+ ([\d.]+)L', chart)
    zero, _, one = map(float, re.findall(r'class="grid".*?y1="([\d.]+)"', chart))
    assert (zero - float(at)) / (zero - one) == pytest.approx(0.25, abs=0.005)


def test_the_curve_of_precision_starts_at_recall_0():
    """Half of the positives have the highest probability of all: recall 0.5."""
    negatives, positives = [0.0] * 100, [0.0] * 100
    negatives[0], positives[70], positives[80] = 60.0, 10.0, 10.0
    chart = dict(draw({"a": [*negatives, *positives]}, True))["Precision-recall"]
    left, top = re.findall(r'class="grid" x1="([\d.]+)".*?y1="([\d.]+)"', chart)[-1]
    assert f'class="line" d="M{left} {top}L' in chart
