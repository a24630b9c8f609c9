"""Reading and writing TFRecord files, and every kind of damage."""

from __future__ import annotations

import gzip
import struct
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluice.errors import DataError, UsageError
from sluice.tfrecords import frame_encoding, tfrecord

pytestmark = pytest.mark.unit

RECORDS = [b"first", b"", b"third" * 100]
# Written by tf.io.TFRecordWriter: b"sluice", then b"".
BY_TENSORFLOW = bytes.fromhex(
    "06000000000000007369d537736c75696365707d3ddb000000000000000029039807d8ea82a2"
)


def frames(records):
    """The byte offsets at which the records begin, and the end of the last one."""
    offsets = [0]
    for record in records:
        offsets.append(offsets[-1] + 16 + len(record))
    return offsets


@pytest.fixture
def shard(tmp_path):
    path = tmp_path / "train-00000-of-00001.tfrecord"
    tfrecord.write(path, RECORDS)
    return path


@pytest.fixture
def gzip_shard(tmp_path):
    path = tmp_path / "train-00000-of-00001.tfrecord.gz"
    tfrecord.write(path, RECORDS)
    return path


@pytest.mark.parametrize("name", ["a.tfrecord", "a.tfrecord.gz", "train-0", "A.GZ"])
def test_what_is_written_is_read(tmp_path, name):
    path = tmp_path / name

    assert tfrecord.write(path, iter(RECORDS)) == 3
    assert list(tfrecord.read(path)) == RECORDS
    assert tfrecord.verify(path) == 3
    assert [entry.name for entry in tmp_path.iterdir()] == [name]


def test_empty_shards_and_other_files_are_left_out(tmp_path):
    names = [f"metrics-0000{number}-of-00003.tfrecord" for number in range(3)]
    for name in names[::-1]:
        tfrecord.write(tmp_path / name, RECORDS)
    (tmp_path / names[1]).write_bytes(b"")
    tfrecord.write(tmp_path / "plots-00000-of-00001.tfrecord", RECORDS)

    found = tfrecord.shards(tmp_path, "metrics")
    assert found == [tmp_path / names[0], tmp_path / names[2]]


@pytest.mark.parametrize("name", ["a.tfrecord", "a.gz", "a.zlib"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress, zlib.compress])
def test_any_name_is_read_where_it_is_asked_for(tmp_path, shard, name, pack):
    path = tmp_path / name
    path.write_bytes(pack(shard.read_bytes()))

    assert list(tfrecord.read(path, any_name=True)) == RECORDS


def test_a_large_zlib_file_of_any_name(tmp_path):
    records = [b"a" * (1 << 22), b"b", b"c" * (1 << 21)]
    tfrecord.write(tmp_path / "plain", records)
    packed = tmp_path / "packed"
    packed.write_bytes(zlib.compress((tmp_path / "plain").read_bytes()))

    assert list(tfrecord.read(packed, any_name=True)) == records


def test_zlib_streams_one_after_the_other(tmp_path, shard):
    content = shard.read_bytes()
    path = tmp_path / "packed"
    path.write_bytes(zlib.compress(content[:33]) + zlib.compress(content[33:]))

    assert list(tfrecord.read(path, any_name=True)) == RECORDS


@pytest.mark.parametrize("cut", [1, 4, 5, 20])
def test_a_zlib_file_that_ends_early(tmp_path, shard, cut):
    path = tmp_path / "a"
    path.write_bytes(zlib.compress(shard.read_bytes())[:-cut])

    with pytest.raises(DataError, match="truncated or corrupt"):
        list(tfrecord.read(path, any_name=True))


def test_a_zlib_file_is_no_tfrecord_for_tfx(tmp_path, shard):
    path = tmp_path / "a"
    path.write_bytes(zlib.compress(shard.read_bytes()))

    with pytest.raises(DataError, match="not a TFRecord file"):
        list(tfrecord.read(path))


def test_the_bytes_are_tensorflows(tmp_path):
    path = tmp_path / "a.tfrecord"
    tfrecord.write(path, [b"sluice", b""])

    assert path.read_bytes() == BY_TENSORFLOW


def test_a_large_record_crosses_the_read_buffer(tmp_path):
    path = tmp_path / "a.tfrecord.gz"
    records = [b"a" * (1 << 20), b"b" * ((1 << 21) + 1), b"c"]
    tfrecord.write(path, records)

    assert list(tfrecord.read(path)) == records


