"""Early stopping, plateaus, TensorBoard and the user's callbacks in a training."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pipeline.config.learning_rate import Constant, Cosine
from pipeline.config.train import EarlyStopping, ReduceOnPlateau, TensorBoard
from sluice import progress
from sluice.errors import NodeError

pytestmark = pytest.mark.tf

STEPS = 5
Trained = Callable[..., tuple[dict[str, list[float]], Any]]


def adds_a_metric(name: str, values: list[float]) -> Any:
    """A user's function that makes a callback."""
    import tensorflow as tf

    class AddMetric(tf.keras.callbacks.Callback):
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            assert logs is not None and "learning_rate" in logs
            logs[name] = values[epoch]

    return AddMetric()


def not_a_callback() -> str:
    return "no"


def own(name: str = "mine", values: tuple[float, ...] = ()) -> list[dict[str, Any]]:
    params = {"name": name, "values": list(values)}
    return [{"function": f"{__name__}:adds_a_metric", "params": params}]


@pytest.mark.parametrize("warmup", [0.0, 1.0])
def test_a_plateau_reduces_a_number_and_a_schedule(trained, warmup):
    plateau = ReduceOnPlateau(
        metric="mine", mode="min", patience=1, factor=0.1, min_learning_rate=0.002
    )
    history, model = trained(
        epochs=5,
        learning_rate=Constant(initial=0.1, warmup_epochs=warmup),
        reduce_on_plateau=plateau,
        callbacks=own(values=(3, 2, 2, 2, 1)),
    )

    first = 0.1 * (STEPS - 1) / STEPS if warmup else 0.1
    assert history["learning_rate"] == pytest.approx([first, 0.1, 0.1, 0.01, 0.002])
    assert "lr" not in history
    assert model.optimizer.learning_rate.numpy() == pytest.approx(0.002)


def test_a_checkpoint_contains_the_factor_of_a_plateau(trained, tmp_path):
    import tensorflow as tf

    schedule = Constant(initial=0.1, warmup_epochs=1)
    plateau = ReduceOnPlateau(metric="mine", mode="min", patience=1, factor=0.5)
    _, reduced = trained(
        epochs=3,
        learning_rate=schedule,
        reduce_on_plateau=plateau,
        callbacks=own(values=(1, 1, 1)),
    )
    path = tf.train.Checkpoint(model=reduced).save(str(tmp_path / "ckpt"))
    _, other = trained(epochs=1, learning_rate=schedule)
    tf.train.Checkpoint(model=other).restore(path).assert_existing_objects_matched()

    assert other.optimizer.iterations.numpy() == 15
    one = np.ones((1, 1))
    other.train_on_batch({"fare_xf": one, "income_xf": one}, one)
    assert other.optimizer.learning_rate.numpy() == pytest.approx(0.025)


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
        trained(early_stopping=EarlyStopping(metric="val_los"))

    assert "among learning_rate, loss, val_loss" in str(caught.value)
    assert caught.value.where == "train.early_stopping.metric"
    assert caught.value.hint == "did you mean 'val_loss'?"


def test_a_function_that_returns_no_callback(trained):
    with pytest.raises(NodeError, match="returns str, which is no tf.keras.callbacks"):
        trained(callbacks=[f"{__name__}:not_a_callback"])


def test_a_log_that_is_not_a_number_names_its_key(trained):
    with pytest.raises(NodeError, match="has logged 'mine', which is not a") as caught:
        trained(callbacks=own(values=["high"]))  # type: ignore

    assert caught.value.where == f"train.callbacks: {__name__}:adds_a_metric"
    assert "'high'" in str(caught.value)


def stops_after(epoch: int) -> Any:
    """A user's function that makes a callback."""
    import tensorflow as tf

    class Stop(tf.keras.callbacks.Callback):
        def on_epoch_end(self, ended: int, logs: Any = None) -> None:
            self.model.stop_training = ended + 1 == epoch

    return Stop()


def test_a_stop_by_a_callback_is_noted(trained, tmp_path, monkeypatch):
    file = tmp_path / "progress"
    monkeypatch.setenv(progress.PROGRESS_FILE, str(file))
    function = f"{__name__}:stops_after"
    history, _ = trained(callbacks=[{"function": function, "params": {"epoch": 2}}])

    assert len(history["loss"]) == 2
    lines = [item["line"] for item in progress.read(file)[0] if item.get("note")]
    line = f"training stopped by train.callbacks after epoch 2: {function}"
    assert lines == [line]


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

    from pipeline.training.callbacks.tensorboard import ImageLog

    pixels = np.random.default_rng(1).random((4, 8, 8, 3)).astype("float32")
    batch = ({"photo_xf": pixels, "fare_xf": np.ones((4, 1))}, np.ones((4, 1)))

    class Input:
        """The part of TrainingInput that is used."""

        def first_features(self) -> Any:
            return batch[0]

    images: Any = ImageLog(Input(), tmp_path, 3)  # type: ignore[arg-type]
    images.set_model(tf.keras.Sequential())
    images.on_epoch_begin(0)
    images.on_epoch_begin(1)

    logged = EventAccumulator(str(tmp_path / "images")).Reload()
    (tag,) = logged.Tags()["tensors"]
    (event,) = logged.Tensors(tag)
    width, height, *pngs = tf.make_ndarray(event.tensor_proto)
    assert (tag, width, height, len(pngs)) == ("photo_xf", b"8", b"8", 3)
    shown = tf.io.decode_png(pngs[0]).numpy()
    np.testing.assert_allclose(shown, pixels[0] * 255, atol=1)
