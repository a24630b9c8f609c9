"""Images that training could not decode, told before it starts."""

from __future__ import annotations

import io
import resource
import struct
import time
import zlib

import numpy as np
import pytest
from PIL import Image

from components.tfrecord_gen.checking.check_images import check_image, check_images
from components.tfrecord_gen.checking.image_check import ImageCheck
from sample_data.tf_example import encode

pytestmark = pytest.mark.unit

ANY = ImageCheck("image")


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


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "BMP"])
@pytest.mark.parametrize("mode", ["L", "RGB"])
def test_sound_images(kind, mode):
    assert check_image(encoded(kind, mode), ANY) is None


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "BMP"])
@pytest.mark.parametrize("size", [(2, 2), (7, 30), (30, 7)])
def test_narrow_images(kind, size):
    assert check_image(encoded(kind, size=size), ANY) is None


@pytest.mark.parametrize("data", [b"a name", encoded("PNG")[:60]])
def test_of_a_sensitive_feature_nothing_is_told(data):
    reason = check_image(data, ImageCheck("image", is_sensitive=True))

    assert reason in (
        "not a PNG, JPEG or BMP image",
        "a PNG image that does not decode",
    )


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "BMP"])
@pytest.mark.parametrize("part", [0.3, 0.5, 0.9])
def test_an_image_cut_short(kind, part):
    data = encoded(kind)

    reason = check_image(data[: int(part * len(data))], ANY)

    assert reason is not None
    assert f"a {kind} image that does not decode: " in reason


def test_a_flipped_byte_in_a_png():
    data = bytearray(encoded("PNG"))
    data[len(data) // 2] ^= 1

    assert "does not decode" in str(check_image(bytes(data), ANY))


def test_a_png_bomb_is_refused_before_it_is_decoded():
    started = time.perf_counter()

    reasons = [check_image(bomb(w, h), ANY) for w, h in ((60_000, 60_000), (20_000, 9))]

    assert time.perf_counter() - started < 1
    assert reasons[0] == (
        "a PNG image of 3,600,000,000 pixels; at most 50,000,000 are allowed"
    )
    assert reasons[1] == (
        "a PNG image of 20,000 x 9 pixels; the longest side allowed is 16,384"
    )
    assert "at most 50,000,000 are allowed" in str(check_image(bomb(8000, 8000), ANY))


def test_pillow_s_own_limit_is_not_ours():
    roomy = ImageCheck("image", max_pixels=200_000_000)
    limit = Image.MAX_IMAGE_PIXELS

    reason = str(check_image(bomb(14_000, 13_000), roomy))

    assert reason.startswith("a PNG image that does not decode: ")
    assert "limit" not in reason
    assert limit == Image.MAX_IMAGE_PIXELS


def test_a_gif_whatever_its_name():
    gif = encoded("GIF", "L")

    assert check_image(gif, ANY) == "a GIF image, where PNG, JPEG or BMP is allowed"
    assert check_image(gif, ImageCheck("image", formats=("gif",))) is None
    assert check_image(gif[:-40], ImageCheck("image", formats=("gif",)))


def test_a_gif_bomb_is_refused_before_it_takes_memory():
    """Pillow fills a frame of this kind while it opens the file."""
    screen = struct.pack("<HHBBB", 65_535, 65_535, 0x80, 0, 0)
    palette = bytes(6)
    control = b"\x21\xf9\x04" + struct.pack("<BHB", 2 << 2, 0, 0) + b"\x00"
    frame = b"\x2c" + struct.pack("<HHHHB", 0, 0, 65_535, 65_535, 0)
    gif = b"GIF89a" + screen + palette + control + frame + b"\x02\x02\x44\x01\x00\x3b"
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    reason = check_image(gif, ImageCheck("image", formats=("gif",)))

    assert reason == (
        "a GIF image of 4,294,836,225 pixels; at most 50,000,000 are allowed"
    )
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 500_000


def test_only_the_formats_that_are_allowed():
    only = ImageCheck("image", formats=("jpeg",))

    assert check_image(encoded("JPEG"), only) is None
    assert check_image(encoded("PNG"), only) == "a PNG image, where JPEG is allowed"
    assert "not a JPEG image; its first bytes: " in str(check_image(b"text", only))


def test_a_webp():
    data = b"RIFF\x00\x00\x00\x00WEBPVP8 " + bytes(20)

    assert "a WEBP image, where PNG" in str(check_image(data, ANY))


@pytest.mark.parametrize(
    ("data", "first"), [(b"", "it is empty"), (b"text", "74 65 78")]
)
def test_what_is_no_image(data, first):
    reason = str(check_image(data, ANY))

    assert "not a PNG, JPEG or BMP image" in reason
    assert first in reason


@pytest.mark.parametrize(
    ("check", "reason"),
    [
        (
            ImageCheck("i", min_side=31),
            "40 x 30 pixels; the shortest side allowed is 31",
        ),
        (
            ImageCheck("i", max_side=39),
            "40 x 30 pixels; the longest side allowed is 39",
        ),
        (ImageCheck("i", max_pixels=1199), "at most 1,199 are allowed"),
        (ImageCheck("i", channels=1), "a PNG image with 3 channels, not 1"),
        (
            ImageCheck("i", min_side=30, max_side=40, max_pixels=1200, channels=3),
            "None",
        ),
    ],
)
def test_limits(check, reason):
    assert reason in str(check_image(encoded("PNG"), check))


def test_the_features_of_a_record():
    good, bad = encoded("PNG"), b"GIF89a"
    checks = (ImageCheck("a"), ImageCheck("b"))

    assert check_images(encode({"a": [good, good], "c": [bad]}), checks) is None
    assert check_images(encode({"a": [good], "b": [good, bad]}), checks) == (
        "feature 'b': a GIF image, where PNG, JPEG or BMP is allowed"
    )
    assert check_images(encode({"a": [1, 2]}), checks) == (
        "feature 'a' holds numbers, not encoded images"
    )


def test_of_a_sensitive_feature_no_byte_is_shown():
    reason = check_image(b"a name", ImageCheck("i", is_sensitive=True))

    assert reason == "not a PNG, JPEG or BMP image"
