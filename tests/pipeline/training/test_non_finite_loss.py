"""A NaN or infinite loss stops training and says where."""

from __future__ import annotations

import numpy as np
import pytest

from sluice.errors import NodeError
from sluice.patches.tensorflow import exclude_keras_from_autograph

pytestmark = pytest.mark.tf


def stopped(
    *, train: float = 0.5, evaluation: float = 0.5, rate: float = 0.25, steps: int = 1
) -> NodeError:
    """Trains on batches of ones, of which the fourth has another value."""
    import tensorflow as tf

    from pipeline.training.callbacks import StopOnNonFiniteLoss

    exclude_keras_from_autograph()

    def data(value: float) -> tf.data.Dataset:
        x = np.ones((80, 1), np.float32)
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
    ("given", "what", "where"),
    [
        ({"train": np.inf}, "loss is nan", "epoch 1, up to batch 16"),
        ({"train": np.nan, "steps": 5}, "loss is nan", "epoch 1"),
        ({"evaluation": np.nan}, "val_loss is nan", "epoch 1"),
    ],
)
def test_where_it_was_found(given, what, where):
    error = stopped(**given)
    assert error.what == f"the {what}, so training has stopped"
    assert error.where == f"{where}, learning rate 0.25"
    assert "lower train.learning_rate" in str(error.hint)
