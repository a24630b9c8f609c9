"""Checks that bytes are a tf.Example to every reader, by the protobuf wire format.

Protobuf accepts more than TensorFlow: ``tf.io.parse_example`` has its own parser, which
fails on unknown fields and on entries without a name or a value, and drops all but the
first of several lists or packed fields. TFX reads the same records with protobuf
(tfx_bsl). Rejected here is what either rejects, or what they read differently:
https://github.com/tensorflow/tensorflow/blob/v2.16.2/tensorflow/core/util/example_proto_fast_parsing.cc

Stricter than both on purpose: no unknown fields, which indicate another message;
exactly one name and one value in an entry; tags in their shortest form.
"""

from __future__ import annotations

import re

# Tags: the fields 1, 2 and 3 with a length, 1 as 32 bits, 1 as a varint.
_FIRST, _SECOND, _THIRD = 0x0A, 0x12, 0x1A
_FLOAT, _VARINT = b"\x0d", b"\x08"
_FLOAT_BYTES = 4
_MORE = 0x80  # Set in each byte of a varint but the last.
_ENDLESS = re.compile(rb"[\x80-\xff]{10}")
_SINGLE_INT = re.compile(_VARINT + rb"[\x80-\xff]{0,9}[\x00-\x7f]")

_OTHER = "it has fields of another message"
_CUT = "the bytes do not parse"
_ENTRY = "an entry of its features is not one name and one value"
_NAME = "a feature's name is not UTF-8"
_FEATURE = "a feature is not one list of bytes, floats or int64"
_VALUES = "a list holds something else than its values, or these in several parts"

# Cache of checked entries: the bytes before the value -> length of the entry, negative
# for int64. Most entries have one list of one size and differ only in the values, so
# this makes the check of tabular records seven times as fast. In a cached entry all
# lengths but the name's have one byte, or all have two.
_known_heads: dict[bytes, int] = {}
_MAX_HEADS = 1 << 15
# Beside the name: five tags, its length and four others.
_HEAD_BYTES, _LONG_HEAD_BYTES = 10, 14
_MAX_INT_BYTES = 10
_ONE_BYTE = tuple(bytes([value]) for value in range(0x80))


def check_wire_format(data: bytes) -> None:
    """Raises ValueError, with the byte, unless all readers read the same tf.Example."""
    at, size = 0, len(data)
    heads = _known_heads
    try:
        while at < size:
            if data[at] != _FIRST:
                raise _error(_OTHER, at)
            at, end = _body(data, at, size)
            while at < end:
                if data[at + 1] < _MORE:
                    head = data[at : at + _HEAD_BYTES + data[at + 3]]
                else:
                    head = data[at : at + _LONG_HEAD_BYTES + data[at + 4]]
                length = heads.get(head)
                if length is None:
                    at = _entry(data, at, end)
                elif length > 0:
                    at += length
                else:
                    at -= length
                    if data[at - 1] >= _MORE or head[-1] > _MAX_INT_BYTES:
                        _check_varints(data, at - head[-1], at)
            if at != end:
                raise _error(_CUT, end)
    except IndexError:
        raise _error(_CUT, size) from None


def _entry(data: bytes, at: int, end: int) -> int:
    """Checks an entry of the features; returns where it ends."""
    if data[at] != _FIRST:
        raise _error(_OTHER, at)
    field, stop = _body(data, at, end)
    parts: dict[int, tuple[int, int]] = {}
    while field < stop:
        tag = data[field]
        if tag not in (_FIRST, _SECOND) or tag in parts:
            raise _error(_ENTRY, at)
        parts[tag] = _body(data, field, stop)
        field = parts[tag][1]
    if len(parts) < 2:
        raise _error(_ENTRY, at)
    first, last = parts[_FIRST]
    try:
        data[first:last].decode()
    except UnicodeDecodeError:
        raise _error(_NAME, first) from None
    _check_feature(data, *parts[_SECOND])
    _remember(data, at, stop)
    return stop


def _remember(data: bytes, at: int, end: int) -> None:
    """Caches the head of a checked entry, if it has the common form."""
    width = 1 if data[at + 1] < _MORE else 2
    size = data[at + 2 + width]
    head = data[at : at + 6 + 4 * width + size]
    values = end - at - len(head)
    if values < 0:
        return
    kind = head[-2 - 2 * width]
    wanted = b"".join(
        (
            bytes((_FIRST,)),
            varint(end - at - 1 - width),
            head[1 + width : 3 + width + size],
            bytes((_SECOND,)),
            varint(values + 2 + 2 * width),
            bytes((kind,)),
            varint(values + 1 + width),
            bytes((_FIRST,)),
            varint(values),
        )
    )
    # Two-byte lengths of int64 lists are not cached.
    if head == wanted and (width == 1 or kind != _THIRD):
        if len(_known_heads) >= _MAX_HEADS:
            _known_heads.clear()
        _known_heads[head] = at - end if kind == _THIRD else end - at


def _check_feature(data: bytes, at: int, end: int) -> None:
    if at == end:
        return
    kind = data[at]
    if kind not in (_FIRST, _SECOND, _THIRD):
        raise _error(_FEATURE, at)
    first, last = _body(data, at, end)
    if last != end:
        raise _error(_FEATURE, last)
    if first == last:
        return
    if kind == _FIRST:
        while first < last:
            if data[first] != _FIRST:
                raise _error(_VALUES, first)
            first = _body(data, first, last)[1]
    elif data[first] == _FIRST:
        values, stop = _body(data, first, last)
        if stop != last:
            raise _error(_VALUES, stop)
        if kind == _THIRD:
            _check_varints(data, values, stop)
        elif (stop - values) % _FLOAT_BYTES:
            raise _error(_VALUES, values)
    elif kind == _THIRD:
        if _SINGLE_INT.sub(b"", data[first:last]):
            raise _error(_VALUES, first)
    else:
        count, rest = divmod(last - first, 1 + _FLOAT_BYTES)
        if rest or data[first : last : 1 + _FLOAT_BYTES] != _FLOAT * count:
            raise _error(_VALUES, first)


def _check_varints(data: bytes, at: int, end: int) -> None:
    if at < end and (data[end - 1] >= _MORE or _ENDLESS.search(data, at, end)):
        raise _error(_VALUES, at)


def _body(data: bytes, at: int, limit: int) -> tuple[int, int]:
    """Returns start and end of a length-delimited field, whose tag is at ``at``."""
    length = data[at + 1]
    at += 2
    if length >= _MORE:
        length &= 0x7F
        for shift in (7, 14, 21, 28):
            byte = data[at]
            at += 1
            length |= (byte & 0x7F) << shift
            if byte < _MORE:
                break
        else:
            raise _error(_CUT, at)
    end = at + length
    if end > limit:
        raise _error(_CUT, at)
    return at, end


def _error(what: str, at: int) -> ValueError:
    return ValueError(f"not a tf.Example: {what}, at byte {at:,}")


def varint(value: int) -> bytes:
    """Returns Protobuf's varint encoding of a number that is not negative.

    https://protobuf.dev/programming-guides/encoding/#varints
    """
    if value < 0x80:
        return _ONE_BYTE[value]
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
