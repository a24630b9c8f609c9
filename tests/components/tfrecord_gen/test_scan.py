"""Record errors for every kind of damaged file."""

from __future__ import annotations

import gzip
import os
import struct
import subprocess
import sys
import zlib

import pytest

from components.tfrecord_gen.checking.scan import scan
from sluice.errors import DataError, UsageError
from sluice.tfrecords.frame_encoding import frame, masked_crc
from sluice.tfrecords.frame_reader import Record
from sluice.tfrecords.record_error import RecordError

pytestmark = pytest.mark.unit

COMPRESSIONS = ["none", "gzip", "members", "zlib"]


def split(path):
    items = list(scan(path))
    return (
        [item for item in items if isinstance(item, Record)],
        [item for item in items if isinstance(item, RecordError)],
    )


def only_error(path):
    _, errors = split(path)
    assert len(errors) == 1, errors
    return errors[0]


def flipped(data, at, bit=0):
    damaged = bytearray(data)
    damaged[at] ^= 1 << bit
    return bytes(damaged)


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("name", ["a.tfrecord", "a.gz", "train-0", "a.zlib"])
def test_compression_is_detected_from_the_content(room, make, compression, name):
    wanted = make.examples(500)
    path = room.put(name, make.shard(wanted, compression))

    records, errors = split(path)

    assert errors == []
    assert [record.data for record in records] == wanted
    assert [record.number for record in records] == list(range(1, 501))


def test_offsets_are_those_of_the_decompressed_stream(room, make):
    wanted = make.examples(50)
    content = make.framed(wanted)
    path = room.put("a", make.gzipped(content))

    for record in split(path)[0]:
        at = record.offset
        assert content[at : at + 16 + len(record.data)] == frame(record.data)


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_a_flip_in_the_data(room, make, compression):
    wanted = make.examples(9)
    frames = [frame(data) for data in wanted]
    frames[4] = flipped(frames[4], 20)
    content = b"".join(frames)
    path = room.put("a", make.compressed(content, compression))

    records, errors = split(path)

    assert [record.data for record in records] == wanted[:4] + wanted[5:]
    assert [record.number for record in records] == [1, 2, 3, 4, 6, 7, 8, 9]
    offset = sum(map(len, frames[:4]))
    assert [(error.kind, error.number, error.offset) for error in errors] == [
        ("checksum", 5, offset)
    ]
    assert errors[0].data == frames[4][12:-4]
    assert errors[0].lost_bytes == 0


def test_a_flip_in_the_checksum_of_the_data(room, make):
    frames = [frame(data) for data in make.examples(3)]
    path = room.put("a", frames[0] + flipped(frames[1], -1) + frames[2])

    error = only_error(path)

    assert (error.kind, error.number) == ("checksum", 2)
    assert "the checksum of the data is" in error.reason


@pytest.mark.parametrize("at", [0, 7, 8, 11])
@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_a_flip_in_the_length_or_its_checksum(room, make, at, compression):
    wanted = make.examples(6)
    frames = [frame(data) for data in wanted]
    frames[3] = flipped(frames[3], at, 6)
    content = b"".join(frames)
    path = room.put("a", content if compression == "none" else make.gzipped(content))

    records, (error,) = split(path)

    assert [record.data for record in records] == wanted[:3]
    assert (error.kind, error.number) == ("length", 4)
    assert error.lost_bytes == sum(map(len, frames[3:]))
    assert "the rest of the file is lost" in error.reason


def test_a_length_that_no_record_can_have(room, make):
    length = struct.pack("<Q", 1 << 40)
    header = length + struct.pack("<I", masked_crc(length))
    path = room.put("a", make.shard(make.examples(2)) + header + b"x" * 50)

    error = only_error(path)

    assert (error.kind, error.number, error.lost_bytes) == ("too_large", 3, 62)
    assert "1,099,511,627,776 bytes" in error.reason
    assert "2,147,483,647" in error.reason


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("size", [2_000, 700_000])
def test_a_record_beyond_the_limit_is_passed_over(room, make, compression, size):
    wanted = make.examples(6)
    frames = [frame(data) for data in wanted]
    large = frame(bytes(size))
    content = b"".join([*frames[:3], large, large, *frames[3:]])
    path = room.put("a", make.compressed(content, compression))

    items = list(scan(path, max_record_bytes=1_000))

    found = [item.data for item in items if isinstance(item, Record)]
    errors = [item for item in items if isinstance(item, RecordError)]
    offset = sum(map(len, frames[:3]))
    assert found == wanted
    assert [item.number for item in items] == list(range(1, 9))
    assert [(item.kind, item.number, item.offset) for item in errors] == [
        ("too_large", 4, offset),
        ("too_large", 5, offset + len(large)),
    ]
    assert {item.lost_bytes for item in errors} == {size + 16}
    assert errors[0].reason == (
        f"a record of {size:,} bytes; examples.max_record_bytes allows 1,000: raise it "
        "to take such records"
    )


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_a_file_that_ends_within_a_record_beyond_the_limit(room, make, compression):
    wanted = make.examples(3)
    whole = make.framed(wanted)
    content = whole + frame(bytes(500_000))[:-9]
    path = room.put("a", make.compressed(content, compression))

    *found, error = scan(path, max_record_bytes=1_000)

    assert isinstance(error, RecordError)
    assert [item.data for item in found if isinstance(item, Record)] == wanted
    assert (error.kind, error.offset) == ("too_large", len(whole))
    assert error.lost_bytes == len(content) - len(whole)
    assert "the file ends within it" in error.reason


