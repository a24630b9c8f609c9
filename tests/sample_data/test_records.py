"""How records are ordered, divided and encoded, without TensorFlow."""

import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from PIL import Image

from sample_data import tf_example
from sample_data.catalog import divide, shuffled_positions
from sluice.tfrecords.parse_tf_example import parse

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


@given(st.integers(0, 50), st.integers())
def test_no_position_is_lost_or_doubled(count, seed):
    assert sorted(shuffled_positions(count, seed)) == list(range(count))


@given(st.integers(0, 1000), st.lists(st.integers(1, 9), min_size=1))
def test_what_is_divided_stays_whole(count, weights):
    shares = divide(count, weights)
    assert [position for share in shares for position in share] == list(range(count))
    for share, weight in zip(shares, weights, strict=True):
        assert abs(len(share) - count * weight / sum(weights)) < 1


SIDES = st.integers(1, 9)
GRAY = st.tuples(st.integers(1, 3), SIDES, SIDES)
RGB = st.tuples(st.integers(1, 3), SIDES, SIDES, st.just(3))


@settings(deadline=None)
@given(arrays.arrays(np.uint8, GRAY | RGB), st.integers(-(2**63), 2**63 - 1))
def test_every_pixel_of_an_array_survives(pixels, label):
    # Planes that are not contiguous too.
    for source in (pixels, pixels[..., ::-1]):
        records = tf_example.image_records(source, np.full(len(source), label))
        for position, expected in enumerate(source):
            features = parse(records.make(position)).features.feature
            (image,) = features["image"].bytes_list.value
            assert np.array_equal(np.asarray(Image.open(io.BytesIO(image))), expected)
            assert list(features["label"].int64_list.value) == [label]
