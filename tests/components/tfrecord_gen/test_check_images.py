"""Limits of images, and the reasons for rejected ones.

``test_images_as_tensorflow.py`` compares accepted images with TensorFlow's decoder.
"""

from __future__ import annotations

import io
import math
import struct
import zlib
from typing import Any

import numpy as np
import pytest
from PIL import Image
from pydantic import ValidationError

from components.tfrecord_gen.scan import check_image, check_images
from components.tfrecord_gen.settings import ImageCheck, ImageLimits, PixelsCheck
from sample_data.tf_example import encode
from sluice.tfrecords.parse_tf_example import parse


def encoded(kind, mode="RGB", size=(40, 30)):
    channels = len(Image.new(mode, (1, 1)).getbands())
    shape = (size[1], size[0], channels)
    pixels = np.random.default_rng(1).integers(0, 256, shape, np.uint8)
    target = io.BytesIO()
    Image.fromarray(pixels.squeeze(), mode).save(target, kind)
    return target.getvalue()


def bomb(width, height):
    """A PNG of a few bytes that declares a huge size."""

    def chunk(name, data):
        body = name + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    data = (
        chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")
    )
    return b"\x89PNG\r\n\x1a\n" + data


PNG = encoded("PNG")


@pytest.mark.unit
@pytest.mark.parametrize(
    ("data", "check", "reason"),
    [
        (b"", {}, "not a png or jpeg or bmp image; its first bytes: none, it is empty"),
        (b"text", {}, "not a png or jpeg or bmp image; its first bytes: 74 65 78 74"),
        (b"a name", {"is_sensitive": True}, "not a png or jpeg or bmp image"),
        (PNG, {"formats": ("jpeg",)}, "a png image, where jpeg is allowed"),
        (PNG[:19], {}, "a png image that does not decode: its header cannot be read"),
        (PNG, {"min_side": 31}, "of 40 x 30 pixels; the shortest side allowed is 31"),
        (PNG, {"max_pixels": 1199}, "40 x 30 pixels; at most 1,199 are allowed"),
        (PNG, {"channels": 1}, "a png image with 3 channels, not 1"),
        # Refused before they are decoded.
        (bomb(60_000, 60_000), {}, "60,000 pixels; the longest side allowed is 16,384"),
        (encoded("GIF", "P"), {}, "a gif image, where png or jpeg or bmp is allowed"),
    ],
)
def test_why_an_image_is_refused(data, check, reason):
    found = str(check_image(data, ImageCheck(feature="i", **check))).lower()
    assert found.endswith(reason)


@pytest.mark.tf
def test_the_reason_is_tensorflow_s_own_and_not_told_of_a_sensitive_feature():
    what = "a PNG image that does not decode with channels=3"
    cut = PNG[:500]
    assert check_image(cut, ImageCheck(feature="i")) == (
        f"{what}: Invalid PNG data, size 500"
    )
    assert check_image(cut, ImageCheck(feature="i", is_sensitive=True)) == what
    limits: dict[str, Any] = {
        "min_side": 30,
        "max_side": 40,
        "max_pixels": 1200,
        "channels": 3,
    }
    assert check_image(PNG, ImageCheck(feature="i", **limits)) is None


@pytest.mark.parametrize(
    ("values", "dtype", "why"),
    [
        ([b"abcd"], "uint8", None),
        ([b"abcd", b""], "uint8", "feature 'x': 0 bytes, not the 4 of its pixels"),
        ([1, 2, 3], "uint8", None),
        ([struct.pack("<4f", 0, 1, 2, 3)], "float32", None),
        ([struct.pack("<4f", 0, 1, 2, math.nan)], "float32", "NaN or infinite"),
        ([b"abcd"], "float32", "4 bytes, not the 16 of its pixels"),
    ],
)
def test_raw_pixels(values, dtype, why):
    check = PixelsCheck(feature="x", size=4, dtype=dtype)
    found = check_images(parse(encode({"x": values})), (check,))
    assert found is None if why is None else why in str(found)
    assert check_images(parse(encode({"y": [1]})), (check,)) is None


@pytest.mark.unit
@pytest.mark.parametrize("channels", [True, 1.0, 2])
def test_channels_are_one_of_three_whole_numbers(channels):
    with pytest.raises(ValidationError):
        ImageLimits.model_validate({"channels": channels})
