"""TensorFlow reads what an intake writes, and TFX hashes as it does."""

from __future__ import annotations

import pytest

from components.tfrecord_gen.checking.hash_splits import HashSplits
from sample_data.tf_example import encode

pytestmark = pytest.mark.tf


def test_tensorflow_reads_the_shards(room, make, monkeypatch):
    import tensorflow as tf

    from components.tfrecord_gen import take_in

    monkeypatch.setattr(take_in, "_SHARD_FROM_BYTES", 1)
    wanted = make.examples(300)
    room.take(
        room.put("a", make.shard(wanted[:100], "gzip")),
        room.put("b", make.shard(wanted[100:200])),
        room.put("c", make.shard(wanted[200:], "members")),
    )

    found = tf.data.TFRecordDataset([str(path) for path in room.shards()], "GZIP")

    assert [item.numpy() for item in found] == wanted


@pytest.mark.parametrize("values", [[b"someone"], [b"a", b"b"], [7], [-1, 2]])
def test_a_user_lands_where_tfx_puts_them(values):
    import tensorflow as tf
    from tfx.components.example_gen import base_example_gen_executor
    from tfx.proto import example_gen_pb2

    record = encode({"user": values, "x": [1.0]})
    config = example_gen_pb2.SplitConfig(partition_feature_name="user")
    bucket = base_example_gen_executor._PartitionFn(
        tf.train.Example.FromString(record), 3, [50, 80, 100], config
    )

    found = HashSplits({"0": 50, "1": 30, "2": 20}, by="user").split_of(record)

    assert found == str(bucket)
