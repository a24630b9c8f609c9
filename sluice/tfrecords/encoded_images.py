"""Headers of encoded images, and TensorFlow's decoder as training and serving use it.

Format, size and channels are read from the header without decoding: of a PNG here, of
others by Pillow.

Only TensorFlow's decoder tells whether an image can be trained on: Pillow reads BMPs
that TensorFlow rejects, and fills in missing rows of a PNG.
"""

from __future__ import annotations

import atexit
import functools
import io
import os
import re
import struct
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from sluice.patches.tensorflow import make_callable

_MAGIC = {
    b"\x89PNG\r\n\x1a\n": "png",
    b"\xff\xd8\xff": "jpeg",
    b"BM": "bmp",
    b"GIF8": "gif",
}
# By the color type in a PNG's header.
_PNG_CHANNELS = {0: 1, 2: 3, 3: 3, 4: 2, 6: 4}
# Modes that decode to another number of channels than they have bands.
_CHANNELS = {"P": 3, "CMYK": 3}

_PLACE = re.compile(r"\{\{.*?\}\}\s*")


class ImageHeader(NamedTuple):
    """Header of an encoded image; numbers are 0 if it cannot be read.

    Attributes:
      format: ``png``, ``jpeg``, ``gif``, ``bmp`` or ``webp``.
      channels: 1 gray, 2 gray and alpha, 3 RGB, palette or CMYK, 4 RGBA.
    """

    format: str
    width: int
    height: int
    channels: int


def image_format(data: bytes) -> str | None:
    """Returns ``png``, ``jpeg``, ``bmp``, ``gif`` or ``webp``; None for any other.

    ``bmp`` may be wrong: its magic number is only "BM".
    """
    for magic, name in _MAGIC.items():
        if data.startswith(magic):
            return name
    return "webp" if data[:4] == b"RIFF" and data[8:12] == b"WEBP" else None


def image_header(data: bytes) -> ImageHeader | None:
    """Returns the header; None if the bytes are no image of a known format."""
    name = image_format(data)
    if name is None:
        return None
    if name == "png" and data[12:16] == b"IHDR" and len(data) > 25:
        # Pillow takes 30 microseconds, three times as long as decoding a small PNG.
        width, height, _depth, color = struct.unpack_from(">IIBB", data, 16)
        return ImageHeader(name, width, height, _PNG_CHANNELS.get(color, 0))
    from PIL import Image

    # Pillow would refuse to open a large image; what is read goes through limits.
    Image.MAX_IMAGE_PIXELS = None
    try:
        image = Image.open(io.BytesIO(data), formats=[name])
    except Exception:  # Pillow raises nearly anything for a damaged image.
        return None if name == "bmp" else ImageHeader(name, 0, 0, 0)
    channels = _CHANNELS.get(image.mode, len(image.getbands()))
    return ImageHeader(name, *image.size, channels)


def decode_image(data: Any, channels: int) -> Any:
    """Returns uint8 pixels ``[height, width, channels]``, of a GIF its first frame.

    Args:
      data: bytes, or a scalar string tensor.
      channels: 1 gray, 3 colour, 4 with alpha.
    """
    import tensorflow as tf

    return tf.io.decode_image(data, channels, expand_animations=False)


def why_undecodable(data: bytes, channels: int) -> str | None:
    """Decodes an image; returns TensorFlow's reason if it fails, else None.

    This allocates the pixels: check the size in the header first.
    """
    import tensorflow as tf

    try:
        _decoder(channels, os.getpid())(data)
    except tf.errors.InvalidArgumentError as error:
        return reason_in(error.message)
    return None


def reason_in(message: str) -> str:
    """Returns the reason in TensorFlow's error message, without graph node names."""
    lines = message.partition("[[")[0].split("\n")
    said = [line.strip() for line in lines if line.strip()]
    return _PLACE.sub("", said[-1] if said else message)


@functools.cache
def _decoder(channels: int, pid: int) -> Callable[[bytes], None]:
    """Returns a function that decodes and drops the pixels; one per process.

    It uses a session on the CPU, because TensorFlow's eager runtime would allocate the
    memory of all GPUs until the process ends.
    """
    import tensorflow as tf

    with tf.Graph().as_default() as graph:
        data = tf.compat.v1.placeholder(tf.string, [])
        pixels = decode_image(data, channels)
    # Operations run in the calling thread, without GPUs.
    config = tf.compat.v1.ConfigProto(
        device_count={"GPU": 0}, inter_op_parallelism_threads=-1
    )
    session = tf.compat.v1.Session(graph=graph, config=config)
    decode = make_callable(session, feed=data, target=pixels.op)
    # Before TensorFlow's modules are gone, which releasing it needs.
    atexit.register(_decoder.cache_clear)
    return lambda image: decode(np.asarray(image, object))
