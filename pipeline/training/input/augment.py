"""Random changes of a batch of training images, drawn from a stateless seed."""

from __future__ import annotations

import math
from typing import Any

import tensorflow as tf

from pipeline.config.train import Augment

_GRAY = 0.5
# Shares of red, green and blue in the brightness, of ITU-R BT.601.
_LUMA = (0.299, 0.587, 0.114)


def augment(images: tf.Tensor, settings: Augment, seed: Any) -> tf.Tensor:
    """Returns changed images, still in 0..1.

    Every image has draws of its own; equal arguments give equal results. Rotation and
    crop resample once, bilinear; what lies outside the image is reflected.

    Args:
      images: float32 ``[batch, height, width, channels]`` in 0..1.
      settings: what is changed, and by how much.
      seed: int ``[2]``.
    """
    draw = _Draw(images, seed)
    flip = settings.flip
    if flip in ("horizontal", "both"):
        images = tf.where(draw.uniform() < 0.5, images[:, :, ::-1], images)
    if flip in ("vertical", "both"):
        images = tf.where(draw.uniform() < 0.5, images[:, ::-1], images)
    if settings.rotate or settings.crop:
        images = _rotate_and_crop(images, settings.rotate, settings.crop, draw)
    images = _change_colors(images, settings, draw)
    if settings.cutout:
        images = tf.where(_square(images, settings.cutout, draw), _GRAY, images)
    return images


class _Draw:
    """Independent random numbers, one for each image of a batch."""

    def __init__(self, images: tf.Tensor, seed: Any) -> None:
        self._shape = [tf.shape(images)[0], 1, 1, 1]
        self._seed, self._drawn = seed, 0

    def uniform(self, low: float = 0.0, high: float = 1.0) -> tf.Tensor:
        """Returns float32 ``[batch, 1, 1, 1]`` in ``[low, high)``."""
        self._drawn += 1
        seed = tf.random.fold_in(self._seed, self._drawn)
        return tf.random.stateless_uniform(self._shape, seed, low, high)


def _rotate_and_crop(
    images: tf.Tensor, degrees: float, crop: float, draw: _Draw
) -> tf.Tensor:
    """Maps each pixel to its place in the original, around the center of the crop."""
    limit = math.radians(degrees)
    angle = draw.uniform(-limit, limit)
    scale = 1.0 - draw.uniform(0.0, crop)
    size = tf.shape(images)[1:3]
    height, width = tf.unstack(tf.cast(size - 1, tf.float32))
    center_y = 0.5 * height + 0.5 * height * (1.0 - scale) * draw.uniform(-1.0, 1.0)
    center_x = 0.5 * width + 0.5 * width * (1.0 - scale) * draw.uniform(-1.0, 1.0)
    cos, sin = scale * tf.cos(angle), scale * tf.sin(angle)
    zero = tf.zeros_like(angle)
    matrix = [
        *(cos, -sin, center_x - 0.5 * (cos * width - sin * height)),
        *(sin, cos, center_y - 0.5 * (sin * width + cos * height)),
        *(zero, zero),
    ]
    return tf.raw_ops.ImageProjectiveTransformV3(
        images=images,
        transforms=tf.concat([item[:, :, 0, 0] for item in matrix], axis=1),
        output_shape=size,
        fill_value=0.0,
        interpolation="BILINEAR",
        fill_mode="REFLECT",
    )


def _change_colors(images: tf.Tensor, settings: Augment, draw: _Draw) -> tf.Tensor:
    brightness, contrast = settings.brightness, settings.contrast
    saturation = settings.saturation
    if not (brightness or contrast or saturation):
        return images
    colors, alpha = images[..., :3], images[..., 3:]
    if brightness:
        colors += draw.uniform(-brightness, brightness)
    if contrast:
        mean = tf.reduce_mean(colors, axis=[1, 2], keepdims=True)
        colors = mean + (colors - mean) * draw.uniform(1.0 - contrast, 1.0 + contrast)
    if saturation and images.shape[-1] >= 3:
        gray = tf.reduce_sum(colors * _LUMA, axis=-1, keepdims=True)
        factor = draw.uniform(1.0 - saturation, 1.0 + saturation)
        colors = gray + (colors - gray) * factor
    colors = tf.clip_by_value(colors, 0.0, 1.0)
    return tf.concat([colors, alpha], -1) if images.shape[-1] > 3 else colors


def _square(images: tf.Tensor, side: float, draw: _Draw) -> tf.Tensor:
    """Returns whether each pixel ``[batch, height, width, 1]`` is in the square."""

    def inside(length: tf.Tensor) -> tf.Tensor:
        extent = tf.round(side * tf.cast(length, tf.float32))
        free = tf.cast(length, tf.float32) - extent + 1.0
        start = tf.floor(draw.uniform() * free)[:, 0, 0]
        at = tf.range(length, dtype=tf.float32)[None]
        return (at >= start) & (at < start + extent)

    size = tf.shape(images)
    rows, columns = inside(size[1]), inside(size[2])
    return (rows[:, :, None] & columns[:, None])[..., None]
