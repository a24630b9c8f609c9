"""A NaN or infinite loss stops training and says where."""

from __future__ import annotations

import numpy as np
import pytest

from sluice.compat import exclude_keras_from_autograph
from sluice.errors import NodeError

pytestmark = pytest.mark.tf


def stopped(
    *,
    train: float = 0.5,
    evaluation: float = 0.5,
    rate: float = 0.25,
    steps: int = 1,
) -> NodeError:
    """Trains on batches of ones, of which the fourth has another value."""
    import tensorflow as tf

    from pipeline.training.callbacks.non_finite_loss import StopOnNonFiniteLoss

    exclude_keras_from_autograph()

    def data(value: float) -> tf.data.Dataset:
        x = np.ones((40, 1), np.float32)
        x[13] = value
        return tf.data.Dataset.from_tensor_slices((x, x > 0)).batch(4)

    model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1)])
    sgd = tf.keras.optimizers.SGD(rate)
    model.compile(sgd, "mse", steps_per_execution=steps)
    with pytest.raises(NodeError, match="so training has stopped") as caught:
        model.fit(
            data(train),
            validation_data=data(evaluation),
            epochs=30,
            callbacks=[StopOnNonFiniteLoss()],
            verbose=0,
        )
    return caught.value


@pytest.mark.parametrize(
    ("given", "where"),
    [
        ({"train": np.inf}, "epoch 1, batch 4, learning rate 0.25"),
        ({"train": np.nan, "steps": 5}, "epoch 1, batch 5, learning rate 0.25"),
        ({"evaluation": np.nan}, "validation of epoch 1, batch 4, learning rate 0.25"),
    ],
)
def test_the_first_batch_of_such_a_loss_is_named(given, where):
    error = stopped(**given)
    assert error.where == where
    assert "lower train.learning_rate" in str(error.hint)


def test_a_learning_rate_that_is_too_high():
    error = stopped(rate=1e6)
    assert "learning rate 1e+06" in str(error.where)
