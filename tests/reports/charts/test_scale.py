"""Scales: ticks, labels and coordinates."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reports.charts.scale import Axis, make_scale

pytestmark = pytest.mark.unit

NUMBERS = st.floats(allow_nan=True, allow_infinity=True)


def labels(axis: Axis, *values: float) -> list[str]:
    return [label for _, label in make_scale(axis, values, 0.0, 100.0).ticks]


@pytest.mark.parametrize(
    ("axis", "values", "expected"),
    [
        (Axis(), (0.0, 9.3), ["0", "5", "10"]),
        (Axis(), (0.19, 0.6), ["0.0", "0.2", "0.4", "0.6"]),
        (Axis(), (0, 24_000), ["0", "10,000", "20,000", "30,000"]),
        (Axis(), (0, 3e6), ["0", "1e6", "2e6", "3e6"]),
        (Axis(), (0, 2e-6), ["0", "5e-7", "1e-6", "1.5e-6", "2e-6"]),
        (Axis(percent=True, low=0.0), (0.31,), ["0 %", "10 %", "20 %", "30 %", "40 %"]),
        (Axis(whole=True), (1, 2, 3), ["1", "2", "3"]),
        (Axis(whole=True), (1, 1), ["1"]),
        (Axis(low=0.0, high=1.0), (), ["0.0", "0.5", "1.0"]),
        (Axis(log=True), (0.02, 5.0), ["0.01", "0.1", "1", "10"]),
        (Axis(log=True, percent=True), (0.002, 1.0), ["0.1 %", "1 %", "10 %", "100 %"]),
        (Axis(log=True), (0.0, -1.0), ["-1.0", "-0.5", "0.0"]),
        (Axis(), (7.0,), ["6.0", "6.5", "7.0", "7.5", "8.0"]),
        (Axis(), (), ["0.0", "0.5", "1.0"]),
    ],
)
def test_ticks_are_round_numbers(axis, values, expected):
    assert labels(axis, *values) == expected


def test_values_map_linearly_or_by_their_logarithm():
    linear = make_scale(Axis(), [0.0, 10.0], 200.0, 0.0)
    assert [linear.at(value) for value in (0.0, 2.5, 10.0)] == [200.0, 150.0, 0.0]
    log = make_scale(Axis(log=True), [1.0, 100.0], 0.0, 100.0)
    assert [log.at(value) for value in (1.0, 10.0, 100.0)] == [0.0, 50.0, 100.0]


def test_a_fixed_range_clips_values():
    scale = make_scale(Axis(low=0.0, high=1.0), [-3.0, 7.0], 0.0, 10.0)
    assert [scale.at(value) for value in (-3.0, 0.5, 7.0)] == [0.0, 5.0, 10.0]


@given(st.lists(NUMBERS, max_size=6), st.booleans(), st.booleans())
def test_any_values_have_a_finite_scale(values, log, whole):
    scale = make_scale(Axis(log=log, whole=whole), values, 0.0, 100.0)

    assert scale.low < scale.high
    assert len(scale.ticks) <= 12
    places = [scale.at(value) for value, _ in scale.ticks]
    assert places == sorted(places)
    for value in itertools.chain(values, [scale.low, scale.high]):
        if math.isfinite(value):
            assert -1e-6 <= scale.at(value) <= 100.0 + 1e-6
