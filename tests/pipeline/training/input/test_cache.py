"""Examples that are kept decoded: what fits, and what is measured and augmented."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from pipeline.config.train import Augment
from sample_data.tf_example import encode
from sluice.tfrecords import tfrecord
from tests.kit.trainings import feature_set, files_in, settings
from tests.kit.transform_output import Output

pytestmark = pytest.mark.tf

SIZE = {"height": 6, "width": 5, "channels": 3}
FEATURES = feature_set({"x": {"kind": "image", **SIZE}})
AUGMENT = Augment(flip="both", brightness=0.3, cutout=0.4).model_dump()


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twenty PNGs, every fourth of another size."""
    folder, random = tmp_path_factory.mktemp("images"), np.random.default_rng(4)
    examples = []
    for number in range(20):
        size = (9, 8, 3) if number % 4 == 3 else (6, 5, 3)
        file = io.BytesIO()
        Image.fromarray(random.integers(0, 256, size, np.uint8)).save(file, "PNG")
        examples.append(encode({"x": [file.getvalue()], "y": [number % 2]}))
    for split in ("train", "eval"):
        tfrecord.write(folder / f"{split}-0.gz", examples)
    return folder


def made_of(folder: Path, **given: Any) -> Any:
    import tensorflow as tf

    from pipeline.training.input.training_input import make_input
    from pipeline.training.strategy.distribution import Distribution

    alone = Distribution(tf.distribute.get_strategy(), "one_device", "", 8)
    output = Output({"x": "string", "y": "int64"})
    return make_input(settings(input=given), files_in(folder), FEATURES, output, alone)


def pixels_in(batches: Any) -> np.ndarray:
    return np.concatenate([features["x_xf"] for features, _ in batches])


def test_every_cache_gives_the_pixels_that_are_served(images):
    import tensorflow as tf

    from pipeline.training.input.images import decode_images

    records = tf.stack(list(tfrecord.read(images / "eval-0.gz")))
    spec = {"x": tf.io.FixedLenFeature([1], tf.string)}
    raw = tf.io.parse_example(records, spec)
    served = decode_images({"x_xf": raw["x"]}, FEATURES.images)
    for cache in ("none", "memory"):
        found = pixels_in(made_of(images, cache=cache, augment=AUGMENT).eval())
        assert found.dtype == np.float32
        assert (found == served["x_xf"].numpy()).all(), cache


@pytest.mark.parametrize("cache", ["none", "memory"])
def test_augmented_images_differ_by_epoch_and_repeat_by_position(images, cache):
    made = made_of(images, cache=cache, augment=AUGMENT)
    epochs = [pixels_in(made.train(epoch).take(3)) for epoch in (0, 1)]
    plain = made_of(images, cache=cache)
    orders = [pixels_in(plain.train(epoch).take(3)) for epoch in (0, 1)]
    assert all((new != old).any() for new, old in zip(epochs, orders, strict=True))
    changes = [
        np.abs(new - old).mean() for new, old in zip(epochs, orders, strict=True)
    ]
    assert changes[0] != changes[1]
    again = made_of(images, cache=cache, augment=AUGMENT)
    assert (pixels_in(again.train(1, 1).take(2)) == epochs[1][8:]).all()


def test_auto_takes_memory_if_the_pixels_fill_less_than_a_third_of_what_is_free(
    images, monkeypatch
):
    from pipeline.training.input import training_input

    needed = 2 * 20 * (6 * 5 * 3 + 8)
    for free, cache in [(3 * needed + 3, "memory"), (3 * needed - 3, "none")]:
        monkeypatch.setattr(training_input, "free_memory_bytes", free.__int__)
        assert made_of(images, cache="auto").cache == cache
