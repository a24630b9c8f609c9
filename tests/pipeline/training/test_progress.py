"""What is reported while a model trains, and what the record keeps of it."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sluice import progress
from sluice.patches.tensorflow import exclude_keras_from_autograph

pytestmark = pytest.mark.tf

STEPS, BATCH, WAIT_S = 4, 8, 0.02


class Input:
    """Batches, for each of which training waits ``WAIT_S``: in the model.

    tf.data would fetch some ahead while the step is traced.
    """

    steps_per_epoch, train_examples, eval_examples = STEPS, STEPS * BATCH, BATCH

    def wait(self, x: Any) -> Any:
        time.sleep(WAIT_S)
        return x


@pytest.fixture
def training_input() -> Input:
    return Input()


@pytest.fixture
def model(training_input: Input) -> Any:
    import tensorflow as tf

    exclude_keras_from_autograph()

    class Wait(tf.keras.layers.Layer):
        def call(self, x, training=None):
            if training:
                x = tf.ensure_shape(
                    tf.py_function(training_input.wait, [x], tf.float32), (BATCH, 1)
                )
            return x

    dense = tf.keras.layers.Dense(3)
    normal = tf.keras.layers.BatchNormalization()
    model = tf.keras.Sequential([tf.keras.Input((1,)), Wait(), dense, normal])
    model.compile(loss="mse")
    return model


def _reporter(training_input: Any, epochs: int, *, is_chief: bool = True):
    from pipeline.training.progress import ReportProgress

    distribution: Any = SimpleNamespace(is_chief=is_chief)
    return ReportProgress(epochs, training_input, distribution)


def _fit(model: Any, callback: Any, **epochs: int) -> None:
    import tensorflow as tf

    batch = tf.data.Dataset.from_tensors((tf.ones([BATCH, 1]), tf.zeros([BATCH, 1])))
    model.fit(
        batch.repeat(),
        steps_per_epoch=STEPS,
        validation_data=batch,
        callbacks=[callback],
        verbose=0,
        **epochs,
    )


@pytest.fixture
def lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    path = tmp_path / "progress.jsonl"
    monkeypatch.setenv("SLUICE_PROGRESS_FILE", str(path))
    return lambda: progress.read(path)[0]


def test_steps_and_epochs_are_reported_with_rate_and_time_left(
    model, training_input, lines, monkeypatch
):
    from pipeline.training import progress as module

    monkeypatch.setattr(module, "INTERVAL_S", 0.0)
    callback = _reporter(training_input, epochs=6)
    # As resumed after three epochs, and compiled again after four.
    _fit(model, callback, initial_epoch=3, epochs=4)
    _fit(model, callback, initial_epoch=4, epochs=6)
    reported = lines()
    # The first step of each fit traces; the last of an epoch is followed by its end.
    assert [(line["event"], line["epoch"], line.get("step")) for line in reported] == [
        ("step", 4, 2),
        ("step", 4, 3),
        ("epoch", 4, None),
        ("step", 5, 2),
        ("step", 5, 3),
        ("epoch", 5, None),
        ("step", 6, 1),
        ("step", 6, 2),
        ("step", 6, 3),
        ("epoch", 6, None),
    ]
    assert {line["epochs"] for line in reported} == {6}
    for line in reported:
        assert 0 < line["examples_per_second"] <= BATCH / WAIT_S
    left = [line["eta_s"] for line in reported if line["event"] == "epoch"]
    assert left == sorted(left, reverse=True)
    assert left[1] > 0.8 * STEPS * WAIT_S
    assert left[2] == 0.0
    assert set(reported[2]["metrics"]) == {"loss", "val_loss"}
