"""Parts of TensorFlow, Keras and Transform that we use although they are not public.

Each test fails if a version drops what we rely on, and would otherwise silently do
without it.
"""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.tf


def _fit(model: Any, callbacks: list[Any]) -> None:
    import tensorflow as tf

    model.compile("sgd", "mse")
    rows = tf.data.Dataset.from_tensors((tf.ones([2, 1]), tf.ones([2, 1]))).repeat()
    model.fit(rows, steps_per_epoch=4, callbacks=callbacks, verbose=0)


def _model(*layers: Any) -> Any:
    import tensorflow as tf

    return tf.keras.Sequential(
        [tf.keras.Input((1,)), *layers, tf.keras.layers.Dense(1)]
    )


def test_keras_gives_tensors_to_a_step_callback():
    import tensorflow as tf

    from pipeline.training.callbacks.non_finite_loss import StepCallback

    class Logs(StepCallback):
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            self.loss = logs["loss"]

    logs = Logs()
    _fit(_model(), [logs])
    assert tf.is_tensor(logs.loss)
