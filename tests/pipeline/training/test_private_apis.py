"""Parts of TensorFlow, Keras and Transform that we use although they are not public.

Each test fails if a version drops what we rely on, and would otherwise silently do
without it.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.kit.trainings import feature_set

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

    from pipeline.training.callbacks.step_callback import StepCallback

    class Logs(StepCallback):
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            self.loss = logs["loss"]

    logs = Logs()
    _fit(_model(), [logs])
    assert tf.is_tensor(logs.loss)


def test_ops_in_functions_of_a_graph_are_found():
    import tensorflow as tf

    from pipeline.training.accelerator_check import ops_of

    @tf.function
    def step(x: Any) -> Any:
        return tf.while_loop(lambda x: x < 9.0, lambda x: (tf.math.erf(x) + x,), [x])

    graph = step.get_concrete_function(tf.TensorSpec([])).graph
    assert "Erf" not in [op.type for op in graph.get_operations()]
    assert "Erf" in [op.type for op in ops_of(graph)]


def test_preprocessing_is_traced_without_data():
    from google.protobuf import text_format
    from tensorflow_metadata.proto.v0 import schema_pb2

    from pipeline.training.accelerator_check import (
        TracedPreprocessing,
    )

    one = "shape { dim { size: 1 } } presence { min_fraction: 1 }"
    text = f'feature {{ name: "fare" type: FLOAT {one} }}'
    text += f'feature {{ name: "tip" type: INT {one} }}'
    traced = TracedPreprocessing(
        "pipeline.training.preprocessing:preprocessing_fn",
        text_format.Parse(text, schema_pb2.Schema()),
        feature_set({"fare": "numeric"}, label="tip"),
    )
    spec = traced.transformed_feature_spec()
    assert {name: item.dtype.name for name, item in spec.items()} == {
        "fare_xf": "float32",
        "tip_xf": "int64",
    }
