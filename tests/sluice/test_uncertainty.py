"""How sure a metric is, and what may be chance."""

import pytest

from sluice.uncertainty import (
    SliceEstimates,
    Uncertainty,
    examples_to_decide,
    may_be_chance,
    wilson,
)

pytestmark = pytest.mark.unit


# R. G. Newcombe, Two-sided confidence intervals for the single proportion, Statistics
# in Medicine 17 (1998), table I, method 3.
@pytest.mark.parametrize(
    ("successes", "total", "expected"),
    [
        (81, 263, (0.2553, 0.3662)),
        (15, 148, (0.0624, 0.1605)),
        (0, 20, (0.0, 0.1611)),
        (1, 29, (0.0061, 0.1718)),
    ],
)
def test_wilsons_interval_is_the_published_one(successes, total, expected):
    assert wilson(successes, total) == pytest.approx(expected, abs=5e-5)


def test_a_share_counts_errors_and_a_value_of_another_metric_has_no_interval():
    """Keras computes in single precision; the bounds stay around what TFMA measured."""
    known = Uncertainty(0.93, (-0.07, 0.04), of=100)
    found = known.estimate(0.9300000071525574)
    assert found is not None
    assert (found.errors, found.total) == (7, 100)
    assert (found.low, found.high) == pytest.approx((0.86, 0.97))
    estimates = SliceEstimates(metrics={"accuracy": known})
    assert estimates.known("accuracy", 0.93) is known
    assert estimates.known("accuracy", 0.8) is None


@pytest.mark.parametrize(
    ("value", "sign", "is_better"),
    [(0.53, 1, False), (0.56, 1, True), (0.44, 1, False), (0.44, -1, True)],
)
def test_better_than_the_reference_is_beyond_chance(value, sign, is_better):
    known = Uncertainty(
        value, (-0.1, 0.1), reference=0.5, gain=(-0.04, 0.04), sign=sign
    )
    assert known.beats_reference(value) is is_better


@pytest.mark.parametrize(
    ("delta", "examples", "is_chance"),
    [(-0.01, 300, True), (-0.03, 300, False), (-0.03, 29, True), (0.03, 300, False)],
)
def test_a_difference_may_be_chance(delta, examples, is_chance):
    assert may_be_chance(delta, (-0.02, 0.02), examples) is is_chance


def test_a_small_unit_makes_no_chance():
    """Found: differences below 0.0005 were taken for rounding, whatever the unit."""
    assert not may_be_chance(-0.0003, (-0.0001, 0.0001), 300)


def test_more_examples_decide():
    """A distance of a third of the interval needs nine times as many."""
    needed = examples_to_decide(0.6, (0.57, 0.66), 0.59, 100)
    assert needed == pytest.approx(900)
    assert examples_to_decide(0.6, (0.57, 0.66), 0.62, 100) == pytest.approx(900)
