"""Optimizers, losses and metrics by name, compared with Keras itself."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import numpy as np
import pytest

from pipeline.config.features import Label
from pipeline.config.train import KerasObject
from pipeline.training.compile import compile_model, make_loss, make_metrics
from sluice.errors import NodeError
from sluice.metrics import OF_EVERY_THRESHOLD, result_name
from sluice.patches.tensorflow import exclude_keras_from_autograph
from tests.kit.trainings import settings

pytestmark = pytest.mark.tf

# Not for one class id and one prediction per example.
_OTHERS = """
    Optimizer Loss Metric Accuracy BinaryIoU IoU Mean MeanIoU MeanMetricWrapper
    MeanRelativeError MeanTensor OneHotIoU OneHotMeanIoU R2Score Sum
""".split()


CLIPS = ("clipnorm", "global_clipnorm", "clipvalue")


def label(classes: int) -> Label:
    return Label(feature="y", classes=tuple(range(classes)))


def spec(name: str, **params: Any) -> KerasObject:
    return KerasObject.model_validate({"class": name, "params": params})


def specs_of(kind: str, classes: int) -> list[KerasObject]:
    """Returns all losses or metrics of Keras that fit, with what they require."""
    import tensorflow as tf

    namespace = getattr(tf.keras, kind)
    base = {"losses": "Loss", "metrics": "Metric"}[kind]
    found = []
    for name, item in vars(namespace).items():
        is_class = inspect.isclass(item) and issubclass(item, getattr(namespace, base))
        if name in _OTHERS or not is_class or (classes == 2 and "Categorical" in name):
            continue
        parameters = inspect.signature(item).parameters.values()
        required: dict[str, Any] = {
            parameter.name: 0.5
            for parameter in parameters
            if parameter.default is parameter.empty
            and parameter.kind == parameter.POSITIONAL_OR_KEYWORD
        }
        if "average" in inspect.signature(item).parameters:
            required["average"] = "macro"
        found.append(spec(name, **required))
    return found


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


@pytest.mark.parametrize("classes", [2, 4])
def test_every_loss_and_metric_that_fits(classes):
    import tensorflow as tf

    specs = specs_of("metrics", classes)
    names = [result_name(item.class_name) for item in specs]
    model = compiled(classes, metrics=specs)
    x, ids = data(classes)
    found = model.train_on_batch(x, ids, return_dict=True)
    assert list(found) == ["loss", *names]
    assert all(np.isfinite(value) and np.ndim(value) == 0 for value in found.values())

    # Each as Keras computes it from the labels that it takes.
    x, ids = data(classes)
    predictions = model.predict(x, verbose=0)
    for given, item in zip(specs, make_metrics(specs, label(classes)), strict=True):
        name, params = given.class_name, dict(given.params)
        if name in OF_EVERY_THRESHOLD:  # At finer thresholds, see below.
            continue
        if classes == 2 and name in ("F1Score", "FBetaScore"):
            params["threshold"] = 0.5
        keras = getattr(tf.keras.metrics, name)(**params)
        sparse = classes == 2 or name.startswith("Sparse")
        keras.update_state(
            ids.astype("float32")
            if sparse
            else np.eye(classes)[ids[:, 0]].astype("float32"),
            predictions,
        )
        item.update_state(ids, predictions)
        assert item.result().numpy() == pytest.approx(keras.result().numpy()), name


@pytest.mark.parametrize("classes", [2, 4])
def test_every_loss_that_fits(classes):
    import tensorflow as tf

    x, ids = data(classes)
    predictions = small_model(classes).predict(x, verbose=0)
    weights = np.linspace(0, 1, len(ids))
    for name in (item.class_name for item in specs_of("losses", classes)):
        keras = getattr(tf.keras.losses, name)()
        sparse = classes == 2 or name.startswith("Sparse")
        labels = (ids if sparse else np.eye(classes)[ids[:, 0]]).astype("float32")
        expected = keras(labels, predictions, weights).numpy()
        found = make_loss(spec(name), label(classes))(ids, predictions, weights).numpy()
        assert found == pytest.approx(expected, rel=1e-6), name


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
