"""Warm start: weights from a SavedModel of ours, or from a file of weights."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline.config.features import FeatureSet
from sluice import progress
from sluice.errors import NodeError
from tests.kit.analysis import analyze, serialize
from tests.kit.trainings import feature_set
from tests.kit.transform_output import Output

pytestmark = [pytest.mark.tf, pytest.mark.acceptance]

FORMS = ["exported", "weights.h5"]
PAIR = Output({"a": "float32", "y": "int64"}, width=2)
NUMBERS = {"a_xf": np.random.default_rng(3).random((4, 2))}


def _inputs(output: Any, features: FeatureSet) -> Any:
    from pipeline.training.build import model_inputs

    return model_inputs(features, output)


def _randomize(model: Any, seed: int) -> Any:
    random = np.random.default_rng(seed)
    for weight in model.weights:
        if weight.shape.rank:
            weight.assign(random.uniform(0.5, 1, weight.shape))
    return model


def _model(units: int = 3, *, seed: int = 1, more: bool = False) -> tuple[Any, Any]:
    """Returns a model and what it is given."""
    import tensorflow as tf

    layers = tf.keras.layers
    inputs = _inputs(PAIR, feature_set({"a": "numeric"}, tuple(range(units))))
    tf.keras.backend.reset_uids()
    tf.keras.utils.set_random_seed(seed)
    given = inputs.keras_inputs()
    x = layers.Normalization()(given["a_xf"])
    nested = tf.keras.Sequential([layers.Dense(4), layers.BatchNormalization()])
    x = nested(x)
    if more:
        x = layers.Dense(4, name="more")(x)
    model = _randomize(tf.keras.Model(given, layers.Dense(units)(x)), seed)
    for layer in model.layers:
        layer.finalize_state()
    return model, inputs


def _save(model: Any, inputs: Any, path: Path, output: Any = PAIR) -> Path:
    """Writes a model as a SavedModel or a file of weights."""
    from pipeline.training.export import export_model

    if path.suffix == ".h5":
        model.save_weights(path)
    else:
        export_model(model, str(path), inputs.feature_set, output)
    return path


@pytest.mark.parametrize("form", FORMS)
def test_the_model_predicts_as_the_one_it_starts_from(tmp_path, form):
    import tensorflow as tf

    from pipeline.training.warm_start import warm_start

    base, inputs = _model(seed=1)
    path = _save(base, inputs, tmp_path / form)
    with tf.distribute.MirroredStrategy(["CPU:0"]).scope():
        model, inputs = _model(seed=2)
    assert not np.allclose(model(NUMBERS), base(NUMBERS))
    warm_start(model, "served", str(path), inputs, {})
    np.testing.assert_array_equal(model(NUMBERS), base(NUMBERS))


@pytest.mark.parametrize(
    ("form", "what"),
    [
        ("exported", r"(?s)more/bias \[4\]\n.*more/kernel \[4, 4\]\n"),
        ("weights.h5", "do not fit the model.*Layer count mismatch"),
    ],
)
def test_another_architecture_names_the_layers(tmp_path, form, what):
    from pipeline.training.warm_start import warm_start

    path = _save(*_model(), tmp_path / form)
    model, inputs = _model(more=True)
    with pytest.raises(NodeError, match=what) as caught:
        warm_start(model, "latest", str(path), inputs, {})
    assert caught.value.where == str(path)


@pytest.fixture
def notes(tmp_path, monkeypatch):
    """Returns a function of the notes so far."""
    reports = tmp_path / "reports"
    monkeypatch.setenv("SLUICE_PROGRESS_FILE", str(reports))

    def read() -> list[str]:
        found, _ = progress.read(reports)
        return [report["line"] for report in found if report["note"]]

    return read


# The letters of 20 records on each day, by frequency. Day 3 has a new one, and one of
# day 1 is gone.
DAYS = {1: "aaaaaaaabbbbbbccccdd", 2: "aabbbbccccccdddddddd", 3: "aabbbbcccccceeeeefff"}
FEATURES = feature_set(
    {
        "k": "vocabulary",
        "number": "numeric",
        "tags": {"kind": "multi_hot", "top_k": 7, "oov_buckets": 2},
        "words": {"kind": "text", "length": 3},
        "line": {"kind": "text", "form": "sequence", "length": 3},
        "tract": {"kind": "hashed", "buckets": 4},
        "place": {"kind": "bucketized", "buckets": 2},
        "pair": {"kind": "cross", "of": ["tract", "place"], "buckets": 9},
    },
    ("x", "y", "z"),
)


def _row(letter: str, number: int = 0) -> dict[str, Any]:
    value = letter.encode()
    return {
        "k": [value],
        "number": [float(number)],
        "tags": [value, b"more"],
        "words": [value + b" word"],
        "line": [b"word " + value],
        "tract": [b"%d" % (number % 3)],
        "place": [float(number)],
        "y": [b"xyz"[number % 3 :][:1]],
    }


def _spec() -> dict[str, Any]:
    import tensorflow as tf

    lists = dict.fromkeys(("tags", "words", "line"), tf.io.VarLenFeature(tf.string))
    one = tf.io.FixedLenFeature([1], tf.string)
    number = tf.io.FixedLenFeature([1], tf.float32)
    return {
        **{"k": one, "number": number, "tract": one, "place": number, "y": one},
        **lists,
    }


@pytest.fixture(scope="module")
def days(tmp_path_factory) -> dict[int, Any]:
    """What Transform gives on each day."""
    return {
        day: analyze(
            [_row(letter, number) for number, letter in enumerate(letters)],
            _spec(),
            FEATURES,
            tmp_path_factory.mktemp(f"day-{day}"),
        )
        for day, letters in DAYS.items()
    }


def functional(inputs: Any, params: Any) -> Any:
    """A model of a user's own: categories go two ways, and are normalized."""
    import tensorflow as tf

    layers = tf.keras.layers
    given = inputs.keras_inputs()
    ids = inputs.number_of_ids
    words = layers.Embedding(ids["words_xf"], 5)(given["words_xf"])
    words = layers.LSTM(3)(words)
    numbers = layers.Concatenate()([given["number_xf"], words])
    numbers = layers.BatchNormalization()(numbers)
    x = layers.Concatenate()([given["tags_xf"], numbers])
    x = layers.Dense(4, "tanh")(x)
    letter = layers.Embedding(ids["k_xf"], 4)(given["k_xf"])[:, 0]
    x = layers.Concatenate()([given["tags_xf"], layers.Add()([x, letter])])
    return tf.keras.Model(given, inputs.output_layer()(x))


