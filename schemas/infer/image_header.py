"""Reads an encoded image's format, size and channels from its first bytes.

Nothing is decoded and nothing after the header is looked at: a header can be right and
the rest damaged. The formats:
https://www.w3.org/TR/png-3/#11IHDR
https://www.w3.org/Graphics/JPEG/itu-t81.pdf (B.2.2, frame header)
https://www.w3.org/Graphics/GIF/spec-gif89a.txt
https://learn.microsoft.com/windows/win32/api/wingdi/ns-wingdi-bitmapinfoheader
https://developers.google.com/speed/webp/docs/riff_container
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from sluice.records.image_format import image_format

# Colour type -> channels; a palette is decoded to RGB.
_PNG_CHANNELS = {0: 1, 2: 3, 3: 3, 4: 2, 6: 4}
# The sizes that the second header of a BMP comes in: "BM" alone begins many a word.
_BMP_HEADERS = (12, 16, 40, 52, 56, 64, 108, 124)
# Start of frame, but for those numbers that mean something else.
_JPEG_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_JPEG_ALONE = frozenset((0x01, *range(0xD0, 0xD8)))


class ImageHeader(NamedTuple):
    """What a header says.

    Attributes:
      format: ``png``, ``jpeg``, ``gif``, ``bmp`` or ``webp``.
      width: in pixels; 0 where the header is cut short.
      height: in pixels; 0 where the header is cut short.
      channels: as decoded: 1 grey, 2 grey and alpha, 3 RGB, 4 RGBA or CMYK.
    """

    format: str
    width: int
    height: int
    channels: int


def image_header(data: bytes) -> ImageHeader | None:
    """Returns the header, None where the bytes begin as no image that is known here."""
    name = image_format(data)
    if name is None or (name == "bmp" and not _has_bmp_header(data)):
        return None
    try:
        return ImageHeader(name, *_READERS[name](data))
    except (struct.error, IndexError):
        return ImageHeader(name, 0, 0, 0)


def _has_bmp_header(data: bytes) -> bool:
    return int.from_bytes(data[14:18], "little") in _BMP_HEADERS


def _png(data: bytes) -> tuple[int, int, int]:
    width, height, _, colour = struct.unpack_from(">IIBB", data, 16)
    return width, height, _PNG_CHANNELS.get(colour, 3)


def _jpeg(data: bytes) -> tuple[int, int, int]:
    at = 2
    while True:
        if data[at] != 0xFF:
            raise IndexError
        marker = data[at + 1]
        if marker == 0xFF:
            at += 1
        elif marker in _JPEG_ALONE:
            at += 2
        elif marker in _JPEG_FRAMES:
            height, width, channels = struct.unpack_from(">HHB", data, at + 5)
            return width, height, channels
        else:
            at += 2 + struct.unpack_from(">H", data, at + 2)[0]


def _gif(data: bytes) -> tuple[int, int, int]:
    width, height = struct.unpack_from("<HH", data, 6)
    return width, height, 3


def _bmp(data: bytes) -> tuple[int, int, int]:
    if data[14] == 12:
        width, height, _, bits = struct.unpack_from("<HHHH", data, 18)
        return width, height, {8: 1, 32: 4}.get(bits, 3)
    width, height = struct.unpack_from("<ii", data, 18)
    bits = struct.unpack_from("<H", data, 28)[0]
    # A negative height means that the rows go from top to bottom.
    return width, abs(height), {8: 1, 32: 4}.get(bits, 3)


def _webp(data: bytes) -> tuple[int, int, int]:
    kind = data[12:16]
    if kind == b"VP8X":
        flags = data[20]
        width = int.from_bytes(data[24:27], "little") + 1
        height = int.from_bytes(data[27:30], "little") + 1
        return width, height, 4 if flags & 0x10 else 3
    if kind == b"VP8L":
        bits = struct.unpack_from("<I", data, 21)[0]
        width, height = (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        return width, height, 4 if bits >> 28 & 1 else 3
    width, height = struct.unpack_from("<HH", data, 26)
    return width & 0x3FFF, height & 0x3FFF, 3


_READERS = {"png": _png, "jpeg": _jpeg, "gif": _gif, "bmp": _bmp, "webp": _webp}
