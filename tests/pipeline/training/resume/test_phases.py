"""A training in two phases, with a schedule and plateaus, resumes in either of them."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pipeline.config.learning_rate import Cosine
from sluice import interrupt, progress
from tests.kit.trainings import feature_set, files_in, settings

pytestmark = pytest.mark.tf

FEATURES = feature_set({"a": "numeric"})
EPOCHS, FIRST_PHASE = 5, 2


@pytest.fixture
def listening() -> Iterator[None]:
    """This process takes SIGTERM for a request to stop."""
    signals = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.getsignal(number) for number in signals}
    interrupt.listen()
    yield
    interrupt.listen()  # Resets the request.
    for number, handler in before.items():
        signal.signal(number, handler)


def _input(data: Path) -> Any:
    import tensorflow as tf

    from pipeline.training.input.training_input import make_input
    from pipeline.training.strategy.distribution import Distribution

    spec = {
        "a_xf": tf.io.FixedLenFeature([4], tf.float32),
        "y_xf": tf.io.FixedLenFeature([1], tf.int64),
    }
    return make_input(
        settings(seed=3),
        files_in(data),
        FEATURES,
        SimpleNamespace(transformed_feature_spec=lambda: dict(spec)),
        Distribution(tf.distribute.get_strategy(), "one_device", "", batch_size=8),
    )


def _train(
    data: Path, directory: Path | None = None, stop: tuple[int, int] | None = None
) -> tuple[dict[str, list[float]], list[Any]]:
    """Trains a new model; returns the history and the weights.

    Args:
      data: folder of the examples.
      directory: of the checkpoints.
      stop: epoch and number of batches of it after which a stop is requested.
    """
    import tensorflow as tf

    from pipeline.training.callbacks.metrics import LearningRateLog, ReduceOnPlateau
    from pipeline.training.compile import make_optimizer
    from pipeline.training.fit import Phase, fit_model
    from pipeline.training.learning_rate import make_learning_rate
    from sluice.compat import exclude_keras_from_autograph

    class Stop(tf.keras.callbacks.Callback):
        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            self.epoch = epoch

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            if (self.epoch, batch + 1) == stop:
                os.kill(os.getpid(), signal.SIGTERM)

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            if (epoch + 1, 0) == stop:
                os.kill(os.getpid(), signal.SIGTERM)

    exclude_keras_from_autograph()
    tf.keras.backend.experimental.enable_tf_random_generator()
    tf.keras.utils.set_random_seed(7)
    training_input = _input(data)
    inputs = {"a_xf": tf.keras.Input((4,), name="a_xf")}
    frozen = tf.keras.layers.Dense(8, activation="relu", trainable=False)
    x = tf.keras.layers.Dropout(0.5)(frozen(inputs["a_xf"]))
    outputs = tf.keras.layers.Dense(1, activation="sigmoid")(x)
    model = tf.keras.Model(inputs, outputs)

    def compile_with(learning_rate: Any) -> None:
        steps = training_input.steps_per_epoch
        model.compile(
            make_optimizer(
                settings(epochs=EPOCHS),
                make_learning_rate(
                    learning_rate, epochs=EPOCHS, steps_per_epoch=steps, scale=1.0
                ),
            ),
            "binary_crossentropy",
            weighted_metrics=["accuracy"],
            steps_per_execution=4,
        )

    def unfreeze() -> None:
        frozen.trainable = True
        compile_with(0.02)

    compile_with(Cosine(initial=0.1, warmup_epochs=1.0, final_fraction=0.1))
    history = fit_model(
        model,
        training_input,
        EPOCHS,
        [
            Stop(),
            LearningRateLog(),
            tf.keras.callbacks.EarlyStopping(patience=9, restore_best_weights=True),
            ReduceOnPlateau(patience=1, factor=0.5, min_delta=0.1),
        ],
        phases=[Phase(FIRST_PHASE), Phase(EPOCHS, unfreeze)],
        checkpoint_dir=str(directory) if directory else None,
    )
    return history, model.get_weights()


@pytest.fixture(scope="module")
def whole(data: Path) -> Any:
    return _train(data)


def test_phases_learn_and_the_rate_falls_on_plateaus(whole):
    """Otherwise the tests below would prove nothing."""
    history, _ = whole
    assert {len(values) for values in history.values()} == {EPOCHS}
    rates = history["learning_rate"]
    assert rates[FIRST_PHASE - 1] > 0.02 and rates[FIRST_PHASE] == pytest.approx(0.02)
    assert rates[-1] < 0.02


@pytest.mark.usefixtures("listening")
@pytest.mark.parametrize(
    ("stop", "place"),
    [
        ((FIRST_PHASE, 0), "epoch 3 of 5"),
        ((3, 4), "epoch 4 of 5, after batch 4"),
    ],
    ids=["between the phases", "in the second phase"],
)
def test_history_rates_and_weights_are_those_of_an_uninterrupted_training(
    data, whole, tmp_path, monkeypatch, stop, place
):
    with pytest.raises(interrupt.Interrupted):
        _train(data, tmp_path, stop)
    interrupt.listen()
    log = tmp_path / "progress.jsonl"
    monkeypatch.setenv(progress.PROGRESS_FILE, str(log))
    history, weights = _train(data, tmp_path)
    expected, expected_weights = whole
    lines = [line["line"] for line in progress.read(log)[0]]
    assert lines == [f"restored: training resumes with {place}"]
    assert history.keys() == expected.keys()
    for name, values in expected.items():
        assert history[name] == pytest.approx(values, rel=1e-6), name
    for weight, values in zip(weights, expected_weights, strict=True):
        assert weight == pytest.approx(values, rel=1e-5)
