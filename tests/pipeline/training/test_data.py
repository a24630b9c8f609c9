"""Training step 1: the datasets of the transformed examples."""

from __future__ import annotations

from pathlib import Path

import pytest

pytestmark = pytest.mark.tf


def test_images_of_any_size_and_format_are_decoded_to_the_declared_size() -> None:
    import tensorflow as tf

    from pipeline.config.feature_set import Feature
    from pipeline.training.data import decode_images

    white = tf.fill([4, 6, 3], tf.constant(255, tf.uint8))
    encoded = [tf.io.encode_png(white), tf.io.encode_jpeg(white[:, :, :1])]
    feature = Feature("x", "image", {"height": 2, "width": 3, "channels": 1})
    features = {"x_xf": tf.reshape(tf.stack(encoded), [2, 1])}
    pixels = decode_images(features, {"x_xf": feature})["x_xf"]
    assert pixels.shape == (2, 2, 3, 1)
    assert abs(pixels.numpy() - 1.0).max() < 0.01


def test_a_dataset_is_one_epoch_in_a_new_order_each_time(tmp_path: Path) -> None:
    import tensorflow as tf

    from pipeline.config.feature_set import Feature, FeatureSet, Label
    from pipeline.training.data import make_dataset
    from sample_data.tf_example import encode

    path = str(tmp_path / "examples.gz")
    with tf.io.TFRecordWriter(path, "GZIP") as writer:
        for i in range(100):
            writer.write(encode({"a_xf": [float(i)], "y_xf": [i % 2]}))

    class Output:
        def transformed_feature_spec(self):
            return {
                "a_xf": tf.io.FixedLenFeature([1], tf.float32),
                "y_xf": tf.io.FixedLenFeature([1], tf.int64),
            }

    feature_set = FeatureSet((Feature("a", "numeric"),), Label("y", (0, 1)))

    def epoch(dataset) -> list[float]:
        return [
            value
            for features, _ in dataset
            for value in features["a_xf"].numpy()[:, 0].tolist()
        ]

    common = {"batch_size": 32}
    plain = make_dataset([path], Output(), feature_set, **common)
    assert epoch(plain) == list(map(float, range(100)))
    shuffled = make_dataset([path], Output(), feature_set, shuffle_seed=1, **common)
    first, second = epoch(shuffled), epoch(shuffled)
    assert sorted(first) == sorted(second) == list(map(float, range(100)))
    assert first != second
    again = make_dataset([path], Output(), feature_set, shuffle_seed=1, **common)
    assert epoch(again) == first
