"""Early stopping, plateaus, TensorBoard and the user's callbacks in a training."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pipeline.config.learning_rate import Cosine
from pipeline.config.train import EarlyStopping, TensorBoard
from sluice.errors import NodeError
from tests.kit.small_training import train, write_examples

pytestmark = pytest.mark.tf

Trained = Callable[..., tuple[dict[str, list[float]], Any]]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """Trains with the settings that it is given."""
    return partial(train, write_examples(tmp_path_factory.mktemp("examples")))


def adds_a_metric(name: str, values: list[float]) -> Any:
    """A user's function that makes a callback."""
    import tensorflow as tf

    class AddMetric(tf.keras.callbacks.Callback):
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            assert logs is not None and "learning_rate" in logs
            logs[name] = values[epoch]

    return AddMetric()


def own(name: str = "mine", values: tuple[float, ...] = ()) -> list[dict[str, Any]]:
    params = {"name": name, "values": list(values)}
    return [{"function": f"{__name__}:adds_a_metric", "params": params}]


def test_early_stopping_keeps_the_best_weights(trained):
    stopping = EarlyStopping(metric="mine", mode="max", patience=2)
    history, model = trained(
        epochs=9,
        early_stopping=stopping,
        callbacks=own(values=(1, 3, 2, 2, 9, 9, 9, 9, 9)),
    )
    assert history["mine"] == [1, 3, 2, 2]
    _, best = trained(epochs=2)
    for found, expected in zip(model.get_weights(), best.get_weights(), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_a_metric_that_does_not_exist_fails_after_the_first_epoch(trained):
    with pytest.raises(NodeError, match="no metric 'val_los'") as caught:
        trained(early_stopping=EarlyStopping(metric="val_los", mode="min"))

    assert "among learning_rate, loss, val_loss" in str(caught.value)
    assert caught.value.where == "train.early_stopping.metric"
    assert caught.value.hint == "did you mean 'val_loss'?"


def test_tensorboard(trained, tmp_path):
    import tensorflow as tf
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    settings = TensorBoard(histograms=2, graph=True, profile=3)
    history, _ = trained(
        learning_rate=Cosine(initial=0.1),
        tensorboard=settings,
        tensorboard_dir=str(tmp_path),
    )

    train = EventAccumulator(str(tmp_path / "train")).Reload()
    validation = EventAccumulator(str(tmp_path / "validation")).Reload()
    assert "epoch_learning_rate" in train.Tags()["tensors"]
    losses = [
        float(tf.make_ndarray(event.tensor_proto))
        for event in validation.Tensors("epoch_loss")
    ]
    np.testing.assert_allclose(losses, history["val_loss"], rtol=1e-5)
    kernel = next(tag for tag in train.Tags()["tensors"] if "kernel" in tag)
    assert [event.step for event in train.Tensors(kernel)] == [0, 2]
    assert train.Tags()["graph"]
    assert list(tmp_path.rglob("*.xplane.pb"))


def test_images_of_the_first_batch(tmp_path):
    import tensorflow as tf
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    from pipeline.training.callbacks import log_images

    pixels = np.random.default_rng(1).random((4, 8, 8, 3)).astype("float32")
    features = {"photo_xf": pixels, "fare_xf": np.ones((4, 1))}
    training_input: Any = SimpleNamespace(first_features=lambda: features)
    log_images(training_input, str(tmp_path), 3)

    logged = EventAccumulator(str(tmp_path / "images")).Reload()
    (tag,) = logged.Tags()["tensors"]
    (event,) = logged.Tensors(tag)
    width, height, *pngs = tf.make_ndarray(event.tensor_proto)
    assert (tag, width, height, len(pngs)) == ("photo_xf", b"8", b"8", 3)
    shown = tf.io.decode_png(pngs[0]).numpy()
    np.testing.assert_allclose(shown, pixels[0] * 255, atol=1)