@pytest.mark.parametrize("cut", [1, 4, 5, 15, 16, 20])
def test_a_truncated_tail(room, make, cut):
    wanted = make.examples(5)
    content = make.framed(wanted)
    path = room.put("a", content[:-cut])

    records, (error,) = split(path)

    assert [record.data for record in records] == wanted[:4]
    assert (error.kind, error.number) == ("truncated", 5)
    assert error.lost_bytes == len(frame(wanted[4])) - cut
    assert "ends within the record" in error.reason


@pytest.mark.parametrize("cut", [1, 8, 9, 100])
@pytest.mark.parametrize("compression", ["gzip", "members", "zlib"])
def test_a_compressed_stream_that_ends_early(room, make, cut, compression):
    wanted = make.examples(60)
    path = room.put("a", make.shard(wanted, compression)[:-cut])

    records, (error,) = split(path)

    assert [record.data for record in records] == wanted[: len(records)]
    assert error.kind == "compression"
    assert error.number == len(records) + 1
    assert "the stream ends early" in error.reason


def test_what_comes_before_a_damaged_stream_is_kept(room, make):
    wanted = [os.urandom(2000) for _ in range(100)]
    from sample_data.tf_example import encode

    wanted = [encode({"noise": [data]}) for data in wanted]
    data = make.shard(wanted, "gzip")
    at = len(data) // 2
    path = room.put("a", data[:at] + b"\xff" * 1000 + data[at + 1000 :])

    records, errors = split(path)

    assert [item.data for item in records[:45]] == wanted[:45]
    assert errors


def test_a_wrong_sum_at_the_end_of_the_stream(room, make):
    wanted = make.examples(5)
    path = room.put("a", flipped(make.shard(wanted, "gzip"), -6))

    records, (error,) = split(path)

    assert [record.data for record in records] == wanted
    assert (error.kind, error.lost_bytes) == ("compression", 0)
    assert "incorrect data check" in error.reason


def test_bytes_after_the_last_member(room, make):
    path = room.put("a", make.shard(make.examples(2), "gzip") + b"and more")

    assert only_error(path).kind == "compression"


def test_zeros_after_the_last_member_are_padding(room, make):
    path = room.put("a", make.shard(make.examples(2), "gzip") + bytes(700_000))

    records, errors = split(path)

    assert (len(records), errors) == (2, [])


def test_a_zero_byte_file(room):
    error = only_error(room.put("a", b""))

    assert (error.kind, error.number) == ("empty_file", 0)


def test_a_gzip_stream_without_content_has_no_records(room):
    assert list(scan(room.put("a", gzip.compress(b"")))) == []


@pytest.mark.parametrize(
    "data", [b"hello", b"a,b,c\n1,2,3\n" * 9, bytes(1000), b"\x78\x9c" + b"\xff" * 9]
)
def test_a_file_that_is_no_tfrecord(room, data):
    error = only_error(room.put("a", data))

    assert (error.kind, error.lost_bytes) == ("not_tfrecord", len(data))
    assert "does not begin with a record's length" in error.reason


def test_a_compressed_file_that_is_no_tfrecord(room, make):
    assert only_error(room.put("a", make.gzipped(b"a,b\n" * 9))).kind == "not_tfrecord"


