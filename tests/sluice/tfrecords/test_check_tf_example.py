"""The wire-format check of tf.Examples: errors and its cache."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sample_data.tf_example import encode
from sluice.tfrecords import check_tf_example
from sluice.tfrecords.check_tf_example import check_wire_format

pytestmark = pytest.mark.unit

RECORD = encode({"a": [5], "b": [0.5, 2.0], "c": [b"x", b"y" * 200], "d": [-1, 2**62]})


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\x50\x01", "it has fields of another message, at byte 0"),
        (b"\x0a\x04\x50\x01\x50\x01", "it has fields of another message, at byte 2"),
        (b"\x0a\x05\x0a\x03\x0a\x01a", "not one name and one value, at byte 2"),
        (b"\x0a\x04\x0a\x02\x12\x00", "not one name and one value, at byte 2"),
        (b"\x0a\x07\x0a\x05\x0a\x01\xff\x12\x00", "name is not UTF-8, at byte 6"),
        (b"\x0a\x09\x0a\x07\x0a\x01a\x12\x02\x22\x00", "not one list of .*, at byte 9"),
        (b"\x0a\x0b\x0a\x09\x0a\x01a\x12\x04\x1a\x00\x1a\x00", "not one list .* 11"),
        (b"\x0a\x0b\x0a\x09\x0a\x01a\x12\x04\x12\x02\x0a\x01", "do not parse"),
        (b"\x0a\x0c\x0a\x0a\x0a\x01a\x12\x05\x12\x03\x0a\x01x", "something else than"),
        (b"\x0a\x0c\x0a\x0a\x0a\x01a\x12\x05\x1a\x03\x0a\x01\xff", "something else"),
        (b"\x0a\x0b\x0a\x09\x0a\x01a\x12\x04\x1a\x02\x08\xff", "something else"),
        (b"\x0a\xff\xff\xff\xff\xff\x01", "the bytes do not parse"),
        (RECORD[:-1], "the bytes do not parse"),
        (b"\x0a", "the bytes do not parse"),
    ],
)
def test_errors_name_the_byte(data, reason):
    with pytest.raises(ValueError, match=f"not a tf.Example: .*{reason}"):
        check_wire_format(data)


def is_taken(data: bytes) -> bool:
    try:
        check_wire_format(data)
    except ValueError:
        return False
    return True


@given(st.integers(0, len(RECORD)), st.binary(max_size=2), st.integers(0, 2))
def test_the_cache_does_not_change_results(at, new, removed):
    damaged = RECORD[:at] + new + RECORD[at + removed :]
    check_tf_example._known_heads.clear()
    wanted = is_taken(damaged)

    check_wire_format(RECORD)

    assert check_tf_example._known_heads
    assert is_taken(damaged) == wanted


def test_the_cache_is_bounded(monkeypatch):
    monkeypatch.setattr(check_tf_example, "_MAX_HEADS", 10)

    for number in range(100):
        check_wire_format(encode({f"feature {number}": [1]}))

    assert len(check_tf_example._known_heads) <= 10
