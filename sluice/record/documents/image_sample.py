"""Decodes an image for the record: brightness, difference hash and thumbnail.

Pillow decodes it, because it scales a JPEG while it decodes. Whether TensorFlow can
decode the image too is checked by the ingestion.
"""

from __future__ import annotations

import base64
import io
from typing import TYPE_CHECKING, Any, NamedTuple

from sluice.tfrecords.image_header import ImageHeader, image_header

if TYPE_CHECKING:
    from PIL.Image import Image

THUMBNAIL_PIXELS = 64
THUMBNAIL_BYTES = 3000
# Larger images are not decoded, which would take seconds and hundreds of megabytes.
MAX_PIXELS = 40_000_000
# Pillow scales a JPEG to at least this size, in powers of two.
_DRAFT = (THUMBNAIL_PIXELS, THUMBNAIL_PIXELS)
_HASH_COLUMNS, _HASH_ROWS = 9, 8
_MIN_CONTRAST = 16
_QUALITIES = (85, 60, 35)


class ImageSample(NamedTuple):
    """A decoded image.

    Attributes:
      header: format, size and channels.
      brightness: mean gray value, 0 to 255.
      gray: 9 x 8 gray values, row by row.
      hash: difference hash of 64 bits; None for an image with hardly any contrast,
        whose hash says nothing.
    """

    header: ImageHeader
    brightness: float
    gray: bytes
    hash: int | None


def is_image(data: object) -> bool:
    """Whether a value begins as an encoded image does."""
    return isinstance(data, bytes) and image_header(data) is not None


def read_image(data: bytes) -> ImageSample | None:
    """Decodes an image; None if that fails, or if it is too large."""
    header = image_header(data)
    if header is None or header.width * header.height > MAX_PIXELS:
        return None
    try:
        from PIL.Image import Resampling

        gray = _open(data, "L").convert("L")
        pixels = gray.resize((_HASH_COLUMNS, _HASH_ROWS), Resampling.BOX).tobytes()
    except Exception:  # Pillow raises nearly anything for a damaged image.
        return None
    return ImageSample(header, sum(pixels) / len(pixels), pixels, _hash(pixels))


def describe_image(data: bytes | None) -> dict[str, Any]:
    """Returns what is known of an image: size, format, and ``data``, the thumbnail."""
    header = image_header(data) if data is not None else None
    return {
        "width": header.width if header else None,
        "height": header.height if header else None,
        "format": header.format if header else None,
        "data": thumbnail(data) if data is not None else None,
    }


def thumbnail(data: bytes) -> str | None:
    """Returns a ``data:`` URI of at most 64 x 64 pixels and 3 kB.

    Encoded anew: what else was in the file, such as a position, is left out.

    Returns:
      None if the image cannot be decoded, or not be made so small.
    """
    header = image_header(data)
    if header is None or header.width * header.height > MAX_PIXELS:
        return None
    try:
        image = _open(data, "RGB")
        image = image.convert("L" if image.mode in ("1", "L") else "RGB")
        image.thumbnail(_DRAFT)
        for quality in (None, *_QUALITIES):
            encoded, kind = io.BytesIO(), "jpeg" if quality else "png"
            image.save(encoded, kind, optimize=True, quality=quality or 0)
            if encoded.tell() <= THUMBNAIL_BYTES:
                text = base64.b64encode(encoded.getvalue()).decode()
                return f"data:image/{kind};base64,{text}"
    except Exception:
        return None
    return None


def _open(data: bytes, mode: str) -> Image:
    from PIL import Image

    image = Image.open(io.BytesIO(data))
    image.draft(mode, _DRAFT)
    return image


def _hash(pixels: bytes) -> int | None:
    """Returns the difference hash: whether each pixel is darker than its neighbour.

    N. Krawetz, "Kind of Like That", 2013:
    https://www.hackerfactor.com/blog/index.php?/archives/529-Kind-of-Like-That.html
    """
    found = 0
    for row in range(0, len(pixels), _HASH_COLUMNS):
        for i in range(row, row + _HASH_COLUMNS - 1):
            found = found << 1 | (pixels[i] < pixels[i + 1])
    return found if max(pixels) - min(pixels) >= _MIN_CONTRAST else None
