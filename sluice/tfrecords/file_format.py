"""Detects a file format by its first bytes.

Messages never contain the bytes: they may be data, as in a CSV file.
"""

from __future__ import annotations

_IMAGES = {
    b"\x89PNG\r\n\x1a\n": "png",
    b"\xff\xd8\xff": "jpeg",
    b"BM": "bmp",
    b"GIF8": "gif",
}
_MAGIC = {
    b"\x89PNG": "a PNG image",
    b"\xff\xd8\xff": "a JPEG image",
    b"GIF8": "a GIF image",
    b"PK\x03\x04": "a ZIP archive",
    b"PAR1": "a Parquet file",
    b"Obj\x01": "an Avro file",
    b"\x93NUMPY": "a NumPy array",
    b"\x89HDF": "an HDF5 file",
    b"BZh": "a bzip2 file",
    b"\x28\xb5\x2f\xfd": "a Zstandard file",
    b"\xfd7zXZ": "an xz file",
}


def sniff_format(head: bytes) -> str:
    """Returns a clause for messages, such as ``it begins as a Parquet file``."""
    for magic, what in _MAGIC.items():
        if head.startswith(magic):
            return f"it begins as {what}"
    if not any(head):
        return "it begins with zeros"
    if all(0x20 <= byte < 0x7F or byte in b"\t\r\n" for byte in head):
        return "it begins as text"
    return "it begins as nothing that is known here"


def image_format(data: bytes) -> str | None:
    """Returns ``png``, ``jpeg``, ``bmp``, ``gif`` or ``webp``; None for any other.

    ``bmp`` may be wrong: its magic number is only "BM".
    """
    for magic, name in _IMAGES.items():
        if data.startswith(magic):
            return name
    return "webp" if data[:4] == b"RIFF" and data[8:12] == b"WEBP" else None
