"""The shuffle of sample data."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sample_data.data_set import divide, shuffled_positions

pytestmark = pytest.mark.unit


def test_the_order_never_changes():
    # A constant, so that a change to the order does not go unseen.
    assert list(shuffled_positions(10, 17)) == [6, 9, 8, 7, 2, 0, 5, 4, 3, 1]


def test_another_seed_gives_another_order():
    assert list(shuffled_positions(10, 17)) != list(shuffled_positions(10, 18))


@given(st.integers(0, 50), st.integers())
def test_no_position_is_lost_or_doubled(count, seed):
    assert sorted(shuffled_positions(count, seed)) == list(range(count))


def test_the_declared_number_of_records_is_divided_exactly():
    sizes = [len(share) for share in divide(1797, [1200, 297, 300])]

    assert sizes == [1200, 297, 300]


@given(st.integers(0, 1000), st.lists(st.integers(1, 9), min_size=1))
def test_what_is_divided_stays_whole(count, weights):
    shares = divide(count, weights)

    assert [position for share in shares for position in share] == list(range(count))
    for share, weight in zip(shares, weights, strict=True):
        assert abs(len(share) - count * weight / sum(weights)) < 1
