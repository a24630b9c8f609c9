"""TensorFlow's image decoder, as used in training, serving and ingestion.

Whether an image can be trained on is not told from its header or by another decoder:
Pillow reads BMPs that TensorFlow refuses, and fills in the rows that a PNG lacks.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Mapping
from typing import Any

# The channels that a format decodes to, if at all: a BMP of 1, 4 or 16 bits per pixel
# does not, a CMYK JPEG to 3 alone. All formats decode to 3.
CHANNELS: Mapping[str, tuple[int, ...]] = {
    "png": (1, 3, 4),
    "jpeg": (1, 3),
    "bmp": (3, 4),
    "gif": (3,),
}

_PLACE = re.compile(r"\{\{.*?\}\}\s*")


def decode_image(data: Any, channels: int) -> Any:
    """Returns uint8 pixels ``[height, width, channels]``, of a GIF its first frame.

    Args:
      data: bytes, or a scalar string tensor.
      channels: 1 gray, 3 colour, 4 with alpha.
    """
    import tensorflow as tf

    return tf.io.decode_image(data, channels, expand_animations=False)


def why_undecodable(data: bytes, channels: int) -> str | None:
    """Decodes an image and returns TensorFlow's reason where it cannot, else None.

    This takes the memory of the pixels, and of every frame of a GIF: look first at the
    size that the header declares.
    """
    import tensorflow as tf

    try:
        _decoder(channels, os.getpid())(data)
    except tf.errors.InvalidArgumentError as error:
        return reason_in(error.message)
    return None


def reason_in(message: str) -> str:
    """Returns why an image does not decode, without the names of nodes around it."""
    lines = message.partition("[[")[0].split("\n")
    said = [line.strip() for line in lines if line.strip()]
    return _PLACE.sub("", said[-1] if said else message)


@functools.cache
def _decoder(channels: int, pid: int) -> Callable[[bytes], None]:
    """Returns a function that decodes and forgets; one per process, forked or not.

    A session of its own: TensorFlow's eager runtime would take the memory of the GPUs,
    here beside the training of others, and cannot let go of it.
    """
    import tensorflow as tf

    with tf.Graph().as_default() as graph:
        data = tf.compat.v1.placeholder(tf.string, [])
        pixels = decode_image(data, channels)
    # No thread is started for its operations, and no GPU is looked at.
    config = tf.compat.v1.ConfigProto(
        device_count={"GPU": 0}, inter_op_parallelism_threads=-1
    )
    session = tf.compat.v1.Session(graph=graph, config=config)
    return session.make_callable(pixels.op, [data])
