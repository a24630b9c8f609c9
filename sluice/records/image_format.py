"""Tells an encoded image's format by its first bytes."""

from __future__ import annotations

_MAGIC = (
    (b"\x89PNG\r\n\x1a\n", "png"),
    (b"\xff\xd8\xff", "jpeg"),
    (b"BM", "bmp"),
    (b"GIF8", "gif"),
)


def image_format(data: bytes) -> str | None:
    """Returns ``png``, ``jpeg``, ``bmp``, ``gif`` or ``webp``, None for any other.

    ``bmp`` is said of much that is none: its magic, "BM", begins many a word.
    """
    for magic, name in _MAGIC:
        if data.startswith(magic):
            return name
    return "webp" if data[:4] == b"RIFF" and data[8:12] == b"WEBP" else None
