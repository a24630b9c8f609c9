"""Reads an encoded image's format, size and channels without decoding it."""

from __future__ import annotations

import io
from typing import NamedTuple

from PIL import Image

# Pillow would refuse to open a large image; what is read here goes through limits.
Image.MAX_IMAGE_PIXELS = None
_MAGIC = {
    b"\x89PNG\r\n\x1a\n": "png",
    b"\xff\xd8\xff": "jpeg",
    b"BM": "bmp",
    b"GIF8": "gif",
}
# Modes that decode to another number of channels than they have bands.
_CHANNELS = {"P": 3, "CMYK": 3}


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
    try:
        image = Image.open(io.BytesIO(data), formats=[name])
    except Exception:  # Pillow raises nearly anything for a damaged image.
        return None if name == "bmp" else ImageHeader(name, 0, 0, 0)
    channels = _CHANNELS.get(image.mode, len(image.getbands()))
    return ImageHeader(name, *image.size, 3 if name == "gif" else channels)
