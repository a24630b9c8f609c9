"""Decoding of images, the same for training, evaluation and the exported model."""

from __future__ import annotations

import functools
from collections.abc import Mapping

import tensorflow as tf

from pipeline.config.features import Image, RawPixels
from sluice.tfrecords.encoded_images import decode_image

Images = Mapping[str, Image | RawPixels]


def decode_images(
    features: Mapping[str, tf.Tensor], images: Images
) -> dict[str, tf.Tensor]:
    """Replaces encoded images ``[batch, 1]`` by float32 pixels in 0..1.

    See ``decode_pixels``.
    """
    return scale_pixels(decode_pixels(features, images), images)


def decode_pixels(
    features: Mapping[str, tf.Tensor], images: Images
) -> dict[str, tf.Tensor]:
    """Replaces encoded images ``[batch, 1]`` by uint8 ``[batch, height, width, c]``.

    Raw pixels only get this shape; of floats they stay float32, 0 where not finite.

    Images of another size are resized (bilinear, rounded) as ``resize`` says. JPEG,
    PNG, GIF (first frame) and BMP are detected by content.
    """
    decoded = dict(features)
    for key, image in images.items():
        if isinstance(image, RawPixels):
            decoded[key] = _raw_pixels(features[key], image)
        else:
            decoded[key] = tf.map_fn(
                functools.partial(_decode, image),
                tf.reshape(features[key], [-1]),
                fn_output_signature=tf.uint8,
            )
    return decoded


def scale_pixels(
    features: Mapping[str, tf.Tensor], images: Images
) -> dict[str, tf.Tensor]:
    """Replaces uint8 pixels by float32 in 0..1."""
    return {
        key: tf.cast(value, tf.float32) / 255.0
        if key in images and value.dtype == tf.uint8
        else value
        for key, value in features.items()
    }


def _decode(image: Image, data: tf.Tensor) -> tf.Tensor:
    size = (image.height, image.width)
    pixels = decode_image(data, image.channels)
    pixels = tf.cond(
        tf.reduce_all(tf.shape(pixels)[:2] == size),
        lambda: pixels,
        lambda: _resize(pixels, size, image.resize),
    )
    return tf.ensure_shape(pixels, (*size, image.channels))


def _raw_pixels(values: tf.Tensor, spec: RawPixels) -> tf.Tensor:
    if values.dtype == tf.string:
        values = tf.io.decode_raw(tf.reshape(values, [-1]), spec.dtype)
    elif values.dtype == tf.int64:
        values = tf.saturate_cast(values, tf.uint8)
    if values.dtype.is_floating:
        values = tf.where(tf.math.is_finite(values), values, 0.0)
    # Not [-1, ...]: a row of twice as many bytes would become two images.
    shape = [tf.shape(values)[0], spec.height, spec.width, spec.channels]
    return tf.reshape(values, shape)


def _resize(pixels: tf.Tensor, size: tuple[int, int], how: str) -> tf.Tensor:
    if how == "fit":
        resized = tf.image.resize_with_pad(pixels, *size)
    elif how == "fill":
        sides = tf.cast(tf.shape(pixels)[:2], tf.float64)
        scaled = tf.round(sides * tf.reduce_max(tf.constant(size, tf.float64) / sides))
        resized = tf.image.resize(pixels, tf.cast(scaled, tf.int32))
        resized = tf.image.resize_with_crop_or_pad(resized, *size)
    else:
        resized = tf.image.resize(pixels, size)
    return tf.cast(tf.round(resized), tf.uint8)
