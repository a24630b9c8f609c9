"""The published Fashion-MNIST, converted, as TensorFlow reads it."""

import gzip
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from sample_data import catalog

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

    made = catalog.make("fashion-mnist", tmp_path / "made", source=FILES)
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

    for prefix, splits in (("train", ("train", "eval")), ("t10k", ("test",))):
        names = [shard.name for shard in made.shards if shard.split in splits]
        paths = [str(tmp_path / "made" / name) for name in names]
        records = tf.data.TFRecordDataset(paths, compression_type="GZIP")
        batches = records.map(decode, tf.data.AUTOTUNE).batch(1000)
        images, labels = zip(*batches.as_numpy_iterator(), strict=True)
        found = counted(np.concatenate(images)[..., 0], np.concatenate(labels))
        pixels = published(f"{prefix}-images-idx3-ubyte", 16).reshape(-1, 28, 28)
        assert found == counted(pixels, published(f"{prefix}-labels-idx1-ubyte", 8))


def published(name, header_bytes):
    packed = FILES / f"{name}.gz"
    data = gzip.decompress(packed.read_bytes()) if packed.is_file() else b""
    return np.frombuffer(
        data or (FILES / name).read_bytes(), np.uint8, offset=header_bytes
    )
