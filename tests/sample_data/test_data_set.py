"""The shuffle: every record once, in an order that only the seed decides."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sample_data.data_set import shuffled

pytestmark = pytest.mark.unit

RECORDS = [str(number).encode() for number in range(10)]


def test_the_order_never_changes():
    # A constant, so that a change to the order does not go unseen.
    order = b" ".join(shuffled(RECORDS, 17))

    assert order == b"6 9 8 7 2 0 5 4 3 1"


def test_another_seed_gives_another_order():
    assert shuffled(RECORDS, 17) != shuffled(RECORDS, 18)


@given(st.lists(st.binary(max_size=3)), st.integers())
def test_no_record_is_lost_or_doubled(records, seed):
    assert sorted(shuffled(records, seed)) == sorted(records)
