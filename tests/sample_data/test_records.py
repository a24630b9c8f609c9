"""How records are ordered, divided and encoded, without TensorFlow."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sample_data import tf_example
from sample_data.catalog import divide, shuffled_positions

pytestmark = pytest.mark.unit

# tf.train.Example.SerializeToString(deterministic=True) of the features below.
BY_TENSORFLOW = bytes.fromhex(
    "0ab5020a340a05636f756e74122b1a290a270007ffffffffffffffffff017f8001bcd5d9"
    "9b0580808080808080808001ffffffffffffffff7f0a140a0466617265120c120a0a0833"
    "334741000000bf0ae6010a046e616d6512dd010ada010a0b426c756520526962626f6e0a"
    "000ac801" + "78" * 200
)
FEATURES: dict[str, tf_example.Values] = {
    "name": [b"Blue Ribbon", b"", b"x" * 200],
    "fare": [12.45, -0.5],
    "count": [0, 7, -1, 127, 128, 1400269500, -(2**63), 2**63 - 1],
}


def test_the_bytes_are_tensorflows():
    assert tf_example.encode(FEATURES) == BY_TENSORFLOW
    assert tf_example.encode(dict(reversed(FEATURES.items()))) == BY_TENSORFLOW
    assert tf_example.encode({}) == b"\x0a\x00"


def test_the_order_never_changes():
    # A constant, so that a change to the order does not go unseen.
    assert list(shuffled_positions(10, 17)) == [6, 9, 8, 7, 2, 0, 5, 4, 3, 1]
    assert list(shuffled_positions(10, 17)) != list(shuffled_positions(10, 18))


@given(st.integers(0, 1000), st.lists(st.integers(1, 9), min_size=1))
def test_what_is_divided_stays_whole(count, weights):
    shares = divide(count, weights)
    assert [position for share in shares for position in share] == list(range(count))
    for share, weight in zip(shares, weights, strict=True):
        assert abs(len(share) - count * weight / sum(weights)) < 1
