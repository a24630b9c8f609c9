"""A model of Keras 3 is trained as the same model of tf_keras is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytestmark = [pytest.mark.tf, pytest.mark.acceptance]
DONE = 0
SETTINGS: dict[str, Any] = {
    "class_weights": {1: 3.0},
    "optimizer": {"class": "SGD", "params": {"momentum": 0.9}},
    "weight_decay": 0.1,
    "learning_rate": {"kind": "cosine", "initial": 0.1, "warmup_epochs": 1.0},
    "metrics": ["BinaryAccuracy", "AUC", "Precision"],
}


@pytest.mark.parametrize(
    "train",
    [{"clip_gradients": {"global_norm": 1.0}}, {"steps_per_execution": 4}],
    ids=["one step", "several steps"],
)
def test_equal_models_learn_the_same(trainings, tmp_path, train):
    legacy, new = both(trainings, tmp_path, {**SETTINGS, **train})
    assert new.history.keys() == legacy.history.keys()
    for name in legacy.history.keys() - {"learning_rate"}:  # That of the next step.
        assert new.history[name] == pytest.approx(legacy.history[name], rel=1e-3), name
    assert_equal_weights(legacy, new)


def test_equal_models_learn_the_same_on_several_replicas(trainings, tmp_path):
    """Also the statistics of batch normalization are those of all replicas."""
    legacy, new = both(trainings, tmp_path, {**SETTINGS, "replicas": 2})
    for name in ("loss", "binary_accuracy", "auc", "precision"):
        assert new.history[name] == pytest.approx(legacy.history[name], rel=1e-3), name
    assert_equal_weights(legacy, new)


# Of 79 examples in batches of 6, the last has one for two replicas.
@pytest.mark.parametrize(
    ("model", "train"),
    [
        ("build_own_keras_3", {}),
        ("build_own_keras_3", {"replicas": 2}),
        ("build_own_keras_3", {"replicas": 2, "batch_size": 6}),
        ("build_model", {"replicas": 2}),
    ],
)
def test_what_is_served_is_what_was_validated(trainings, data, tmp_path, model, train):
    """Without randomness, also of a model with a layer and a step of its own."""
    import tensorflow as tf

    work = trainings.folder(tmp_path)
    code = trainings.run(tmp_path, train, model=model, export="real")
    assert code == DONE, work.log
    assert work.history["val_binary_accuracy"][-1] > 0.6
    served = tf.saved_model.load(f"{tmp_path}/out/model").signatures["serving_default"]
    files = tf.io.gfile.glob(f"{data}/eval*")
    records = [*tf.data.TFRecordDataset(files, "GZIP").as_numpy_iterator()]
    first, again = (served(tf.constant(records))["probabilities"] for _ in range(2))
    assert np.array_equal(first, again)
    spec = {"y": tf.io.FixedLenFeature([1], tf.int64)}
    labels = tf.io.parse_example(records, spec)["y"]
    losses = tf.keras.losses.binary_crossentropy(labels, first)
    assert float(np.mean(losses)) == pytest.approx(work.history["val_loss"][-1], 1e-4)


def both(trainings: Any, path: Any, train: dict[str, Any]) -> list[Any]:
    """Returns the folders of both trainings."""
    works = []
    for model in ("build_equal", "build_equal_keras_3"):
        works.append(trainings.folder(path / model))
        code = trainings.run(path / model, train, model=model, export="real")
        assert code == DONE, works[-1].log
    return works


def assert_equal_weights(legacy: Any, new: Any) -> None:
    pairs = zip(legacy.weights.values(), new.weights.values(), strict=True)
    for values, others in pairs:
        assert np.allclose(values, others, rtol=1e-3, atol=1e-4)
