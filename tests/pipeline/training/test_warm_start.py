"""Warm start: weights from a SavedModel of ours, or from a file of weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sluice import progress
from sluice.errors import NodeError

pytestmark = pytest.mark.tf


def _model(units: int = 3, *, seed: int = 1, more: bool = False) -> Any:
    import tensorflow as tf

    layers = tf.keras.layers
    tf.keras.backend.reset_uids()
    tf.keras.utils.set_random_seed(seed)
    inputs = tf.keras.Input((2,))
    x = layers.Normalization()(inputs)
    nested = tf.keras.Sequential([layers.Dense(4), layers.BatchNormalization()])
    x = nested(x)
    if more:
        x = layers.Dense(4, name="more")(x)
    model = tf.keras.Model(inputs, layers.Dense(units)(x))
    random = np.random.default_rng(seed)
    for weight in model.weights:
        if weight.shape.rank:
            weight.assign(random.uniform(0.5, 1, weight.shape))
    for layer in model.layers:
        layer.finalize_state()
    return model


def _save(model: Any, path: Path) -> Path:
    """Writes a model as a directory (as ``export_model`` does) or a file of weights."""
    import tensorflow as tf

    if path.suffix == ".h5":
        model.save_weights(path)
    else:
        exported = tf.Module()
        exported.variables_of_model = list(model.variables)
        tf.saved_model.save(exported, str(path))
    return path


FORMS = ["exported", "model.weights.h5", "weights.h5"]
IMAGES = np.random.default_rng(3).random((4, 2))


@pytest.mark.parametrize("form", FORMS)
def test_the_model_predicts_as_the_one_it_starts_from(tmp_path, form):
    import tensorflow as tf

    from pipeline.training.warm_start import warm_start

    base = _model(seed=1)
    path = _save(base, tmp_path / form)
    with tf.distribute.MirroredStrategy(["CPU:0"]).scope():
        model = _model(seed=2)
    assert not np.allclose(model(IMAGES), base(IMAGES))
    warm_start(model, "served", str(path))
    np.testing.assert_array_equal(model(IMAGES), base(IMAGES))


@pytest.mark.parametrize(
    ("form", "what"),
    [
        ("exported", r"(?s)kernel \[4, 3\]\n.*kernel \[4, 5\]\n.*more/bias \[4\]\n"),
        ("model.weights.h5", "do not fit the model.*more/kernel"),
        ("weights.h5", "do not fit the model.*Layer count mismatch"),
    ],
)
def test_another_architecture_names_the_layers(tmp_path, form, what):
    from pipeline.training.warm_start import warm_start

    path = _save(_model(units=3), tmp_path / form)
    with pytest.raises(NodeError, match=what) as caught:
        warm_start(_model(units=5, more=True), "latest", str(path))
    assert caught.value.where == str(path)


@pytest.mark.parametrize(
    ("form", "what"), [("exported", "needs a SavedModel"), ("w.h5", "is damaged")]
)
def test_a_damaged_model_is_named(tmp_path, form, what):
    from pipeline.training.warm_start import warm_start

    path = _save(_model(), tmp_path / form)
    damaged = path / "saved_model.pb" if path.is_dir() else path
    damaged.write_bytes(damaged.read_bytes()[:100])
    with pytest.raises(NodeError, match=what):
        warm_start(_model(), "latest", str(path))


def test_without_a_model_the_weights_stay(tmp_path, monkeypatch):
    from pipeline.training.warm_start import warm_start

    reports = tmp_path / "reports"
    monkeypatch.setenv(progress.PROGRESS_FILE, str(reports))
    model = _model()
    before = model(IMAGES)
    warm_start(model, "served", None)
    np.testing.assert_array_equal(model(IMAGES), before)
    ((report,), _) = progress.read(reports)
    line = "warm start: there is no model for 'served' yet, weights are initial"
    assert (report["line"], report["note"]) == (line, True)
