"""Decoding of images for training, evaluation and serving."""

from __future__ import annotations

import pytest

from pipeline.config.features import Image

pytestmark = pytest.mark.tf


def test_pixels_are_those_of_tensorflow_and_resized_to_the_nearest_of_256():
    import numpy as np
    import tensorflow as tf

    from pipeline.training.input.images import decode_images

    random = np.random.default_rng(1)
    images = [
        random.integers(0, 256, size, np.uint8) for size in [(5, 4, 3), (9, 6, 3)]
    ]
    encoded = tf.stack([tf.io.encode_png(image) for image in images])[:, None]
    feature = Image(height=5, width=4, channels=3)
    pixels = decode_images({"x_xf": encoded}, {"x_xf": feature})["x_xf"].numpy()
    assert (pixels[0] == images[0] / np.float32(255)).all()
    resized = tf.image.resize(images[1], (5, 4)).numpy()
    assert abs(pixels[1] * 255 - resized).max() <= 0.5001
    assert (np.round(pixels[1] * 255) / np.float32(255) == pixels[1]).all()


def test_images_of_another_shape_are_fitted_filled_or_stretched():
    import numpy as np
    import tensorflow as tf

    from pipeline.training.input.images import decode_pixels

    # A band: dark edges and a bright middle, 4 x 8; the same at twice the size.
    band = np.repeat(np.array([[9, 9, 200, 200, 200, 200, 9, 9]], np.uint8), 4, axis=0)
    large = band.repeat(2, axis=0).repeat(2, axis=1)
    encoded = tf.stack([tf.io.encode_png(x[:, :, None]) for x in (band, large)])

    @tf.function
    def decoded(size, resize):
        feature = Image(height=size, width=size, channels=1, resize=resize)
        return decode_pixels({"x": encoded[:, None]}, {"x": feature})["x"]

    small, same = decoded(8, "fit").numpy()[..., 0]
    margins = np.zeros((2, 8), np.uint8)
    assert (small == np.vstack([margins, band, margins])).all()
    assert (same[[0, 1, 6, 7]] == 0).all() and (same[2:6, 3:5] == 200).all()
    assert (decoded(4, "fill").numpy() == 200).all()
    filled = decoded(8, "fill").numpy()[..., 0]
    # The dark edges are cut off but for what is interpolated; stretching keeps them.
    assert (filled[..., 1:-1] == 200).all() and (filled[..., [0, -1]] > 150).all()
    stretched = decoded(8, "stretch").numpy()[..., 0]
    assert (stretched[..., 0] == 9).all() and (stretched[..., 3:5] == 200).all()


def test_raw_pixels_of_bytes_and_of_numbers():
    import numpy as np
    import tensorflow as tf

    from pipeline.config.features import RawPixels
    from pipeline.training.input.images import decode_images

    spec = RawPixels(height=1, width=2, channels=1)
    floats = spec.model_copy(update={"dtype": "float32"})

    @tf.function
    def decoded(values, spec):
        return decode_images({"x": values}, {"x": spec})["x"]

    def rows(values, spec=spec):
        return decoded(tf.constant(values), spec).numpy().reshape(-1, 2).tolist()

    assert rows([[b"\x00\xff"], [b"\xff\xff"]]) == [[0, 1], [1, 1]]
    assert rows(np.array([[0, 255], [300, -1]], np.int64)) == [[0, 1], [1, 0]]
    assert rows([[0.5, 7.0]]) == [[0.5, 7.0]]
    raw = np.array([0.5, 7.0], "<f4").tobytes()
    assert rows([[raw]], floats) == [[0.5, 7.0]]
    for bad in ([[b"abcd"]], [[b"abc"]], [[b"ab"], [b"abcd"]], [[b"abcd"], [b"abcd"]]):
        with pytest.raises(tf.errors.InvalidArgumentError):
            rows(bad)
