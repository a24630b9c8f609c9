"""What Keras, TFMA and the user's code refuse of a config before any node runs."""

from __future__ import annotations

import pytest

from pipeline.checks.check_config import validate_config
from pipeline.config.load import load_config
from sluice import secrets
from sluice.errors import ConfigError, ExitCode

pytestmark = pytest.mark.tf

OWN_CODE = """\
import tensorflow as tf

class Good(tf.keras.callbacks.Callback):
    def __init__(self, every=1):
        raise RuntimeError("called before the run")

def make(path):
    raise RuntimeError("called before the run")

def one_output(inputs, params):
    layers = inputs.keras_inputs()
    x = tf.keras.layers.Concatenate()(list(layers.values()))
    return tf.keras.Model(layers, tf.keras.layers.Dense(params.get("units", 1))(x))

class Distance(tf.keras.metrics.Mean):
    def __init__(self, power=1.0, name="distance", dtype=None):
        super().__init__(name, dtype)
        self.power = power

    def update_state(self, ids, predictions, sample_weight=None):
        right = tf.reduce_sum(predictions, 1) - tf.cast(ids[:, 0], tf.float32)
        return super().update_state(tf.abs(right) ** self.power, sample_weight)

    def get_config(self):
        return {"power": self.power, "name": self.name}

class Forgets(Distance):
    def get_config(self):
        return {"name": self.name}

class Largest(tf.keras.metrics.Metric):
    def __init__(self, name="largest", dtype=None):
        super().__init__(name, dtype)
        self.largest = self.add_weight(name="largest", initializer="zeros")

    def update_state(self, ids, predictions, sample_weight=None):
        self.largest.assign(tf.maximum(self.largest, tf.reduce_max(predictions)))

    def result(self):
        return self.largest

class AUC(Distance):
    pass

def raises(inputs, params):
    raise RuntimeError("no such layer")

def of_key(inputs, params):
    print("with", params["key"])
    raise RuntimeError("refused: " + params["key"])

def forgets_label(inputs, custom_config):
    return {"fare_xf": inputs["fare"]}

def raw_label(inputs, custom_config):
    return {"big_tip_xf": tf.cast(inputs["big_tip"], tf.float32)}

def keeps_rows(inputs, custom_config):
    return {"fare_xf": tf.identity(inputs["fare"]), "big_tip_xf": inputs["big_tip"]}

def number_of(name):
    return 3

number = 3
"""


@pytest.fixture
def check(project, monkeypatch):
    (project / "own_training_code.py").write_text(OWN_CODE)
    monkeypatch.syspath_prepend(str(project))

    def check(name, *overrides):
        from pipeline.checks.check_objects import check_objects

        config = load_config(name, cwd=project, overrides=overrides)
        check_objects(validate_config(config).config)

    return check


def _params(key, name, params):
    return f"{key}={{class: {name}, params: {{{params}}}}}"


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("train.optimizer=Adm", "did you mean 'Adam'?"),
        (_params("train.optimizer", "SGD", "momentun: 0.9"), "momentun"),
        (
            _params("train.loss", "CategoricalCrossentropy", "from_logits: true"),
            "remove from_logits",
        ),
        ("train.callbacks=[own_training_code:number]", "not a callable"),
        (
            "train.callbacks=[{function: own_training_code:Good, params: {evry: 2}}]",
            "unexpected keyword argument 'evry'",
        ),
        ("model=own_training_code:make", "too many positional arguments"),
        ("evaluate.metrics=[CategoricalAccuracy]", "for right and for wrong"),
    ],
)
def test_what_is_refused(check, override, message):
    key = override.partition("=")[0]
    with pytest.raises(ConfigError) as caught:
        check("digits", "evaluate.thresholds=[]", override)
    assert caught.value.exit_code == ExitCode.USAGE
    assert message in str(caught.value)
    assert key in str(caught.value)


@pytest.mark.parametrize(
    ("key", "names"),
    [
        (
            "train.loss",
            "Hinge BinaryCrossentropy KLDivergence MeanAbsolutePercentageError",
        ),
        ("train.metrics", "Accuracy AUC SparseCategoricalAccuracy FalsePositives"),
        ("evaluate.metrics", "AUC BinaryAccuracy NDCG ConfusionMatrixPlot"),
    ],
)
def test_what_is_not_for_a_regression(check, key, names):
    errors = []
    for name in names.split():
        value = f"[{name}]" if key != "train.loss" else name
        try:
            check("diabetes", "evaluate.thresholds=[]", f"{key}={value}")
            errors.append(f"{name} is not refused")
        except ConfigError as error:
            errors.append(str(error))
    assert [error for error in errors if key not in error] == [], errors
    assert key != "evaluate.metrics" or "AUC is not for a regression" in errors[0]


