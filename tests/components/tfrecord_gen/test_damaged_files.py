"""Every damage of a file is located, and no other record is lost."""

from __future__ import annotations

import gzip
import os
import struct
import subprocess
import sys
import zlib
from dataclasses import dataclass, field
from typing import Any

import pytest

from components.tfrecord_gen import ingest as ingest_module
from components.tfrecord_gen.checking.scan import scan
from sample_data.tf_example import encode
from sluice.errors import UsageError
from sluice.tfrecords.frame_encoding import frame, masked_crc
from sluice.tfrecords.parse_tf_example import parse

pytestmark = pytest.mark.unit

RECORDS = [encode({"id": [n], "text": [bytes([n]) * 9 * n]}) for n in range(1, 21)]
FRAMES = [frame(data) for data in RECORDS]
WHOLE = b"".join(FRAMES)
# Where record 3 begins.
THIRD = len(FRAMES[0] + FRAMES[1])
LIMIT = 1_000
LARGE = frame(bytes(700_000))


def flipped(at):
    """Flips a bit of record 3: length at byte 0, the length's CRC at 8, data at 12."""
    third = bytearray(FRAMES[2])
    third[at] ^= 0x10
    return b"".join([*FRAMES[:2], third, *FRAMES[3:]])


def third(data):
    """Puts other bytes in the place of record 3."""
    return b"".join([*FRAMES[:2], frame(data), *FRAMES[3:]])


def header(length):
    data = struct.pack("<Q", length)
    return data + struct.pack("<I", masked_crc(data))


@dataclass(frozen=True)
class Damage:
    """One damaged file; of record 3 if nothing else is said.

    Attributes:
      content: its bytes, or what they are compressed from.
      kind: of the error.
      good: numbers of the records that are ingested.
      lost: bytes that cannot be read.
      data: the bad record's bytes, if they are known.
      record: its number; 0 for the whole file.
      offset: of its frame.
    """

    content: bytes
    kind: str
    good: list[int] = field(default_factory=lambda: [1, 2, *range(4, 21)])
    lost: int = 0
    data: bytes | None = None
    record: int = 3
    offset: int = THIRD


FIRST_TWO, ALL = [1, 2], list(range(1, 21))
REST = len(WHOLE) - THIRD
_TEXT = b"a,b,c\n1,2,3\n" * 9
_SEQUENCE = b"\n\x00\x12\x05\n\x03\n\x01a"
DAMAGES = {
    "length": Damage(flipped(0), "length", FIRST_TWO, REST),
    "length's checksum": Damage(flipped(8), "length", FIRST_TWO, REST),
    "data": Damage(
        flipped(20), "checksum", data=flipped(20)[THIRD + 12 :][: len(RECORDS[2])]
    ),
    "data's checksum": Damage(flipped(-1), "checksum", data=RECORDS[2]),
    "cut tail": Damage(WHOLE[: THIRD + 20], "truncated", FIRST_TWO, 20, RECORDS[2][:8]),
    "cut header": Damage(WHOLE[: THIRD + 5], "truncated", FIRST_TWO, 5),
    "too large": Damage(
        b"".join([*FRAMES[:2], LARGE, *FRAMES[3:]]), "too_large", lost=len(LARGE)
    ),
    "cut, too large": Damage(
        WHOLE[:THIRD] + LARGE[:-9], "too_large", FIRST_TWO, len(LARGE) - 9
    ),
    "absurd length": Damage(
        WHOLE[:THIRD] + header(1 << 40) + b"x" * 50, "too_large", FIRST_TWO, 62
    ),
    "no proto": Damage(third(b"\xff no proto"), "not_example", data=b"\xff no proto"),
    "other message": Damage(third(b"\x08\x01"), "not_example", data=b"\x08\x01"),
    "sequence": Damage(third(_SEQUENCE), "not_example", data=_SEQUENCE),
    "text": Damage(_TEXT, "not_tfrecord", [], len(_TEXT), None, 1, 0),
    "a word": Damage(b"hello", "not_tfrecord", [], 5, None, 1, 0),
}
_LAST: dict[str, Any] = {"record": 21, "offset": len(WHOLE)}
FILES = {
    "empty": Damage(b"", "empty_file", [], record=0, offset=0),
    "zlib": Damage(zlib.compress(WHOLE), "not_tfrecord", [], record=1, offset=0),
    # gzip's level 0 does not compress.
    "cut gzip": Damage(
        gzip.compress(WHOLE, 0)[: 15 + THIRD + 20],
        "compression",
        FIRST_TWO,
        20,
        RECORDS[2][:8],
    ),
    "cut gzip, its end": Damage(gzip.compress(WHOLE)[:-1], "compression", ALL, **_LAST),
    "bytes after gzip": Damage(
        gzip.compress(WHOLE) + b"and more", "compression", ALL, **_LAST
    ),
}


