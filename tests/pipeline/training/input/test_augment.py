"""Random changes of training images: what each does, and that it is reproducible."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pipeline.config.train import Augment

pytestmark = pytest.mark.tf

ALL: dict[str, Any] = {
    "flip": "both",
    "rotate": 30.0,
    "crop": 0.3,
    "brightness": 0.5,
    "contrast": 0.9,
    "saturation": 0.9,
    "cutout": 0.4,
}


@pytest.fixture(scope="module")
def images() -> np.ndarray:
    """Sixty-four colour images of 16 x 12 pixels."""
    return np.random.default_rng(2).random((64, 16, 12, 3), np.float32)


def changed(images: np.ndarray, seed: tuple[int, int] = (1, 2), **given: Any) -> Any:
    import tensorflow as tf

    from pipeline.training.input.augment import augment

    settings = Augment.model_validate(given)
    return augment(tf.constant(images), settings, seed).numpy()


@pytest.mark.parametrize(
    ("flip", "axes"),
    [("horizontal", [(2,)]), ("vertical", [(1,)]), ("both", [(1,), (2,), (1, 2)])],
)
def test_about_half_of_the_images_are_mirrored(images, flip, axes):
    result = changed(images, flip=flip)
    kept = (result == images).all(axis=(1, 2, 3))
    mirrored = [(result == np.flip(images, ax)).all(axis=(1, 2, 3)) for ax in axes]
    assert (kept + np.sum(mirrored, axis=0) == 1).all()
    for found in (kept, *mirrored):
        assert 0.5 < found.mean() * (len(axes) + 1) < 1.5


def test_a_rotation_is_about_the_center_and_within_its_limit():
    """A bright dot above the center turns around it."""
    image = np.zeros((200, 41, 41, 1), np.float32)
    image[:, 8:11, 19:22] = 1.0
    result = changed(image, rotate=40.0)
    rows, columns = np.mgrid[-20:21, -20:21]
    weight = result[..., 0] / result.sum(axis=(1, 2, 3))[:, None, None]
    y, x = (weight * rows).sum(axis=(1, 2)), (weight * columns).sum(axis=(1, 2))
    assert np.hypot(y, x) == pytest.approx(11, abs=0.3)
    angles = np.degrees(np.arctan2(x, -y))
    assert -41 < angles.min() < -35 and 35 < angles.max() < 41


def test_a_crop_is_a_part_of_the_image_enlarged():
    rows = np.linspace(0.0, 1.0, 33, dtype=np.float32)
    image = np.broadcast_to(rows[:, None, None], (100, 33, 33, 1))
    result = changed(image, crop=0.5)[:, :, 5, 0]
    first, last = result[:, 0], result[:, -1]
    height = last - first
    assert 0.5 <= height.min() < 0.55 and 0.95 < height.max() <= 1.0
    assert first.min() >= 0.0 and last.max() <= 1.0
    assert first.max() > 0.3, "not only from one end"
    between = first[:, None] + height[:, None] * np.linspace(0, 1, 33)
    assert result == pytest.approx(between, abs=1e-5)


def test_cutout_is_a_gray_square_anywhere():
    image = np.zeros((300, 10, 20, 1), np.float32)
    square = changed(image, cutout=0.3)[..., 0]
    assert set(np.unique(square)) == {0.0, 0.5}
    assert (square.any(axis=2).sum(axis=1) == 3).all()
    assert (square.any(axis=1).sum(axis=1) == 6).all()
    assert (square > 0).any(axis=0).all(), "every pixel is covered at some time"


def test_values_stay_in_range_and_depend_on_the_seed_alone(images):
    first = changed(images, **ALL)
    assert first.shape == images.shape and first.dtype == np.float32
    assert first.min() >= 0.0 and first.max() <= 1.0
    assert (changed(images, **ALL) == first).all()
    assert (changed(images, seed=(1, 3), **ALL) != first).any()
