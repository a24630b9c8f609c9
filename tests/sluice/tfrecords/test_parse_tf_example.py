"""Parsing tf.Example without TensorFlow."""

from __future__ import annotations

import pytest

from sample_data import tf_example
from sluice.tfrecords.parse_tf_example import parse

pytestmark = pytest.mark.unit

RECORD = tf_example.encode({"image": [b"\xff\xd8"], "label": [-3], "fare": [0.5, 2.0]})


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"hello, world", ""),
        (b"\x0c" + RECORD, ""),  # The end of a group.
        (b"\xff" * 2_000_000, "do not parse"),
        (b"\x0a\x02\x0a\x09", "do not parse"),
        (b"\x0a\x07\x0a\x05\x0a\x01\xff\x12\x00", "do not parse"),  # not UTF-8
        (RECORD + b"\x50\x01", "fields of another message"),
        (b"\x0a\x02\x78\x01", "fields of another message"),
        (b"\x12\x00", "tf.SequenceExample has: write each of its feature lists as"),
        (RECORD + b"\x12\x02\x0a\x00", "tf.SequenceExample"),
    ],
)
def test_other_bytes_are_refused(data, reason):
    with pytest.raises(ValueError, match=f"not a tf.Example: .*{reason}"):
        parse(data)
