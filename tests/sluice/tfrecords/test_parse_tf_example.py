"""Parsing tf.Example without TensorFlow."""

from __future__ import annotations

import time

import pytest

from sample_data import tf_example
from sluice.tfrecords import parse_tf_example

pytestmark = pytest.mark.unit

RECORD = tf_example.encode({"image": [b"\xff\xd8"], "label": [-3], "fare": [0.5, 2.0]})


def test_every_kind_of_values_is_read() -> None:
    features = parse_tf_example.parse(RECORD).features.feature

    assert set(features) == {"image", "label", "fare"}
    assert list(features["image"].bytes_list.value) == [b"\xff\xd8"]
    assert list(features["label"].int64_list.value) == [-3]
    assert list(features["fare"].float_list.value) == [0.5, 2.0]
    assert features["label"].WhichOneof("kind") == "int64_list"


def test_an_empty_record_is_an_example_without_features() -> None:
    assert not parse_tf_example.parse(b"").features.feature


@pytest.mark.parametrize(
    "data",
    [
        b"hello, world",
        b"\xff" * 20,
        RECORD[:-1],
        RECORD + b"\x50\x01",
        b"\x0a\x02\x0a\x09",
    ],
)
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="not a tf.Example"):
        parse_tf_example.parse(data)


def test_a_sequence_example_is_recognized() -> None:
    # feature_lists: one empty map entry
    sequence = RECORD + b"\x12\x02\x0a\x00"

    assert parse_tf_example.is_sequence_example(sequence)
    with pytest.raises(ValueError, match="a tf.SequenceExample"):
        parse_tf_example.parse(sequence)
    assert not parse_tf_example.is_sequence_example(RECORD)
    assert not parse_tf_example.is_sequence_example(b"")


@pytest.mark.tf
def test_the_classes_of_tensorflow_agree() -> None:
    import tensorflow as tf

    sequence = tf.train.SequenceExample()
    sequence.feature_lists.feature_list["frames"].feature.add()
    sequence.context.feature["n"].int64_list.value.append(1)
    example = tf.train.Example.FromString(RECORD)

    assert parse_tf_example.is_sequence_example(sequence.SerializeToString())
    again = parse_tf_example.parse(example.SerializeToString())
    assert list(again.features.feature["fare"].float_list.value) == [0.5, 2.0]


def test_two_fields_alone_make_no_sequence_example() -> None:
    # message Document { string id = 1; bytes text = 2; }
    other = b"\x0a\x03abc\x12\x03def"

    assert not parse_tf_example.is_sequence_example(other)
    with pytest.raises(ValueError, match="fields of another message"):
        parse_tf_example.parse(other)


def test_a_number_without_end_is_no_hang() -> None:
    started = time.perf_counter()
    with pytest.raises(ValueError, match="not a tf.Example"):
        parse_tf_example.parse(b"\xff" * 2_000_000)
    assert time.perf_counter() - started < 1
