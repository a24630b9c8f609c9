"""The train step of padded batches is that of the examples without padding."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sluice.compat import exclude_keras_from_autograph

pytestmark = pytest.mark.tf


@pytest.mark.parametrize("classes", [2, 3])
def test_the_gradient_of_a_padded_batch_is_that_of_its_examples(classes):
    import tensorflow as tf

    from pipeline.training.compile import make_loss, make_metrics

    exclude_keras_from_autograph()
    random = np.random.default_rng(1)
    x = random.normal(size=(8, 2)).astype("float32")
    y = random.integers(0, classes, (8, 1))

    def trained(real: int, weights: Any) -> tuple[list[Any], dict[str, float]]:
        tf.keras.utils.set_random_seed(3)
        units = 1 if classes == 2 else classes
        activation = "sigmoid" if classes == 2 else "softmax"
        dense = tf.keras.layers.Dense(
            units, activation, kernel_regularizer=tf.keras.regularizers.L2(0.1)
        )
        model = tf.keras.Sequential([tf.keras.Input((2,)), dense])
        model.compile(
            tf.keras.optimizers.SGD(0.5),
            make_loss(None, classes),
            weighted_metrics=make_metrics(None, classes),
        )
        batch = (tf.constant(x[:real]), tf.constant(y[:real]), weights)
        logs = model.train_step(batch)
        return model.get_weights(), {k: float(v) for k, v in logs.items()}

    real = 3
    weights, metrics = trained(real, None)
    counts = np.repeat([1.0, 0.0], [real, 8 - real])
    scaled = tf.constant(counts * 8 / real, tf.float32)
    padded, padded_metrics = trained(8, scaled)
    np.testing.assert_allclose(padded[0], weights[0], rtol=1e-5)
    np.testing.assert_allclose(padded[1], weights[1], rtol=1e-5, atol=1e-7)
    assert padded_metrics == pytest.approx(metrics)
    unscaled, _ = trained(8, tf.constant(counts, tf.float32))
    assert np.abs(unscaled[0] - weights[0]).max() > 1e-3
