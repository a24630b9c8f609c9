"""Copies a trained model out of its distribution strategy."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import tensorflow as tf

from pipeline.training.models.published_weights import refresh_normalization


def undistribute(
    model: tf.keras.Model, build: Callable[[], tf.keras.Model]
) -> tf.keras.Model:
    """Returns a model with the same weights on this process' own device.

    ``tf.saved_model.save`` refuses functions that use the variables of several workers,
    and a served model has no use for those of several replicas.

    Args:
      model: a trained model. All workers that share its training must call this.
      build: returns the same model without a strategy, whatever its weights are.
    """
    if model.distribute_strategy is tf.distribute.get_strategy():
        return model
    with tempfile.TemporaryDirectory() as folder:
        # By object, not by position: the order of ``model.weights`` depends on which
        # layers are frozen.
        path = tf.train.Checkpoint(model=model).write(str(Path(folder, "weights")))
        copy = build()
        reading = tf.train.Checkpoint(model=copy).read(path)
        reading.assert_existing_objects_matched().expect_partial()
    refresh_normalization(copy)
    return copy