OWN_MODEL = "model=own_training_code:one_output"
OF_FARE = (
    "features=null",
    "evaluate.metrics=[AUC, MeanSquaredError, {class: Recall, average: macro}]",
    "evaluate.thresholds=[]",
)
KEEPS_ROWS = "preprocessing=own_training_code:keeps_rows"


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["preprocessing=own_training_code:forgets_label"], "'big_tip_xf', the label"),
        (
            ["preprocessing=own_training_code:raw_label", "train.sample_weight=fare"],
            "does not return the weights of 'fare' as 'sample_weight'",
        ),
        (
            ["preprocessing=own_training_code:raw_label"],
            "does not return the label of a classification",
        ),
        ([KEEPS_ROWS, OWN_MODEL, "model_params={units: 2}"], "expected: (None, 1)"),
        (["model=own_training_code:raises"], "RuntimeError: no such layer"),
    ],
)
def test_own_code_is_refused_before_a_node_runs(check, overrides, message):
    with pytest.raises(ConfigError) as caught:
        check("taxi", *overrides)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["train.loss=SparseCategoricalCrossentropy"], "train.loss"),
        (["train.metrics=[SparseCategoricalAccuracy]"], "train.metrics[0]"),
        (["evaluate.metrics=[Accuracy]"], "it is not for several labels"),
    ],
)
def test_what_does_not_fit_several_labels(check, overrides, message):
    label = "{feature: payment_type, task: multi_label, classes: null}"
    several = [f"label={label}", *OF_FARE]
    f1 = "{class: F1Score, params: {average: macro}}"
    check("taxi", *several, f"train.metrics=[AUC, BinaryAccuracy, {f1}]")
    with pytest.raises(ConfigError) as caught:
        check("taxi", *several, *overrides)
    assert message in str(caught.value)


OF_KERAS_3 = """\
import keras
import tensorflow as tf

class Last(keras.layers.Layer):
    def call(self, x):
        return x[:, -1:]

class Error(keras.losses.Loss):
    def call(self, y_true, y_pred):
        return keras.ops.mean(keras.ops.square(y_true - y_pred), axis=-1)

class OfLegacy(tf.keras.metrics.Mean):
    def update_state(self, y_true, y_pred, sample_weight=None):
        return super().update_state(y_pred)

class OfLegacyLoss(tf.keras.losses.BinaryCrossentropy):
    pass

class Stop(tf.keras.callbacks.Callback):
    pass

def build(inputs, params, of_inputs=(keras,), of_output=(keras,)):
    features = inputs.keras_inputs(*of_inputs)
    columns = [keras.ops.cast(x, "float32") for x in features.values()]
    x = Last()(keras.layers.Concatenate()(columns))
    return keras.Model(features, inputs.output_layer(*of_output)(x))

def mixed(inputs, params):
    return build(inputs, params, of_output=())

def other_inputs(inputs, params):
    return build(inputs, params, of_inputs=())

def two(inputs, params):
    features = inputs.keras_inputs(keras)
    x = keras.layers.Dense(2)(features["fare_xf"])
    return keras.Model([features["fare_xf"]], x)

def some(inputs, params):
    fare = {"fare_xf": inputs.keras_inputs(keras)["fare_xf"]}
    return keras.Model(fare, inputs.output_layer(keras)(fare["fare_xf"]))
"""


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["model=of_keras_3:two"], "found:    (None, 2)"),
        (["model=of_keras_3:some"], "give keras.Model a list"),
        (["model=of_keras_3:mixed"], "inputs.output_layer(keras)"),
        (["model=of_keras_3:other_inputs"], "inputs.keras_inputs(keras)"),
        (["train.strategy=tpu"], "cannot be trained as tpu"),
        (["train.processes=2"], "cannot be trained as multi_worker"),
        (["export=[tfjs]"], "TF.js does not read models of Keras 3"),
        (["train.optimizer=Ftrll"], "did you mean 'Ftrl'?"),
        (["train.metrics=[of_keras_3:OfLegacy]"], "not a keras.metrics.Metric"),
        (["train.loss=of_keras_3:OfLegacyLoss"], "not a keras.losses.Loss"),
    ],
)
def test_what_is_refused_of_a_model_of_keras_3(check, project, overrides, message):
    (project / "of_keras_3.py").write_text(OF_KERAS_3)
    model, none = "model=of_keras_3:build", "model_params={}"
    # What only Keras 3 has, and losses of the user's own.
    check("taxi", model, none, "train.optimizer=Lamb", "train.loss=of_keras_3:Error")
    with pytest.raises(ConfigError) as caught:
        check("taxi", model, none, *overrides)
    assert message in str(caught.value)


