"""Encoding tf.Examples without TensorFlow."""

from __future__ import annotations

import pytest

from sample_data import tf_example

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


def test_the_order_of_the_features_does_not_matter():
    reverse = dict(reversed(FEATURES.items()))

    assert list(reverse) != list(FEATURES)
    assert tf_example.encode(reverse) == tf_example.encode(FEATURES)


def test_no_features_are_an_empty_example():
    assert tf_example.encode({}) == b"\x0a\x00"
