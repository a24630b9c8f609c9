"""Protobuf's numbers of as many bytes as they need.

https://protobuf.dev/programming-guides/encoding/#varints
"""

from __future__ import annotations

_ONE_BYTE = tuple(bytes([value]) for value in range(0x80))


def varint(value: int) -> bytes:
    """Returns a number that is not negative, 7 bits in each byte, the lowest first."""
    if value < 0x80:
        return _ONE_BYTE[value]
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
