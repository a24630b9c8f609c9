"""The published Fashion-MNIST, converted, as TensorFlow reads it."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sample_data import catalog
from sample_data.data_set import Source
from sample_data.mnist import read_mnist

FILES = Path("/usr/share/datasets/fashion-mnist")

pytestmark = [
    pytest.mark.tf,
    pytest.mark.real_data,
    pytest.mark.skipif(
        not FILES.is_dir(), reason="apt-get install dataset-fashion-mnist"
    ),
]


def counted(pixels, labels):
    return Counter(zip(map(bytes, pixels), map(int, labels), strict=True))


def test_tensorflow_reads_the_images_and_labels_of_the_files(tmp_path):
    import tensorflow as tf

    made = catalog.make("fashion-mnist", tmp_path / "made", source=Source(FILES))
    counts = {"train": 55_000, "eval": 5_000, "test": 10_000}
    assert {split: made.records(split) for split in counts} == counts
    assert made.class_names[9] == "Ankle boot"
    # Where this changes, raise the data set's version.
    assert made.shards[0].records_sha256 == (
        "47120371af5fdf0f02d22fbde43dc5cdf40d376d2c3e63788f10a1274ba7f7a1"
    )
    spec = {
        "image": tf.io.FixedLenFeature([], tf.string),
        "label": tf.io.FixedLenFeature([], tf.int64),
    }

    def decode(record):
        features = tf.io.parse_single_example(record, spec)
        return tf.io.decode_png(features["image"]), features["label"]

    content = read_mnist(Source(FILES), made.class_names)
    for part, splits in (("train", ("train", "eval")), ("test", ("test",))):
        names = [shard.name for shard in made.shards if shard.split in splits]
        paths = [str(tmp_path / "made" / name) for name in names]
        records = tf.data.TFRecordDataset(paths, compression_type="GZIP")
        batches = records.map(decode, tf.data.AUTOTUNE).batch(1000)
        images, labels = zip(*batches.as_numpy_iterator(), strict=True)
        source: Any = content.parts[part]
        found = counted(np.concatenate(images)[..., 0], np.concatenate(labels))
        assert found == counted(source.pixels, source.labels)
