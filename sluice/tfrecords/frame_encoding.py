"""Encoding of a TFRecord frame: https://www.tensorflow.org/tutorials/load_data/tfrecord.

Length (8 bytes, little-endian), the length's masked CRC-32C (4), the data, the data's
masked CRC-32C (4).
"""

from __future__ import annotations

import struct

import google_crc32c

LENGTH = struct.Struct("<Q")
CRC = struct.Struct("<I")
HEADER = struct.Struct("<QI")
CRC_MASK = 0xA282EAD8
FRAME_BYTES = HEADER.size + CRC.size
# Default limit of a record, and the limit of a protobuf message. Without one, a damaged
# length could allocate any amount of memory.
MAX_RECORD_BYTES = 256 << 20
MAX_MESSAGE_BYTES = (1 << 31) - 1


def masked_crc(data: bytes) -> int:
    """Returns the checksum as TFRecord stores it."""
    crc = google_crc32c.value(data)
    return ((crc >> 15 | crc << 17) + CRC_MASK) & 0xFFFFFFFF


def length_of(header: bytes) -> int | None:
    """Returns the length in a header; None if it is incomplete or damaged."""
    if len(header) < HEADER.size:
        return None
    length, crc = HEADER.unpack(header)
    return length if crc == masked_crc(header[: LENGTH.size]) else None


def frame(data: bytes) -> bytes:
    """Returns a record with its frame."""
    length = LENGTH.pack(len(data))
    header = length + CRC.pack(masked_crc(length))
    return b"".join((header, data, CRC.pack(masked_crc(data))))