_STOPPING = "train.early_stopping={{metric: {}, mode: max}}"
_TUNE = "tune={{objective: {{metric: {}, mode: max}}, space: {{train.seed: [1]}}}}"


@pytest.mark.parametrize(
    ("name", "override", "watched", "says"),
    [
        ("taxi", _STOPPING, "val_auc_1", "did you mean 'val_auc'?"),
        ("digits", _STOPPING, "val_auc", "val_sparse_categorical_accuracy"),
        ("taxi", _TUNE, "val_acc", "tune.objective"),
    ],
)
def test_a_metric_that_is_watched_must_exist(check, name, override, watched, says):
    with pytest.raises(ConfigError) as caught:
        check(name, override.format(watched))
    message = str(caught.value)
    assert f"there is no metric {watched!r}" in message and says in message
    assert "expected: one of loss, " in message


def test_a_model_that_is_given_a_secret(check, monkeypatch, capfd):
    monkeypatch.setattr(secrets, "_resolved", {})
    monkeypatch.setenv("DEMO_TOKEN", "hunter2secret")
    model = ["model=own_training_code:of_key", "model_params.key=${env:DEMO_TOKEN}"]
    with pytest.raises(ConfigError) as caught:
        check("taxi", *model)
    assert "RuntimeError: refused: ${env:DEMO_TOKEN}" in str(caught.value)
    assert "with ${env:DEMO_TOKEN}" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        ("own_training_code:Largest", "adds the weights of two batches"),
        ("{class: 'own_training_code:Forgets', params: {power: 2.0}}", "get_config"),
        ("own_training_code:AUC", "TFMA has a AUC too"),
    ],
)
def test_own_metrics_that_tfma_cannot_compute(check, metric, message):
    with pytest.raises(ConfigError) as caught:
        check("taxi", "evaluate.thresholds=[]", f"evaluate.metrics=[{metric}]")
    assert message in str(caught.value)


def test_own_metrics_in_training_and_evaluation(check):
    own = "{class: 'own_training_code:Distance', params: {power: 2.0}}"
    check(
        "taxi",
        f"train.metrics=[{own}]",
        f"evaluate.metrics=[{own}]",
        "evaluate.thresholds=[{metric: distance, upper_bound: 0.4}]",
    )
    with pytest.raises(ConfigError, match="not a tf_keras.metrics.Metric"):
        check("taxi", "train.metrics=[own_training_code:number_of]")


def test_what_keras_and_tfma_take(check):
    check(
        "digits",
        _params("train.optimizer", "SGD", "momentum: 0.9, nesterov: true"),
        _params("train.loss", "CategoricalFocalCrossentropy", "gamma: 1.0"),
        "train.metrics=[{class: F1Score, params: {average: macro}}, "
        "{class: TopKCategoricalAccuracy, params: {k: 3}}]",
        "train.early_stopping={metric: val_f1_score}",
        "train.learning_rate={kind: cosine, warmup_epochs: 1}",
        "train.clip_gradients={norm: 1}",
        "evaluate.metrics=[SparseCategoricalAccuracy, MultiClassConfusionMatrixPlot, "
        "SparseTopKCategoricalAccuracy, MeanSquaredError, ExampleCount]",
        "evaluate.thresholds=[]",
    )


IMAGE = "features={image: {kind: image, height: 32, width: 32, channels: 1}}"


@pytest.mark.parametrize("given", ["imagenet", "weights/missing.h5"])
def test_a_missing_file_of_weights_names_what_downloads_it(check, project, given):
    with pytest.raises(ConfigError) as caught:
        check("digits", "model=VGG16", IMAGE, f"model_params={{weights: {given}}}")
    assert f"there is no file {project / given}" in str(caught.value)
    assert "tf_keras.applications.VGG16(include_top=False)" in str(caught.value)
