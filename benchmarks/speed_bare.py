"""Bare side of ``speed.py``: plain tf.data and Keras, without checks or pipeline.

``python speed_bare.py CONFIG FOLDER``
"""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np
import tensorflow as tf
from speed_model import build_model, decode_images, exclude_keras_from_autograph


def read(config: dict[str, Any], split: str) -> Any:
    """Returns serialized examples in batches, those to train shuffled."""
    data = config["data"]
    files = tf.io.gfile.glob(f"{data['dir']}/{data['splits'][split]}")
    compression = "GZIP" if files[0].endswith(".gz") else ""
    records = tf.data.TFRecordDataset(files, compression, num_parallel_reads=2)
    if split == "train":
        records = records.shuffle(10_000, seed=config["train"]["seed"])
    return records.batch(config["train"]["batch_size"])


def make_preprocessing(config: dict[str, Any], parse: Any) -> dict[str, Any]:
    """Returns a function or layer for each feature but images, from one pass."""
    layers = tf.keras.layers
    specs = {k: spec for k, spec in config["features"].items() if k != "image"}
    if not specs:
        return {}
    batches = list(read(config, "train").map(parse).as_numpy_iterator())
    made: dict[str, Any] = {}
    for key, spec in specs.items():
        values = np.concatenate([batch[key] for batch in batches])
        if spec["kind"] == "numeric":
            mean, variance = values.mean(), values.var()
            made[key] = layers.Normalization(mean=mean, variance=variance)
        elif spec["kind"] == "bucketized":
            bounds = np.quantile(values, np.linspace(0, 1, spec["buckets"] + 1)[1:-1])
            made[key] = layers.Discretization([*map(float, bounds)])
        elif spec["kind"] == "vocabulary":
            is_text = config["dtypes"][key] == "string"
            lookup = layers.StringLookup if is_text else layers.IntegerLookup
            made[key] = lookup(vocabulary=np.unique(values))
        else:
            made[key] = layers.Hashing(spec["buckets"])
    return made


def main(config_file: str, folder: str) -> None:
    """Trains, evaluates and saves a model; writes ``metrics.json``."""
    exclude_keras_from_autograph()
    with open(config_file) as file:
        config = json.load(file)
    tf.keras.utils.set_random_seed(config["train"]["seed"])
    raw = {
        key: tf.io.FixedLenFeature([1], dtype, "" if dtype == "string" else 0)
        for key, dtype in config["dtypes"].items()
    }

    def parse(serialized: Any) -> Any:
        return tf.io.parse_example(serialized, raw)

    layers = make_preprocessing(config, parse)

    def preprocess(serialized: Any) -> tuple[dict[str, Any], Any]:
        example = parse(serialized)
        label = example.pop(config["label"]["feature"])
        features = {
            f"{key}_xf": layers[key](value) if key in layers else value
            for key, value in example.items()
        }
        return decode_images(features, config), label

    def dataset(split: str) -> Any:
        batches = read(config, split).map(preprocess, tf.data.AUTOTUNE)
        is_repeated = config["train"]["epochs"] > 1 and split != "test"
        return batches.cache() if is_repeated else batches.prefetch(2)

    sizes = {
        key: layer.vocabulary_size() - 1
        for key, layer in layers.items()
        if config["features"][key]["kind"] == "vocabulary"
    }
    model = build_model(config, sizes)
    epochs, evaluation = config["train"]["epochs"], dataset("eval")
    model.fit(dataset("train"), epochs=epochs, validation_data=evaluation, verbose=2)
    metrics = model.evaluate(dataset("test"), return_dict=True, verbose=2)
    metrics["example_count"] = float(model.metrics[1].count)
    tf.saved_model.save(model, f"{folder}/model")
    with open(f"{folder}/metrics.json", "w") as file:
        json.dump(metrics, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
