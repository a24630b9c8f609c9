"""Differential test: ingestion accepts exactly the images that training decodes.

The reference is the Trainer's ``decode_images`` in a ``tf.data`` pipeline.
"""

from __future__ import annotations

import functools
import io
import random
import struct
import zlib
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from components.tfrecord_gen.scan import check_image
from components.tfrecord_gen.settings import ImageCheck
from pipeline.config import features

pytestmark = pytest.mark.tf

DECODED = (1, 3, 4)
SIDE = 8
# Where we are stricter: TensorFlow is not asked of what is beyond a limit, as the sizes
# may be absurd, nor of a damaged header that Pillow cannot read.
STRICTER = ("are allowed", "side allowed is", "its header cannot be read")


def saved(image: Image.Image, kind: str, **options) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def png(depth: int, colour: int, rows: int = 13, extra: bytes = b"") -> bytes:
    """A PNG of any colour type and depth, with as many rows of its 13 as are said."""

    def chunk(name: bytes, data: bytes) -> bytes:
        body = name + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    samples = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[colour]
    row_bytes = (17 * samples * depth + 7) // 8
    line = b"\0" + random.Random(depth).randbytes(row_bytes)
    palette = chunk(b"PLTE", bytes(range(48)) * 16) if colour == 3 else b""
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", struct.pack(">IIBBBBB", 17, 13, depth, colour, 0, 0, 0))
        + palette
        + extra
        + chunk(b"IDAT", zlib.compress(line * rows))
        + chunk(b"IEND", b"")
    )


@functools.cache
def images() -> dict[str, bytes]:
    """One of every format, colour type, bit depth and packing."""
    found = {
        f"png of colour type {colour}, {depth} bits": png(depth, colour)
        for colour, depths in {
            0: (1, 2, 4, 8, 16),
            2: (8, 16),
            3: (1, 2, 4, 8),
            4: (8, 16),
            6: (8, 16),
        }.items()
        for depth in depths
    }
    pixels = np.random.default_rng(7).integers(0, 256, (13, 17, 3), np.uint8)
    rgb = Image.fromarray(pixels)
    return found | {
        "png, a palette with alpha": saved(
            rgb.quantize(9), "PNG", transparency=bytes(9)
        ),
        "png with half of its rows": png(8, 2, rows=6),
        "png with a row too many": png(8, 2, rows=14),
        "png without rows": png(8, 2, rows=0),
        **{
            f"bmp, {mode}": saved(rgb.convert(mode), "BMP")
            for mode in ("1", "P", "L", "RGB", "RGBA")
        },
        "jpeg, gray": saved(rgb.convert("L"), "JPEG"),
        "jpeg, colour": saved(rgb, "JPEG"),
        "jpeg, progressive": saved(rgb, "JPEG", progressive=True),
        "jpeg, CMYK": saved(rgb.convert("CMYK"), "JPEG"),
        # The first segment ends after 20 bytes.
        "jpeg with a byte between markers": (
            saved(rgb, "JPEG")[:20] + b"\0" + saved(rgb, "JPEG")[20:]
        ),
        "jpeg with fill bytes": b"\xff\xd8\xff\xff" + saved(rgb, "JPEG")[2:],
    }


@pytest.fixture(scope="module", autouse=True)
def _no_graph_outlives_tensorflow():
    yield
    trainer.cache_clear()


@functools.cache
def trainer(channels: int):
    import tensorflow as tf

    from pipeline.training.input.images import decode_images

    feature = features.Image.model_construct(height=SIDE, width=SIDE, channels=channels)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def decode(data):
        batch = {"image_xf": data[:, tf.newaxis]}
        return decode_images(batch, {"image_xf": feature})["image_xf"]

    return decode


def trains(data: bytes, channels: int) -> bool:
    """Whether the Trainer's own input pipeline decodes it."""
    import tensorflow as tf

    try:
        decoded = trainer(channels)(tf.constant([data]))
    except tf.errors.InvalidArgumentError:
        return False
    assert decoded.shape == (1, SIDE, SIDE, channels)
    return True


def reason(data: bytes, channels: int) -> str | None:
    check = ImageCheck.model_validate(
        {"feature": "image", "decoded_channels": channels}
    )
    return check_image(data, check)


def cut(data: bytes) -> Iterator[bytes]:
    for part in (0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.97):
        yield data[: int(part * len(data))]
    for tail in (1, 2, 4, 12, 13):
        yield data[:-tail]


@pytest.mark.parametrize("channels", DECODED)
@pytest.mark.parametrize("name", images())
def test_every_kind_of_image_whole_and_cut(name, channels):
    data = images()[name]
    for part in (data, *cut(data)):
        why = reason(part, channels)
        assert (why is None) == trains(part, channels), (len(part), why)


@settings(max_examples=400, deadline=None)
@given(
    name=st.sampled_from(sorted(images())),
    channels=st.sampled_from(DECODED),
    places=st.lists(st.tuples(st.floats(0, 0.999), st.integers(0, 255)), max_size=3),
    length=st.floats(0, 1) | st.just(1.0),
)
def test_damaged_anywhere(name, channels, places, length):
    data = bytearray(images()[name])
    for place, value in places:
        data[int(place * len(data))] = value
    damaged = bytes(data[: int(length * len(data))])

    why = reason(damaged, channels)

    if why is None or not any(sign in why for sign in STRICTER):
        assert (why is None) == trains(damaged, channels), why
