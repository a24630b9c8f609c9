"""Decoding of images, the same for training, evaluation and the exported model."""

from __future__ import annotations

from collections.abc import Mapping

import tensorflow as tf

from pipeline.config.features import Image
from sluice.tfrecords.images import decode_image


def decode_images(
    features: Mapping[str, tf.Tensor], images: Mapping[str, Image]
) -> dict[str, tf.Tensor]:
    """Replaces encoded images ``[batch, 1]`` by float32 pixels in 0..1.

    See ``decode_pixels``.
    """
    return scale_pixels(decode_pixels(features, images), images)


def decode_pixels(
    features: Mapping[str, tf.Tensor], images: Mapping[str, Image]
) -> dict[str, tf.Tensor]:
    """Replaces encoded images ``[batch, 1]`` by uint8 ``[batch, height, width, c]``.

    Images of another size are resized (bilinear, rounded). JPEG, PNG, GIF (first
    frame) and BMP are detected by content.
    """
    decoded = dict(features)
    for key, image in images.items():

        def decode(data: tf.Tensor, image: Image = image) -> tf.Tensor:
            size = (image.height, image.width)
            pixels = decode_image(data, image.channels)
            pixels = tf.cond(
                tf.reduce_all(tf.shape(pixels)[:2] == size),
                lambda: pixels,
                lambda: _resize(pixels, size),
            )
            return tf.ensure_shape(pixels, (*size, image.channels))

        decoded[key] = tf.map_fn(
            decode, tf.reshape(features[key], [-1]), fn_output_signature=tf.uint8
        )
    return decoded


def scale_pixels(
    features: Mapping[str, tf.Tensor], images: Mapping[str, Image]
) -> dict[str, tf.Tensor]:
    """Replaces uint8 pixels by float32 in 0..1."""
    return {
        key: tf.cast(value, tf.float32) / 255.0 if key in images else value
        for key, value in features.items()
    }


def _resize(pixels: tf.Tensor, size: tuple[int, int]) -> tf.Tensor:
    return tf.cast(tf.round(tf.image.resize(pixels, size)), tf.uint8)
