"""Reading and writing TFRecord files."""

from __future__ import annotations

import gzip
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluice.errors import DataError
from sluice.tfrecords import tfrecord
from sluice.tfrecords.frame_encoding import frame, masked_crc

pytestmark = pytest.mark.unit

RECORDS = [b"first", b"", b"third" * 100, b"a" * ((1 << 21) + 1)]
FRAMES = b"".join(map(frame, RECORDS))
# Written by tf.io.TFRecordWriter: b"sluice", then b"".
BY_TENSORFLOW = bytes.fromhex(
    "06000000000000007369d537736c75696365707d3ddb000000000000000029039807d8ea82a2"
)


def test_the_bytes_are_tensorflows_and_say_no_time(tmp_path):
    plain, packed = tmp_path / "a.tfrecord", tmp_path / "a.gz"
    tfrecord.write(plain, [b"sluice", b""])
    tfrecord.write(packed, RECORDS)

    assert plain.read_bytes() == BY_TENSORFLOW
    assert packed.read_bytes()[3:8] == bytes(5)  # neither a name nor a time


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"old")

    def records():
        yield b"new"
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        tfrecord.write(path, records())
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


_HUGE = struct.pack("<Q", 1 << 60)
_SECOND = f"record 2 (at byte {len(frame(RECORDS[0]))})"


@pytest.mark.parametrize(
    ("content", "read", "where", "message"),
    [
        (b"label,image\n1,2\n", 0, "", "not a TFRecord file"),
        (FRAMES[:26], 1, _SECOND, "after 5 of 12 bytes"),
        (FRAMES[:-1], 3, "record 4", "ends within the record"),
        (gzip.compress(FRAMES, mtime=0)[:-1], 4, "record 5", "the stream ends early"),
        (FRAMES[:21] + b"\x10" + FRAMES[22:], 1, _SECOND, "length is damaged"),
        (FRAMES[:35] + b"\x10" + FRAMES[36:], 1, _SECOND, "match its checksum"),
        (
            FRAMES[:21] + _HUGE + struct.pack("<I", masked_crc(_HUGE)) + b"data",
            1,
            _SECOND,
            "larger than the limit",
        ),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_records_before_the_damage_are_read_and_it_is_located(
    tmp_path, content, read, where, message, packed
):
    path = tmp_path / "a"
    is_gzip = content[:2] == b"\x1f\x8b"
    path.write_bytes(gzip.compress(content) if packed and not is_gzip else content)
    records = tfrecord.read(path)

    assert [len(next(records)) for _ in range(read)] == list(map(len, RECORDS[:read]))
    with pytest.raises(DataError, match=message) as caught:
        next(records)
    assert str(caught.value.where).startswith(str(path))
    assert where in str(caught.value.where)


@given(
    st.lists(st.binary(max_size=40), min_size=1, max_size=5),
    st.sampled_from(["a.tfrecord", "a.gz"]),
    st.booleans(),
    st.data(),
)
@settings(max_examples=300, deadline=None)
def test_any_change_or_cut_is_found_or_harmless(
    tmp_path_factory, records, name, cut, data
):
    path = tmp_path_factory.getbasetemp() / name
    tfrecord.write(path, records)
    content = bytearray(path.read_bytes())
    at = data.draw(st.integers(0, len(content) - 1))
    if cut:
        del content[at:]
    else:
        content[at] ^= data.draw(st.integers(1, 255))
    path.write_bytes(content)

    try:
        found = list(tfrecord.read(path))
    except DataError as error:
        assert name in str(error)
        return
    if cut:  # Between two records.
        assert found == records[: len(found)]
    else:  # Such as the time in gzip's header.
        assert name == "a.gz" and found == records
