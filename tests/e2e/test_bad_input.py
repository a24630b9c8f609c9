"""Types that change within the data, and user code: failing and working."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline.config.load import load_config
from sluice.record.run_record import RunRecord
from sluice.tfrecords import tfrecord
from sluice.workspace import locate

pytestmark = [pytest.mark.e2e, pytest.mark.acceptance]

MODELS = '''
import tensorflow as tf


class Raises(tf.keras.Model):
    def fit(self, *args, **kwargs):
        raise ValueError("no such layer: conv9d")


def raises(inputs, params):
    layers = inputs.keras_inputs()
    x = tf.keras.layers.Flatten()(layers["image_xf"])
    return Raises(layers, inputs.output_layer()(x))


class Capped(tf.keras.layers.Layer):
    """Uses Python control flow on tensors: works only if AutoGraph converts it."""

    def call(self, x):
        total = tf.reduce_sum(x)
        if total > 0:
            return x
        return tf.zeros_like(x)


def preprocess(inputs, custom_config):
    from pipeline.training.preprocessing import preprocessing_fn

    outputs = preprocessing_fn(inputs, custom_config)
    size = tf.strings.length(inputs["image"])
    outputs["bytes_in_image"] = tf.cast(size, tf.int64)
    return outputs


def uses_both(inputs, params):
    layers = inputs.keras_inputs()
    size = tf.cast(layers["bytes_in_image"], tf.float32)
    x = tf.keras.layers.Flatten()(layers["image_xf"])
    x = tf.keras.layers.Concatenate()([x, size / 1000.0])
    return tf.keras.Model(layers, inputs.output_layer()(x))


def small(inputs, params):
    layers = inputs.keras_inputs()
    x = Capped()(layers["image_xf"])
    x = tf.keras.layers.Flatten()(x)
    return tf.keras.Model(layers, inputs.output_layer()(x))
'''


@pytest.fixture
def small_project(project: Path, tmp_path: Path) -> Path:
    """A user's project with 120 digits per split and a custom model."""
    root = tmp_path / "mine"
    for folder in ("configs", "schemas"):
        shutil.copytree(project / folder, root / folder)
    (root / "my_models.py").write_text(MODELS)
    data = root / "data" / "digits"
    data.mkdir(parents=True)
    for split in ("train", "eval", "test"):
        shard = next((project / "data" / "digits").glob(f"{split}-00000-*"))
        tfrecord.write(data / f"{split}-0.tfrecord", list(tfrecord.read(shard))[:120])
    return root


@pytest.fixture
def run_small(small_project: Path, run_config) -> Callable[..., RunRecord]:
    from sluice.project import activate

    def run(*overrides: str, **options: Any) -> RunRecord:
        activate(small_project)
        # The labels of 120 records differ between splits by chance.
        small = ["validate.rules=[{anomaly: split_drift, action: warn}]"]
        config = load_config(
            "digits",
            cwd=small_project,
            overrides=["train.epochs=1", *small, *overrides],
        )
        return run_config(config, locate(small_project, "digits"), **options)

    return run


def _states(record: RunRecord) -> dict[str, str]:
    return {node.id: node.state for node in record.nodes}


def _nothing_pushed(project: Path) -> bool:
    serving = project / "workspace" / "digits" / "serving"
    return not serving.exists() or not any(p.name.isdigit() for p in serving.iterdir())


def test_user_code_that_raises_is_a_failed_node(small_project, run_small):
    record = run_small("model=my_models:raises")
    assert (record.status, record.exit_code) == ("failed", 7)
    assert record.error
    message = record.error.message
    assert "Trainer failed: ValueError: no such layer: conv9d" in message
    assert "my_models.py:7 in fit" in message
    assert record.error.log
    assert "Traceback" in Path(record.error.log).read_text()
    assert _states(record)["Evaluator"] == "not_reached"
    assert _nothing_pushed(small_project)

    # The data was fine and stays done; a model that does not reach the gate is kept.
    record = run_small("model=my_models:small")
    states = _states(record)
    assert states["TFRecordGen"] == states["Transform"] == "cached"
    assert states["Trainer"] == states["ModelVerdict"] == "ran"
    assert (record.status, record.exit_code) == ("blocked", 4)
    assert states["Pusher"] == record.pushes[0].state == "blocked"
    assert _nothing_pushed(small_project)


def test_custom_preprocessing_without_a_test_split(run_small):
    record = run_small(
        "preprocessing=my_models:preprocess",
        "model=my_models:uses_both",
        "data.splits.test=null",
        "evaluate.thresholds=[]",
    )
    assert record.status == "succeeded", record.error
    assert record.pushes[0].state == "pushed"
    rows = record.gate_rows("model")
    assert rows[0].actual == "eval"
    assert "no test split" in rows[0].why
