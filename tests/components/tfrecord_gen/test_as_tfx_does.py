"""Compatibility of ingested shards with TensorFlow and Beam."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import Any

import pytest

from components.tfrecord_gen.input_files import SourceFile
from tests.kit.ingestion import examples, framed, shard

pytestmark = pytest.mark.tf


def gzip_with_every_header_field(content):
    """RFC 1952: text flag, checksum of the header, extra field, name and comment."""
    packer = zlib.compressobj(6, zlib.DEFLATED, -15)
    body = packer.compress(content) + packer.flush()
    head = b"\x1f\x8b\x08" + bytes([0b11111]) + struct.pack("<I", 77) + b"\x02\xff"
    head += struct.pack("<H", 6) + b"AB\x02\x00xy" + b"a name\0" + b"a comment\0"
    head += struct.pack("<H", zlib.crc32(head) & 0xFFFF)
    return head + body + struct.pack("<II", zlib.crc32(content), len(content))


def test_a_copied_shard_with_extra_header_fields_is_read_by_all(room):
    import apache_beam as beam
    import tensorflow as tf
    from apache_beam.testing.util import assert_that, equal_to

    wanted = examples(300)
    data = gzip_with_every_header_field(framed(wanted[:100]))
    files = (
        SourceFile(room.put("a", data), "train"),
        SourceFile(room.put("b", shard(wanted[100:] * 90)), "train"),
    )
    room.ingest_files(files, ("train", "eval"))
    wanted = wanted[:100] + wanted[100:] * 90

    copied, level_0 = room.shards()
    assert Path(copied).read_bytes() == data
    paths = [copied, level_0]
    found = tf.data.TFRecordDataset(paths, "GZIP")
    assert [item.numpy() for item in found] == wanted
    for split, records in (("train", wanted), ("eval", [])):
        with beam.Pipeline(runner="DirectRunner") as pipeline:
            # As tfx_bsl's RawTfRecordTFXIO reads it for StatisticsGen and Transform.
            pattern = f"{room.out}/Split-{split}/*"
            read = pipeline | beam.io.ReadFromTFRecord(pattern)
            assert_that(read, equal_to(records))


@pytest.mark.parametrize("declared", ["bytes_list", "float_list", "int64_list"])
def test_types_are_refused_where_tensorflow_refuses_them(room, declared):
    """Another list is refused, even without values; no list is a missing feature."""
    import tensorflow as tf

    dtypes: dict[str, Any] = {
        "bytes_list": tf.string,
        "float_list": tf.float32,
        "int64_list": tf.int64,
    }
    values: dict[str, Any] = {
        "bytes_list": [b"a", b"b"],
        "float_list": [0.5],
        "int64_list": [7, -1],
    }
    records, refused = [], []
    for kind in (*dtypes, None):
        for count in range(3):
            example = tf.train.Example()
            feature = example.features.feature["x"]
            if kind:
                found = getattr(feature, kind)
                found.SetInParent()
                found.value.extend(values[kind][:count])
            records.append(example.SerializeToString())
            try:
                spec = {"x": tf.io.VarLenFeature(dtypes[declared])}
                tf.io.parse_example(records[-1:], spec)
            except tf.errors.InvalidArgumentError:
                refused.append(len(records))
    assert len(refused) == 6
    for data in (records, *([record] for record in records)):
        report = room.ingest(room.put("a", framed(data)), types={"x": declared})
        numbers = [error.number for error in report.first_errors]
        if len(data) > 1:
            assert report.errors == {"type": 6} and numbers == refused[:5]
        else:
            assert numbers == [1] * (records.index(data[0]) + 1 in refused)
