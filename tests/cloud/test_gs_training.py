"""What a training reads from and writes to ``gs://`` through our own storage."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from sluice.errors import NodeError

pytestmark = pytest.mark.cloud

ROWS = np.random.default_rng(3).random((4, 2))


def _model(seed: int, units: int = 2) -> Any:
    import tensorflow as tf

    tf.keras.backend.reset_uids()
    tf.keras.utils.set_random_seed(seed)
    inputs = tf.keras.Input((2,), name="x_xf")
    return tf.keras.Model(inputs, tf.keras.layers.Dense(units)(inputs))


def test_a_model_run_is_written_and_its_weights_are_started_from(bucket):
    from pipeline.training.export import write_model_run
    from pipeline.training.progress import write_facts
    from pipeline.training.warm_start import warm_start

    model, run = _model(1), bucket.uri("model_run/7")
    write_model_run(model, {"loss": [1.0, 0.5]}, run)
    write_facts(
        model,
        SimpleNamespace(time_to_first_step_s=1.0, epoch_facts=[]),  # type: ignore
        SimpleNamespace(train_examples=4, eval_examples=2),  # type: ignore
        SimpleNamespace(  # type: ignore
            line="one device", replicas=1, batch_size=2, steps_per_execution=1
        ),
        run,
    )
    files = ["history.json", "model.weights.h5", "training.json"]
    assert bucket.names() == [f"model_run/7/{name}" for name in files]
    assert json.loads(bucket.get("model_run/7/history.json")) == {"loss": [1.0, 0.5]}
    assert json.loads(bucket.get("model_run/7/training.json"))["train_examples"] == 4

    other = _model(2)
    inputs: Any = SimpleNamespace()  # Not used for a file of weights.
    warm_start(other, "latest", f"{run}/model.weights.h5", inputs, {})
    np.testing.assert_array_equal(other(ROWS), model(ROWS))
    with pytest.raises(NodeError, match="do not fit the model") as caught:
        large = _model(2, units=3)
        warm_start(large, "latest", f"{run}/model.weights.h5", inputs, {})
    assert caught.value.where == f"{run}/model.weights.h5"
    with pytest.raises(NodeError, match="needs a SavedModel") as caught:
        warm_start(other, "latest", bucket.uri("model_run/8"), inputs, {})
    assert caught.value.where == bucket.uri("model_run/8")
