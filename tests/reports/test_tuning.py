"""The trials of a search on the page: parallel coordinates, a line per trial."""

import re

import pytest

from reports.run_page import render_run
from tests.reports.generated_run import SEARCH

pytestmark = pytest.mark.unit


def _points(page: str, trial: int) -> list[tuple[float, float]]:
    found = re.search(rf'd="M([^"]+)"><title>trial {trial}:', page)
    assert found
    return [(float(x), float(y)) for x, y in (p.split() for p in found[1].split("L"))]


def test_each_trial_is_a_line_through_its_values(run_with):
    page = render_run(run_with({"trials": SEARCH}))
    first, best, failed = (_points(page, number) for number in (1, 2, 3))
    assert (len(first), len(best), len(failed)) == (3, 3, 2), "a failed one ends early"
    rates, units, values = zip(first, best, [*failed, (0.0, 0.0)], strict=True)
    for column in (rates, units):
        low, middle, high = (y for _, y in column)
        # Factors of ten are as far apart, and so are categories.
        assert low > middle > high
        assert low - middle == pytest.approx(middle - high, abs=0.2)
    assert values[0][1] > values[1][1], "more is better, and higher"
    best_line = r'<g class="s0"><path class="line" d="[^"]+"><title>(.*?):'
    (marked,) = re.findall(best_line, page)
    assert marked == "trial 2"
