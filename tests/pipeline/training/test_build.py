"""Training step 2: the strategy, and a model that Keras may trace."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from sluice.compat import exclude_keras_from_autograph
from sluice.project import own_root

pytestmark = pytest.mark.tf

MIRRORED = """
from sluice.compat import prepare_environment, exclude_keras_from_autograph
prepare_environment()
import tensorflow as tf
cpu = tf.config.list_physical_devices("CPU")[0]
two = [tf.config.LogicalDeviceConfiguration()] * 2
tf.config.set_logical_device_configuration(cpu, two)
real = tf.config.list_logical_devices
# Two logical CPUs stand in for two GPUs; the strategy and its replicas are real.
tf.config.list_logical_devices = lambda kind: real("CPU" if kind == "GPU" else kind)
from pipeline.training.build import choose_strategy
exclude_keras_from_autograph()
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


def test_one_gpu_or_none_trains_without_distribution(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import tensorflow as tf

    from pipeline.training.build import choose_strategy

    gpus: list[str] = []
    monkeypatch.setattr(tf.config, "list_logical_devices", lambda kind: gpus)
    strategy, line = choose_strategy()
    assert strategy.num_replicas_in_sync == 1
    assert line == "plain training on CPU, no accelerator found"
    gpus.append("GPU:0")
    assert choose_strategy()[1] == "plain training on one GPU"


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

    exclude_keras_from_autograph()
    assert conversion.is_allowlisted(tf_keras.Model.fit)
    assert not conversion.is_allowlisted(Doubling.call)
    inputs = tf.keras.Input((1,))
    model = tf.keras.Model(inputs, Doubling()(inputs))
    model.compile(loss="mse")
    assert model.predict(tf.constant([[3.0]]), verbose=0).tolist() == [[6.0]]
    assert model.predict(tf.constant([[-3.0]]), verbose=0).tolist() == [[-3.0]]