@pytest.mark.parametrize("compression", ["none", "gzip", "members"])
@pytest.mark.parametrize("name", DAMAGES)
def test_a_damage_is_located(room, make, name, compression, monkeypatch):
    damage = DAMAGES[name]
    # Large gzip files are copied, and written anew where a record is bad.
    size = 1 if compression == "gzip" else 1 << 20
    monkeypatch.setattr(ingest_module, "_SHARD_FROM_BYTES", size)
    check(room, damage, make.compressed(damage.content, compression))
    (error,) = room.report.first_errors
    assert room.report.lost_bytes == damage.lost, error


@pytest.mark.parametrize("name", FILES)
def test_a_damaged_file_is_located(room, name):
    check(room, FILES[name], FILES[name].content)


def check(room, damage, content):
    path = room.put("a b\u00e9*.gz", content)
    report = room.report = room.ingest(path, max_record_bytes=LIMIT)

    assert room.records() == [RECORDS[number - 1] for number in damage.good]
    assert dict(report.errors) == {damage.kind: 1}
    assert report.corrupt_fraction > 0
    (error,) = report.first_errors
    assert (error.path, error.record, error.offset) == (
        path,
        damage.record,
        damage.offset,
    )
    (aside,) = room.quarantine()
    features = parse(aside).features.feature
    assert features["file"].bytes_list.value[0].decode() == path
    assert features["kind"].bytes_list.value[0].decode() == damage.kind
    assert features["reason"].bytes_list.value[0].decode() == error.reason
    assert features["record"].int64_list.value[0] == damage.record
    assert features["offset"].int64_list.value[0] == damage.offset
    assert list(features["bytes"].bytes_list.value) == [damage.data] * (
        damage.data is not None
    )


@pytest.mark.parametrize("compression", ["none", "gzip", "members"])
@pytest.mark.parametrize("name", ["a.tfrecord", "a.gz", "train-0"])
def test_compression_is_detected_from_the_content(room, make, compression, name):
    wanted = [encode({"x": [bytes(n)]}) for n in (5_000_000, 1, 127, 128, 16_390, 0)]
    wanted += [b"", *RECORDS * 50]
    padding = bytes(700_000 * (compression != "none"))
    path = room.put(name, make.shard(wanted, compression) + padding)

    found = list(scan(path))

    assert [record.data for record in found] == wanted
    assert [record.number for record in found] == list(range(1, len(wanted) + 1))
    content = make.framed(wanted)
    for record in found[-99:]:
        assert content[record.offset :].startswith(frame(record.data or b""))


def test_what_comes_before_the_damage_of_a_gzip_stream_is_kept(room, make):
    wanted = [encode({"noise": [os.urandom(2000)]}) for _ in range(200)]
    data = make.shard(wanted, "gzip")
    at = len(data) // 2
    path = room.put("a", data[:at] + b"\xff" * 1000 + data[at + 1000 :])

    report = room.ingest(path)

    found = room.records()
    assert 60 < len(found) <= 100
    assert found == wanted[: len(found)]
    assert report.corrupt_fraction == pytest.approx(1 - len(found) / 200, abs=0.05)


def test_a_file_that_cannot_be_read_and_one_that_is_left(room, make):
    with pytest.raises(UsageError, match="No such file"):
        list(scan(str(room.inputs / "absent")))

    path = room.put("a", make.shard(make.examples(2000)))
    before = len(os.listdir("/proc/self/fd"))
    for _ in scan(path):
        break
    assert len(os.listdir("/proc/self/fd")) == before


_PEAK = r"""
import re, sys
from components.tfrecord_gen import ingest as ingest_module
from components.tfrecord_gen.checking.scan import scan
count = sum(1 for _ in scan(sys.argv[1]))
# Not getrusage, which counts the process that this one was forked from.
print(count, re.search(r"VmHWM:\s+(\d+)", open("/proc/self/status").read())[1])
assert "tensorflow" not in sys.modules and "tfx" not in sys.modules
"""
_IMAGE = frame(encode({"image": [bytes(range(256)) * 98]}))


@pytest.mark.parametrize(
    ("start", "repeated", "times", "items"),
    [
        (b"", bytes(1 << 20), 400, 1),
        (header(400 << 20), bytes(1 << 20), 400, 1),
        (b"", _IMAGE, 8000, 8000),
    ],
    ids=["bomb", "beyond the limit", "many"],
)
def test_memory_is_bounded(room, start, repeated, times, items):
    packer = zlib.compressobj(1, zlib.DEFLATED, 31)
    parts = [packer.compress(start)]
    parts += [packer.compress(repeated) for _ in range(times)]
    path = room.put("a.gz", b"".join(parts) + packer.flush())

    found = subprocess.run(
        [sys.executable, "-c", _PEAK, path], capture_output=True, check=True
    )
    count, peak_kb = map(int, found.stdout.split())

    assert count == items
    assert peak_kb < 100_000