def test_valid_framing_around_something_else(room, make):
    good = make.examples(2)
    no_value, unknown = b"\n\x05\n\x03\n\x01a", b"\n\x02\x50\x01"
    bad = [b"not a proto", b"\x08\x01", good[0][:-1], b"\n\x03abc", no_value, unknown]
    path = room.put("a", make.framed([good[0], *bad, good[1]]))

    records, errors = split(path)

    assert [record.data for record in records] == good
    assert [record.number for record in records] == [1, 8]
    assert [error.kind for error in errors] == ["not_example"] * 6
    assert [error.data for error in errors] == bad


@pytest.mark.parametrize(
    "size", [0, 1, 2, 126, 127, 128, 129, 130, 131, 16_384, 16_390]
)
def test_examples_of_every_width_of_length(room, make, size):
    from sample_data.tf_example import encode

    wanted = [encode({"x": [bytes(n)]}) for n in range(max(0, size - 20), size + 1)]
    records, errors = split(room.put("a", make.framed([b"", *wanted])))

    assert errors == []
    assert [record.data for record in records] == [b"", *wanted]


def test_a_record_that_only_fits_together_with_the_next_is_no_example(room, make):
    first, second = make.examples(2)
    halves = [(first + second)[: len(first) + 3], (first + second)[len(first) + 3 :]]

    _, errors = split(room.put("a", make.framed(halves)))

    assert [error.kind for error in errors] == ["not_example"] * 2


def test_a_sequence_example_is_refused_by_name(room, make):
    sequence = b"\n\x00\x12\x05\n\x03\n\x01a"
    path = room.put("a", make.framed([make.examples(1)[0], sequence]))

    with pytest.raises(
        DataError, match=r"tf\.SequenceExamples.*\n.*record 2"
    ) as caught:
        list(scan(path))

    assert path in str(caught.value)


def test_a_missing_file(tmp_path):
    with pytest.raises(UsageError, match="No such file"):
        list(scan(str(tmp_path / "absent")))


def test_a_record_larger_than_the_blocks(room, make):
    from sample_data.tf_example import encode

    wanted = [encode({"x": [bytes(n)]}) for n in (5_000_000, 1, 1_048_576, 3_000_000)]
    for compression in COMPRESSIONS:
        path = room.put(compression, make.shard(wanted, compression))
        assert [item.data for item in scan(path)] == wanted


def test_a_scan_that_is_left_closes_its_file(room, make):
    path = room.put("a", make.shard(make.examples(2000)))
    before = len(os.listdir("/proc/self/fd"))

    for _ in scan(path):
        break

    assert len(os.listdir("/proc/self/fd")) == before


_PEAK = r"""
import re, sys
from components.tfrecord_gen.checking.scan import scan
count = sum(1 for _ in scan(sys.argv[1]))
# Not getrusage, which counts the process that this one was forked from.
print(count, re.search(r"VmHWM:\s+(\d+)", open("/proc/self/status").read())[1])
assert "tensorflow" not in sys.modules and "tfx" not in sys.modules
"""


def test_memory_does_not_grow_with_the_data(room, make):
    from sample_data.tf_example import encode

    record = frame(encode({"image": [bytes(range(256)) * 98]}))
    peaks = []
    for count in (800, 8000):
        path = room.put("a.gz", make.gzipped(record * count))
        found = subprocess.run(
            [sys.executable, "-c", _PEAK, path], capture_output=True, check=True
        )
        records, peak = map(int, found.stdout.split())
        assert records == count
        peaks.append(peak)

    assert peaks[1] <= 1.2 * peaks[0]


def test_a_gzip_bomb_takes_no_memory(room):
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    packed = [packer.compress(bytes(1 << 20)) for _ in range(400)]
    path = room.put("a.gz", b"".join(packed) + packer.flush())

    found = subprocess.run(
        [sys.executable, "-c", _PEAK, path], capture_output=True, check=True
    )
    items, peak_kb = map(int, found.stdout.split())

    assert items == 1
    assert peak_kb < 100_000


def test_a_record_beyond_the_limit_takes_no_memory(room, make):
    size = 400 << 20
    length = struct.pack("<Q", size)
    packer = zlib.compressobj(1, zlib.DEFLATED, 31)
    packed = [packer.compress(length + struct.pack("<I", masked_crc(length)))]
    packed += [packer.compress(bytes(1 << 20)) for _ in range(400)]
    packed += [packer.compress(bytes(4) + make.framed(make.examples(1)))]
    path = room.put("a.gz", b"".join(packed) + packer.flush())

    found = subprocess.run(
        [sys.executable, "-c", _PEAK, path], capture_output=True, check=True
    )
    items, peak_kb = map(int, found.stdout.split())

    assert items == 2
    assert peak_kb < 100_000