def test_gzip_bytes_hold_neither_a_time_nor_a_name(tmp_path):
    first, second = tmp_path / "a.gz", tmp_path / "b.gz"
    tfrecord.write(first, RECORDS)
    tfrecord.write(second, RECORDS)

    assert first.read_bytes() == second.read_bytes()
    assert first.read_bytes()[4:8] == bytes(4)


def test_a_failed_write_leaves_the_old_file_and_nothing_else(shard):
    before = shard.read_bytes()

    def records():
        yield b"new"
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        tfrecord.write(shard, records())
    assert shard.read_bytes() == before
    assert list(shard.parent.iterdir()) == [shard]


@pytest.mark.parametrize("compressed", [False, True])
def test_every_truncation_is_found_but_for_cuts_between_records(
    shard, gzip_shard, compressed
):
    path = gzip_shard if compressed else shard
    content = path.read_bytes()
    between = [] if compressed else frames(RECORDS)[1:-1]

    for size in range(len(content)):
        path.write_bytes(content[:size])
        if size in between:
            assert tfrecord.verify(path) == between.index(size) + 1
            continue
        with pytest.raises(DataError) as caught:
            tfrecord.verify(path)
        assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("cut", "found"),
    [
        (5, "5 of the 12 bytes of its header"),
        (12, "12 of the 16 bytes of the record and its frame"),
        (18, "18 of the 21 bytes of the record and its frame"),
    ],
)
def test_a_truncated_file_says_what_is_missing(shard, cut, found):
    start = 0 if cut == 18 else frames(RECORDS)[1]
    shard.write_bytes(shard.read_bytes()[: start + cut])

    with pytest.raises(DataError, match="is truncated") as caught:
        tfrecord.verify(shard)
    number = 1 if cut == 18 else 2
    assert caught.value.where == f"{shard}, record {number} (at byte {start})"
    assert found in str(caught.value.actual)
    assert "again" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("offset", "message"),
    [
        (0, "length does not match"),  # the length
        (7, "length does not match"),
        (8, "length does not match"),  # the length's checksum
        (12, "data does not match"),  # the data
        (12 + 500, "data does not match"),  # the data's checksum
    ],
)
def test_a_flipped_bit_names_the_record(shard, offset, message):
    start = frames(RECORDS)[2]
    content = bytearray(shard.read_bytes())
    content[start + offset] ^= 0x10
    shard.write_bytes(content)

    with pytest.raises(DataError, match=message) as caught:
        tfrecord.verify(shard)
    assert caught.value.where == f"{shard}, record 3 (at byte {start})"
    assert "damaged" in str(caught.value)


def test_records_before_the_fault_are_yielded(shard):
    shard.write_bytes(shard.read_bytes()[:-1])
    records = tfrecord.read(shard)

    assert [next(records), next(records)] == RECORDS[:2]
    with pytest.raises(DataError, match="truncated"):
        next(records)


@pytest.mark.parametrize("content", [b"label,image\n1,2\n", b"\x89PNG\r\n\x1a\n" * 4])
def test_another_format_is_not_a_tfrecord(tmp_path, content):
    path = tmp_path / "train-0"
    path.write_bytes(content)

    with pytest.raises(DataError, match="not a TFRecord file") as caught:
        tfrecord.verify(path)
    assert caught.value.where == str(path)


@pytest.mark.parametrize("name", ["a.tfrecord", "a.tfrecord.gz"])
def test_an_empty_file_holds_no_records(tmp_path, name):
    path = tmp_path / name
    path.touch()

    with pytest.raises(DataError, match="holds no records") as caught:
        tfrecord.verify(path)
    assert caught.value.actual == "the file has 0 bytes"


def test_compressed_nothing_holds_no_records(tmp_path):
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(b""))

    with pytest.raises(DataError, match="holds no records"):
        tfrecord.verify(path)


def test_gzip_content_wants_the_suffix(gzip_shard):
    renamed = gzip_shard.rename(gzip_shard.with_suffix(""))

    with pytest.raises(DataError, match=r"does not end in \.gz") as caught:
        tfrecord.verify(renamed)
    assert f"{renamed.name}.gz" in str(caught.value)


def test_the_suffix_wants_gzip_content(shard):
    renamed = shard.rename(f"{shard}.gz")

    with pytest.raises(DataError, match="not gzip-compressed") as caught:
        tfrecord.verify(renamed)
    assert shard.name in str(caught.value.where)


