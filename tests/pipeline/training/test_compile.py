"""Optimizers, losses and metrics by name, compared with Keras itself."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from pipeline.config.label import Label
from pipeline.config.train import KerasObject
from pipeline.training.compile import (
    compile_model,
    make_loss,
    make_metrics,
    make_optimizer,
)
from sluice.errors import NodeError
from sluice.patches.tensorflow import exclude_keras_from_autograph
from tests.kit.trainings import settings

pytestmark = pytest.mark.tf

CLIPS = ("clipnorm", "global_clipnorm", "clipvalue")


def label(classes: int) -> Label:
    return Label(feature="y", classes=tuple(range(classes)))


def spec(name: str, **params: Any) -> KerasObject:
    return KerasObject.model_validate({"class": name, "params": params})


def small_model(classes: int, normalize: bool = False) -> Any:
    import tensorflow as tf

    tf.keras.utils.set_random_seed(3)
    layers = tf.keras.layers
    inputs = tf.keras.Input((2,), name="x")
    x = layers.Dense(3, name="hidden")(inputs)
    if normalize:
        x = layers.BatchNormalization(name="normal")(x)
    units, activation = (1, "sigmoid") if classes == 2 else (classes, "softmax")
    outputs = layers.Dense(units, activation, name="out")(x)
    return tf.keras.Model(inputs, outputs)


def compiled(classes: int = 2, *, normalize: bool = False, **given: Any) -> Any:
    import tensorflow as tf

    from pipeline.training.strategy.distribution import Distribution

    model = small_model(classes, normalize)
    one = Distribution(tf.distribute.get_strategy(), "one_device", "", 8)
    compile_model(
        model,
        settings(epochs=4, **given),
        label(classes),
        steps_per_epoch=5,
        distribution=one,
    )
    model.run_eagerly = True  # Tracing each optimizer would take a second.
    return model


def data(classes: int = 2) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(4)
    x = random.normal(size=(8, 2)).astype("float32")
    return x, random.integers(0, classes, size=(8, 1))


@pytest.fixture(scope="module", autouse=True)
def as_in_a_training() -> None:
    exclude_keras_from_autograph()


@pytest.mark.parametrize(
    ("classes", "losses", "metrics"),
    [
        (2, ["BinaryCrossentropy", "Hinge"], ["BinaryAccuracy", "Precision"]),
        (
            4,
            ["SparseCategoricalCrossentropy", "CategoricalCrossentropy", "Poisson"],
            ["SparseCategoricalAccuracy", "CategoricalAccuracy", "F1Score"],
        ),
    ],
)
def test_losses_and_metrics_get_the_labels_that_they_take(classes, losses, metrics):
    import tensorflow as tf

    x, ids = data(classes)
    predictions = small_model(classes).predict(x, verbose=0)
    weights = np.linspace(0, 1, len(ids))
    one_hot = np.eye(classes, dtype=np.float32)[ids[:, 0]]

    def labels(name: str) -> Any:
        is_id = classes == 2 or name.startswith("Sparse")
        return ids.astype("float32") if is_id else one_hot

    for name in losses:
        expected = getattr(tf.keras.losses, name)()(labels(name), predictions, weights)
        found = make_loss(spec(name), label(classes))(ids, predictions, weights)
        assert float(found) == pytest.approx(float(expected), rel=1e-6), name
    for name in metrics:
        params = {"average": "macro"} if name == "F1Score" else {}
        expected = getattr(tf.keras.metrics, name)(**params)
        expected.update_state(labels(name), predictions)
        (metric,) = make_metrics([spec(name, **params)], label(classes))
        metric.update_state(ids, predictions)
        assert float(metric.result()) == pytest.approx(float(expected.result())), name


def step_of_gradients(model: Any, x: np.ndarray, ids: np.ndarray) -> list[np.ndarray]:
    import tensorflow as tf

    with tf.GradientTape() as tape:
        loss = model.loss(ids, model(x, training=True))
    gradients = tape.gradient(loss, model.trainable_variables)
    return [gradient.numpy() for gradient in gradients]


@pytest.mark.parametrize(
    ("key", "attribute"),
    [("norm", "clipnorm"), ("global_norm", "global_clipnorm"), ("value", "clipvalue")],
)
def test_gradients_are_clipped(key, attribute):
    """Keras clips; an optimizer that ignores an argument would train on silently."""
    optimizer = compiled(clip_gradients={key: 0.05}).optimizer
    limits = {name: getattr(optimizer, name) for name in CLIPS}
    assert limits == {**dict.fromkeys(CLIPS), attribute: 0.05}


def test_replicas_share_the_limit_where_each_clips_its_own():
    """As Keras 3 does; tf_keras clips their sum."""
    import keras
    import tensorflow as tf

    train = settings(clip_gradients={"global_norm": 1.0})
    shared = make_optimizer(train, 0.1, keras, replicas=4)
    assert (shared.clipnorm, shared.global_clipnorm) == (None, 0.25)
    assert make_optimizer(train, 0.1, tf.keras, replicas=4).global_clipnorm == 1.0


def test_weights_decay_but_not_biases_and_normalization():
    rate, decay = 0.1, 0.3
    model = compiled(
        normalize=True, optimizer=spec("SGD"), learning_rate=rate, weight_decay=decay
    )
    x, ids = data()
    for variable in model.trainable_variables:
        variable.assign_add(np.ones(variable.shape))
    gradients = step_of_gradients(model, x, ids)
    before = [variable.numpy() for variable in model.trainable_variables]
    model.train_on_batch(x, ids)

    names = [variable.name for variable in model.trainable_variables]
    rows = zip(names, model.trainable_variables, before, gradients, strict=True)
    for name, variable, old, gradient in rows:
        kept = 1.0 - rate * decay if "kernel" in name else 1.0
        expected = old * kept - rate * gradient
        np.testing.assert_allclose(variable, expected, rtol=1e-4, atol=1e-6)
    assert sum("kernel" in name for name in names) == 2
    assert sum("gamma" in name or "beta" in name for name in names) == 2


def test_weights_of_examples_count_in_metrics_without_a_warning():
    model = compiled(metrics=[spec("BinaryAccuracy")])
    x, ids = data()
    right = (model.predict(x, verbose=0) >= 0.5) == ids
    weights = np.where(right[:, 0], 3.0, 1.0)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = model.test_on_batch(x, ids, weights, return_dict=True)

    expected = 3 * right.sum() / weights.sum()
    assert found["binary_accuracy"] == pytest.approx(expected)


def test_a_value_that_keras_refuses():
    with pytest.raises(NodeError, match="AUC: .*ROCK") as caught:
        make_metrics([spec("AUC", curve="ROCK")], label(2))

    assert caught.value.where == "train.metrics[0]"
    with pytest.raises(NodeError, match="SGD: "):
        compiled(optimizer=spec("SGD", momentum=2.0))


@pytest.mark.parametrize("offset", [0.0, -6.0, -14.0])
@pytest.mark.parametrize("labels", ["one", "several"])
def test_areas_are_exact_however_small_the_probabilities(labels, offset):
    from sklearn import metrics

    chance = np.random.default_rng(4)
    scores = chance.normal(0.0, 1.5, (5_000, 2))
    truth = chance.random((5_000, 2)) < 1 / (1 + np.exp(3 - scores))
    given = 1 / (1 + np.exp(-(scores + offset).astype(np.float32)))
    of = label(2)
    if labels == "several":
        of = Label(feature="y", task="multi_label", classes=("a", "b"))
    else:
        truth, given, scores = (x[:, :1] for x in (truth, given, scores))
    specs = [spec("AUC"), spec("AUC", curve="PR")]
    specs += [spec("SensitivityAtSpecificity", specificity=0.8)]
    found = make_metrics(specs, of)
    for metric in found:
        for batch in np.array_split(np.arange(5_000), 5):
            metric.update_state(truth[batch].astype(np.float32), given[batch])
    flat, scores = truth.ravel(), given.ravel()
    fpr, tpr, _ = metrics.roc_curve(flat, scores)
    expected = (
        metrics.roc_auc_score(flat, scores),
        metrics.average_precision_score(flat, scores),
        tpr[fpr <= 0.2].max(),
    )
    assert [float(x.result()) for x in found] == pytest.approx(expected, abs=0.01)


def test_thresholds_of_a_config_are_of_the_probability():
    (metric,) = make_metrics([spec("AUC", thresholds=[0.5])], label(2))
    metric.update_state([[0.0], [1.0], [0.0]], [[0.4], [0.1], [0.2]])
    assert float(metric.result()) == 0.5  # None is above 0.5.
