"""Arrays as PNGs: every pixel survives, gray and RGB."""

from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from PIL import Image

from sample_data.image_array import ImageArray
from sluice.tfrecords.parse_tf_example import parse

pytestmark = pytest.mark.unit

SIDES = st.integers(1, 9)
GRAY = st.tuples(st.integers(1, 3), SIDES, SIDES)
RGB = st.tuples(st.integers(1, 3), SIDES, SIDES, st.just(3))


@settings(deadline=None)
@given(arrays.arrays(np.uint8, GRAY | RGB), st.integers(-(2**63), 2**63 - 1))
def test_what_is_decoded_is_what_was_encoded(pixels, label):
    records = ImageArray(pixels, np.full(len(pixels), label))

    assert len(records) == len(pixels)
    for position, expected in enumerate(pixels):
        features = parse(records[position]).features.feature
        (image,) = features["image"].bytes_list.value
        assert np.array_equal(np.asarray(Image.open(io.BytesIO(image))), expected)
        assert list(features["label"].int64_list.value) == [label]


def test_planes_that_are_not_contiguous():
    planes = np.arange(2 * 3 * 4 * 4, dtype=np.uint8).reshape(2, 3, 4, 4)
    records = ImageArray(planes.transpose(0, 2, 3, 1), np.zeros(2, np.uint8))
    (image,) = parse(records[1]).features.feature["image"].bytes_list.value

    decoded = np.asarray(Image.open(io.BytesIO(image)))
    assert np.array_equal(decoded.transpose(2, 0, 1), planes[1])
