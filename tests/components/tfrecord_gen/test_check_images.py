"""Limits of images, and the reasons for rejected ones.

``test_images_as_tensorflow.py`` compares accepted images with TensorFlow's decoder.
"""

from __future__ import annotations

import io
import resource
import struct
import time
import zlib

import numpy as np
import pytest
from PIL import Image

from components.tfrecord_gen.check_images import check_image, check_images
from components.tfrecord_gen.settings import ImageCheck
from sample_data.tf_example import encode

ANY = ImageCheck(feature="image")
GIFS = ImageCheck(feature="image", formats=("gif",))


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


def gif(*frames, screen=(1, 1)):
    """A GIF that declares frames of these sizes and fills none of them."""
    palette = bytes(6)
    parts = [b"GIF89a", struct.pack("<HHBBB", *screen, 0x80, 0, 0), palette]
    for width, height in frames:
        parts += [b"\x21\xf9\x04", bytes(4), b"\x00", b"\x2c"]
        parts += [struct.pack("<HHHHB", 0, 0, width, height, 0), b"\x02\x02\x44\x01\0"]
    return b"".join(parts) + b"\x3b"


@pytest.mark.tf
def test_the_reason_is_tensorflow_s_own():
    data = encoded("PNG")

    assert check_image(data[:500], ANY) == (
        "a PNG image that does not decode with channels=3: Invalid PNG data, size 500"
    )
    assert check_image(encoded("BMP"), ImageCheck(feature="i", decoded_channels=1)) == (
        "a BMP image that does not decode with channels=1: "
        "`channels` must be 0, 3 or 4 for BMP, but got 1"
    )


@pytest.mark.tf
def test_of_a_sensitive_feature_no_reason_is_told():
    check = ImageCheck(feature="image", is_sensitive=True)

    assert check_image(encoded("PNG")[:60], check) == (
        "a PNG image that does not decode with channels=3"
    )


@pytest.mark.unit
def test_of_a_sensitive_feature_no_byte_is_shown():
    reason = check_image(b"a name", ImageCheck(feature="i", is_sensitive=True))

    assert reason == "not a PNG or JPEG or BMP image"


@pytest.mark.unit
@pytest.mark.parametrize("kind", ["PNG", "JPEG", "BMP"])
def test_a_header_cut_short(kind):
    assert check_image(encoded(kind)[:19], ANY) == (
        f"a {kind} image that does not decode: its header cannot be read"
    )


@pytest.mark.unit
def test_a_png_bomb_is_refused_before_it_is_decoded():
    started = time.perf_counter()

    reasons = [check_image(bomb(w, h), ANY) for w, h in ((60_000, 60_000), (20_000, 9))]

    assert time.perf_counter() - started < 1
    assert reasons[0] == (
        "a PNG image of 60,000 x 60,000 pixels; the longest side allowed is 16,384"
    )
    assert reasons[1] == (
        "a PNG image of 20,000 x 9 pixels; the longest side allowed is 16,384"
    )
    assert check_image(bomb(8000, 8000), ANY) == (
        "a PNG image of 8,000 x 8,000 pixels; at most 50,000,000 are allowed"
    )


@pytest.mark.unit
@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (
            gif((65_535, 65_535)),
            "of 65,535 x 65,535 pixels; the longest side allowed is 16,384",
        ),
        (gif(), "that does not decode: its header cannot be read"),
    ],
)
def test_a_gif_bomb_is_refused_before_it_takes_memory(data, reason):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    assert check_image(data, GIFS) == f"a GIF image {reason}"

    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 10_000


@pytest.mark.unit
def test_only_the_formats_that_are_allowed():
    only = ImageCheck(feature="image", formats=("jpeg",))

    assert check_image(encoded("PNG"), only) == "a PNG image, where JPEG is allowed"
    assert "not a JPEG image; its first bytes: " in str(check_image(b"text", only))
    assert check_image(encoded("GIF", "L"), ANY) == (
        "a GIF image, where PNG or JPEG or BMP is allowed"
    )


@pytest.mark.unit
@pytest.mark.parametrize(
    ("data", "first"), [(b"", "it is empty"), (b"text", "74 65 78")]
)
def test_what_is_no_image(data, first):
    reason = str(check_image(data, ANY))

    assert "not a PNG or JPEG or BMP image" in reason
    assert first in reason


@pytest.mark.unit
@pytest.mark.parametrize(
    ("check", "reason"),
    [
        (
            ImageCheck(feature="i", min_side=31),
            "40 x 30 pixels; the shortest side allowed is 31",
        ),
        (
            ImageCheck(feature="i", max_side=39),
            "40 x 30 pixels; the longest side allowed is 39",
        ),
        (ImageCheck(feature="i", max_pixels=1199), "at most 1,199 are allowed"),
        (ImageCheck(feature="i", channels=1), "a PNG image with 3 channels, not 1"),
    ],
)
def test_limits(check, reason):
    assert reason in str(check_image(encoded("PNG"), check))


@pytest.mark.tf
def test_what_is_just_within_the_limits():
    check = ImageCheck(
        feature="i", min_side=30, max_side=40, max_pixels=1200, channels=3
    )

    assert check_image(encoded("PNG"), check) is None


@pytest.mark.tf
def test_the_features_of_a_record():
    good, bad = encoded("PNG"), b"GIF89a"
    checks = (ImageCheck(feature="a"), ImageCheck(feature="b"))

    assert check_images(encode({"a": [good, good], "c": [bad]}), checks) is None
    assert check_images(encode({"a": [good], "b": [good, bad]}), checks) == (
        "feature 'b': a GIF image, where PNG or JPEG or BMP is allowed"
    )


@pytest.mark.unit
def test_a_feature_that_holds_no_bytes():
    assert check_images(encode({"a": [1, 2]}), (ImageCheck(feature="a"),)) == (
        "feature 'a' contains numbers, not encoded images"
    )