def test_a_record_may_look_like_gzip(tmp_path):
    path = tmp_path / "a.tfrecord"
    length = int.from_bytes(b"\x1f\x8b\x08", "little")
    tfrecord.write(path, [bytes(length)])

    assert path.read_bytes().startswith(b"\x1f\x8b\x08")
    assert tfrecord.verify(path) == 1


@pytest.mark.parametrize("suffix", [".bz2", ".zst", ".XZ"])
def test_other_compressions_are_refused(shard, suffix):
    renamed = shard.rename(f"{shard}{suffix}")

    with pytest.raises(DataError, match="is not supported"):
        tfrecord.verify(renamed)


@pytest.mark.parametrize("name", ["a.tfrecord", "a.tfrecord.gz"])
def test_an_absurd_length_takes_no_memory(tmp_path, name):
    header = struct.pack("<Q", 1 << 60)
    frame = header + struct.pack("<I", frame_encoding.masked_crc(header)) + b"data"
    path = tmp_path / name
    path.write_bytes(gzip.compress(frame) if name.endswith(".gz") else frame)

    with pytest.raises(DataError, match="truncated") as caught:
        list(tfrecord.read(path, max_record_bytes=1 << 61))
    assert "16 of the 1,152,921,504,606,846,992 bytes" in str(caught.value.actual)
    with pytest.raises(DataError, match="larger than the limit"):
        tfrecord.verify(path)


def test_a_file_that_cannot_be_opened(tmp_path):
    with pytest.raises(UsageError, match="cannot be read") as caught:
        tfrecord.verify(tmp_path / "missing")
    assert caught.value.actual == "No such file or directory"
    with pytest.raises(UsageError, match="Is a directory"):
        tfrecord.verify(tmp_path)


some_records = st.lists(st.binary(max_size=40), min_size=1, max_size=5)


@given(some_records, st.data())
@settings(max_examples=100, deadline=None)
def test_any_changed_byte_is_found(tmp_path_factory, records, data):
    path = tmp_path_factory.getbasetemp() / "a.tfrecord"
    tfrecord.write(path, records)
    content = bytearray(path.read_bytes())
    content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(
        st.integers(1, 255)
    )
    path.write_bytes(content)

    with pytest.raises(DataError, match="a.tfrecord"):
        tfrecord.verify(path)


@given(some_records, st.data())
@settings(max_examples=100, deadline=None)
def test_any_truncation_is_found_but_between_records(tmp_path_factory, records, data):
    path = tmp_path_factory.getbasetemp() / "a.tfrecord"
    tfrecord.write(path, records)
    content = path.read_bytes()
    size = data.draw(st.integers(0, len(content) - 1))
    path.write_bytes(content[:size])

    offsets = frames(records)
    if size and size in offsets:
        assert tfrecord.verify(path) == offsets.index(size)
    else:
        with pytest.raises(DataError, match="a.tfrecord"):
            tfrecord.verify(path)


@given(some_records, st.data())
@settings(max_examples=100, deadline=None)
def test_a_changed_byte_of_a_gzip_file_is_found_or_harmless(
    tmp_path_factory, records, data
):
    path = tmp_path_factory.getbasetemp() / "a.tfrecord.gz"
    tfrecord.write(path, records)
    content = bytearray(path.read_bytes())
    content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(
        st.integers(1, 255)
    )
    path.write_bytes(content)

    try:
        # Bytes of gzip's header, such as its time, may change without any effect.
        assert list(tfrecord.read(path)) == records
    except DataError as error:
        assert "a.tfrecord.gz" in str(error)


@pytest.mark.parametrize("name", ["a.tfrecord", "a.gz"])
def test_a_record_beyond_the_limit_is_refused_unread(tmp_path, name):
    path = tmp_path / name
    tfrecord.write(path, [b"first", bytes(5_000_000), b"third"])
    found = tfrecord.read(path, max_record_bytes=1_000)

    assert next(found) == b"first"
    with pytest.raises(DataError, match="larger than the limit") as caught:
        next(found)

    assert caught.value.where == f"{path}, record 2 (at byte 21)"
    assert caught.value.expected == "at most 1,000 bytes"
    assert "5,000,000 bytes" in str(caught.value.actual)
    assert "examples.max_record_bytes" in str(caught.value.hint)
