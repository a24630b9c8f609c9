"""The parts of training that a full run cannot show by itself."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from sluice import progress
from sluice.compat import teach_autograph
from sluice.project import own_root

pytestmark = pytest.mark.tf

MIRRORED = """
from sluice.compat import prepare_environment, teach_autograph
prepare_environment()
import tensorflow as tf
cpu = tf.config.list_physical_devices("CPU")[0]
two = [tf.config.LogicalDeviceConfiguration()] * 2
tf.config.set_logical_device_configuration(cpu, two)
real = tf.config.list_logical_devices
# Two logical CPUs stand in for two GPUs; the strategy and its replicas are real.
tf.config.list_logical_devices = lambda kind: real("CPU" if kind == "GPU" else kind)
from pipeline.training.strategy import choose_strategy
teach_autograph()
strategy, line = choose_strategy()
with strategy.scope():
    dense = tf.keras.layers.Dense(1, use_bias=False, kernel_initializer="ones")
    model = tf.keras.Sequential([tf.keras.Input((1,)), dense])
    model.compile(optimizer=tf.keras.optimizers.SGD(0.1), loss="mse")
data = tf.data.Dataset.from_tensor_slices(([[1.0], [3.0]], [[0.0], [0.0]])).batch(2)
model.fit(data, verbose=0)
import json
weight = model.get_weights()[0].item()
print(json.dumps([strategy.num_replicas_in_sync, line, weight]))
"""


def test_two_accelerators_are_mirrored_and_gradients_averaged() -> None:
    done = subprocess.run(
        [sys.executable, "-c", MIRRORED],
        cwd=own_root(),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    replicas, line, weight = json.loads(done.stdout.splitlines()[-1])
    assert replicas == 2
    assert line == ("mirrored over 2 GPUs, gradients are averaged at each step")
    # d/dw mean((w x)^2) at w = 1 over x = 1, 3 is 10, over both replicas together.
    assert weight == pytest.approx(1.0 - 0.1 * 10.0)


def test_one_accelerator_or_none_trains_plainly(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import tensorflow as tf

    from pipeline.training.strategy import choose_strategy

    gpus: list[str] = []
    monkeypatch.setattr(tf.config, "list_logical_devices", lambda kind: gpus)
    strategy, line = choose_strategy()
    assert strategy.num_replicas_in_sync == 1
    assert line == "plain training on CPU, no accelerator found"
    gpus.append("GPU:0")
    assert choose_strategy()[1] == "plain training on one GPU"


def test_epochs_are_counted_over_the_whole_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import tensorflow as tf

    from pipeline.training.run_fn import ReportEpochs

    path = tmp_path / "progress.jsonl"
    monkeypatch.setenv(progress.PROGRESS_FILE, str(path))
    teach_autograph()
    model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1)])
    model.compile(loss="mse")
    data = tf.data.Dataset.from_tensor_slices(([[1.0]], [[0.0]])).batch(1)
    # The fourth epoch was cut: it has a fit of its own.
    for first, until in [(3, 4), (4, 6)]:
        callbacks = [ReportEpochs(6)]
        model.fit(
            data, initial_epoch=first, epochs=until, callbacks=callbacks, verbose=0
        )
    lines, _ = progress.read(path)
    assert [(line["epoch"], line["epochs"]) for line in lines] == [
        (4, 6),
        (5, 6),
        (6, 6),
    ]
    assert set(lines[0]["metrics"]) == {"loss"}


def test_autograph_leaves_keras_alone_and_converts_a_users_call() -> None:
    import tensorflow as tf
    import tf_keras
    from tensorflow.python.autograph.impl import conversion

    class Doubling(tf.keras.layers.Layer):
        def call(self, x):
            # A Python `if` on a tensor raises unless AutoGraph has converted it.
            if tf.reduce_sum(x) > 0:
                return x * 2
            return x

    teach_autograph()
    assert conversion.is_allowlisted(tf_keras.Model.fit)
    assert not conversion.is_allowlisted(Doubling.call)
    inputs = tf.keras.Input((1,))
    model = tf.keras.Model(inputs, Doubling()(inputs))
    model.compile(loss="mse")
    assert model.predict(tf.constant([[3.0]]), verbose=0).tolist() == [[6.0]]
    assert model.predict(tf.constant([[-3.0]]), verbose=0).tolist() == [[-3.0]]


def test_images_of_any_size_and_format_are_decoded_to_the_declared_size() -> None:
    import tensorflow as tf

    from pipeline.config.feature_set import Feature
    from pipeline.training.input_pipeline import decode_images

    white = tf.fill([4, 6, 3], tf.constant(255, tf.uint8))
    encoded = [tf.io.encode_png(white), tf.io.encode_jpeg(white[:, :, :1])]
    feature = Feature("x", "image", {"height": 2, "width": 3, "channels": 1})
    features = {"x_xf": tf.reshape(tf.stack(encoded), [2, 1])}
    pixels = decode_images(features, {"x_xf": feature})["x_xf"]
    assert pixels.shape == (2, 2, 3, 1)
    assert abs(pixels.numpy() - 1.0).max() < 0.01


def test_a_dataset_is_one_epoch_in_a_new_order_each_time(tmp_path: Path) -> None:
    import tensorflow as tf

    from pipeline.config.feature_set import Feature, FeatureSet, Label
    from pipeline.training.input_pipeline import make_dataset
    from sample_data.tf_example import encode

    path = str(tmp_path / "examples.gz")
    with tf.io.TFRecordWriter(path, "GZIP") as writer:
        for i in range(100):
            writer.write(encode({"a_xf": [float(i)], "y_xf": [i % 2]}))

    class Output:
        def transformed_feature_spec(self):
            return {
                "a_xf": tf.io.FixedLenFeature([1], tf.float32),
                "y_xf": tf.io.FixedLenFeature([1], tf.int64),
            }

    feature_set = FeatureSet((Feature("a", "numeric"),), Label("y", (0, 1)))

    def epoch(dataset) -> list[float]:
        return [
            value
            for features, _ in dataset
            for value in features["a_xf"].numpy()[:, 0].tolist()
        ]

    common = {"batch_size": 32}
    plain = make_dataset([path], Output(), feature_set, **common)
    assert epoch(plain) == list(map(float, range(100)))
    shuffled = make_dataset([path], Output(), feature_set, shuffle_seed=1, **common)
    first, second = epoch(shuffled), epoch(shuffled)
    assert sorted(first) == sorted(second) == list(map(float, range(100)))
    assert first != second
    again = make_dataset([path], Output(), feature_set, shuffle_seed=1, **common)
    assert epoch(again) == first