def subclassed(inputs: Any, params: Any) -> Any:
    import tensorflow as tf

    class Model(tf.keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.table = tf.keras.layers.Embedding(20, 4)
            self.head = inputs.output_layer()

        def call(self, features):
            return self.head(self.table(features["k_xf"])[:, 0])

    return Model()


_FUNCTIONS = {"dense": "build_model", "wide_deep": "build_wide_deep"}


def _build(function: str, output: Any, features: FeatureSet = FEATURES) -> Any:
    """Returns a model, with random weights, and what it is given."""
    import tensorflow as tf

    from pipeline.training.build import build_model
    from pipeline.training.strategy.distribution import Distribution

    inputs = _inputs(output, features)
    module = f"pipeline.training.models.dense:{_FUNCTIONS.get(function)}"
    if function in globals():
        module = f"{__name__}:{function}"
    here = Distribution(tf.distribute.get_strategy(), "one_device", "", 8)
    model = build_model(module, {"hidden_units": [8]}, inputs, here)
    return model, inputs


def _vocabularies(output: Any) -> dict[str, list[bytes]]:
    from pipeline.training.warm_start import read_vocabularies

    return read_vocabularies(output.transform_savedmodel_dir)


def _predict(model: Any, output: Any, letters: str = "abc?") -> np.ndarray:
    """Returns what is predicted for letters."""
    import tensorflow as tf

    rows = [_row(letter, number) for number, letter in enumerate(letters)]
    raw = tf.io.parse_example(serialize(rows), _spec())
    del raw["y"]
    transformed = output.transform_features_layer()(raw)
    return model(
        {f"{name}_xf": transformed[f"{name}_xf"] for name in FEATURES.features}
    ).numpy()


@pytest.fixture
def base(days, tmp_path):
    """Exports a model of the first day; returns its path and what it predicts."""

    def export(function: str, features: FeatureSet = FEATURES) -> tuple[str, Any]:
        model, inputs = _build(function, days[1], features)
        _randomize(model, 1)
        path = _save(model, inputs, tmp_path / "base", days[1])
        return str(path), _predict(model, days[1])

    return export


@pytest.mark.parametrize("function", ["dense", "wide_deep", "functional"])
def test_categories_keep_their_weights(days, base, notes, function):
    """Other frequencies; then values that are new and gone."""
    from pipeline.training.warm_start import warm_start

    path, expected = base(function)
    for day in (2, 3):
        model, inputs = _build(function, days[day])
        warm_start(model, "served", path, inputs, _vocabularies(days[day]))
        np.testing.assert_allclose(_predict(model, days[day]), expected, rtol=1e-5)

    same, grown = notes()
    start, kept = f"warm start: weights of served, {path}; ", "kept, though bounds or"
    assert same == f"{start}{kept} settings may have changed: place"
    assert grown.startswith(f"{start}k: 2 new, 1 gone; ")
    assert kept in grown


def test_a_model_that_cannot_be_followed(days, base):
    from pipeline.training.warm_start import warm_start

    path, expected = base("subclassed")
    model, inputs = _build("subclassed", days[1])
    warm_start(model, "served", path, inputs, _vocabularies(days[1]))
    np.testing.assert_array_equal(_predict(model, days[1]), expected)

    model, inputs = _build("subclassed", days[2])
    with pytest.raises(NodeError, match="is no functional model") as caught:
        warm_start(model, "served", path, inputs, _vocabularies(days[2]))
    assert caught.value.examples == ("k", "tags", "words", "line")


def _with_classes(*classes: str) -> FeatureSet:
    label = FEATURES.label.model_copy(update={"classes": classes})
    return FEATURES.model_copy(update={"label": label})


def test_classes_keep_their_weights(days, base, notes):
    from pipeline.training.warm_start import warm_start

    path, expected = base("dense")
    model, inputs = _build("dense", days[2], _with_classes("z", "new", "x", "y"))
    warm_start(model, "served", path, inputs, _vocabularies(days[2]))

    found = _predict(model, days[2])[:, [2, 3, 0]]
    np.testing.assert_allclose(
        found / found.sum(axis=1, keepdims=True), expected, rtol=1e-5
    )
    (line,) = notes()
    assert "; classes: 1 new, 0 gone" in line


def test_of_two_classes_in_another_order_the_output_starts_anew(days, base, notes):
    from pipeline.training.warm_start import warm_start

    path, _ = base("dense", _with_classes("x", "y"))
    swapped = _with_classes("y", "x")
    model, inputs = _build("dense", days[1], swapped)
    warm_start(model, "served", path, inputs, _vocabularies(days[1]))

    np.testing.assert_array_equal(_predict(model, days[1]), 0.5)
    (line,) = notes()
    assert "; classes: 1 new, 1 gone" in line


def _renamed(*names: str) -> FeatureSet:
    """Returns the features under other names, of which some are the same."""
    features = zip(names, FEATURES.features.values(), strict=True)
    return FEATURES.model_copy(update={"features": dict(features)})


@pytest.mark.parametrize(
    ("names", "other", "what"),
    [
        ([*FEATURES.features][::-1], {}, "(?s)another order.*k, where there is pair"),
        ([*FEATURES.features][:-1] + ["q"], {}, "(?s)other features.*pair_xf.*q_xf"),
        (FEATURES.features, {"own": [b"a"]}, "own is no input of the model"),
    ],
)
def test_other_features_are_refused(days, base, names, other, what):
    from pipeline.training.warm_start import warm_start

    path, _ = base("wide_deep")
    model, inputs = _build("wide_deep", days[1])
    shapes = {f"{name}_xf": (1,) for name in names} if not other else inputs.shapes
    inputs = replace(inputs, feature_set=_renamed(*names), shapes=shapes)
    with pytest.raises(NodeError, match=what):
        warm_start(model, "served", path, inputs, _vocabularies(days[1]) | other)


def test_ids_of_a_file_of_weights_are_taken_as_they_are(days, tmp_path, notes):
    from pipeline.training.warm_start import warm_start

    (base, inputs), (model, _) = (_build("dense", days[day]) for day in (1, 2))
    path = _save(base, inputs, tmp_path / "w.weights.h5")
    warm_start(model, str(path), str(path), inputs, _vocabularies(days[2]))
    for one, other in zip(base.get_weights(), model.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)
    assert notes()[0].endswith("has no vocabularies, so ids are taken as they are")
