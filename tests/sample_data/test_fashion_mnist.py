"""The published Fashion-MNIST, converted, as TensorFlow reads it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from sample_data import catalog
from sample_data.data_set import Source
from sample_data.image_array import ImageArray
from sample_data.mnist import read_mnist

FILES = Path("/usr/share/datasets/fashion-mnist")

pytestmark = [
    pytest.mark.tf,
    pytest.mark.real_data,
    pytest.mark.skipif(
        not FILES.is_dir(), reason="apt-get install dataset-fashion-mnist"
    ),
]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    directory = tmp_path_factory.mktemp("data") / "fashion-mnist"
    return directory, catalog.make("fashion-mnist", directory, source=Source(FILES))


def test_the_records_are_the_expected_ones(made):
    _, manifest = made

    assert [manifest.records(name) for name in ("train", "eval", "test")] == [
        55_000,
        5_000,
        10_000,
    ]
    assert manifest.class_names[9] == "Ankle boot"
    # Where this changes, raise the data set's version.
    assert manifest.shards[0].records_sha256 == (
        "47120371af5fdf0f02d22fbde43dc5cdf40d376d2c3e63788f10a1274ba7f7a1"
    )


def test_tensorflow_reads_the_images_and_labels_of_the_files(made):
    import tensorflow as tf

    directory, _ = made
    spec = {
        "image": tf.io.FixedLenFeature([], tf.string),
        "label": tf.io.FixedLenFeature([], tf.int64),
    }

    def decode(record):
        features = tf.io.parse_single_example(record, spec)
        return tf.io.decode_png(features["image"]), features["label"]

    content = read_mnist(Source(FILES), made[1].class_names)
    for part, splits in (("train", ("train", "eval")), ("test", ("test",))):
        paths = [str(path) for split in splits for path in directory.glob(f"{split}-*")]
        records = tf.data.TFRecordDataset(paths, compression_type="GZIP")
        batches = records.map(decode, tf.data.AUTOTUNE).batch(1000)
        images, labels = zip(*batches.as_numpy_iterator(), strict=True)
        source = content.parts[part]
        assert isinstance(source, ImageArray)
        assert counted(np.concatenate(images)[..., 0], np.concatenate(labels)) == (
            counted(source.pixels, source.labels)
        )


def counted(pixels, labels):
    return Counter(zip(map(bytes, pixels), map(int, labels), strict=True))
