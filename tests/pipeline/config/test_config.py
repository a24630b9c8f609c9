"""Keys, types, bounds and defaults of a config."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from pipeline.config.config import Config
from pipeline.config.evaluate import Metric
from pipeline.config.features import Bucketized, Hashed, Image, Numeric, Vocabulary
from pipeline.config.learning_rate import Constant, Cosine, Exponential, Piecewise
from pipeline.config.origin import Origin, key_path
from pipeline.config.train import EarlyStopping, Train

pytestmark = pytest.mark.unit


def document(**changes: Any) -> dict[str, Any]:
    return {
        "version": 1,
        "name": "fares",
        "data": {"dir": "data", "splits": {"train": "train-*", "eval": "eval-*"}},
        "label": {"feature": "big_tip"},
        "model": "dense",
        "evaluate": {"metrics": ["AUC"]},
        **changes,
    }


def problems(**changes: Any) -> dict[str, str]:
    """Returns key path -> message of what a document does wrong."""
    with pytest.raises(ValidationError) as caught:
        Config.model_validate(document(**changes))
    return {
        ".".join(map(str, error["loc"])): error["msg"]
        for error in caught.value.errors()
    }


def test_a_minimal_config_has_defaults():
    config = Config.model_validate(document())

    assert config.train == Train(
        epochs=10, batch_size=None, learning_rate=0.001, seed=17, early_stopping=None
    )
    assert config.features is None
    assert config.data.splits is not None
    assert config.data.splits.test is None
    assert config.evaluate.metrics == (Metric.model_validate({"class": "AUC"}),)
    assert config.evaluate.thresholds == ()
    assert config.push.serving_dir is None


@pytest.mark.parametrize(
    "key", ["version", "name", "data", "label", "model", "evaluate"]
)
def test_these_keys_are_required(key):
    incomplete = document()
    del incomplete[key]

    with pytest.raises(ValidationError) as caught:
        Config.model_validate(incomplete)

    assert [(e["loc"], e["type"]) for e in caught.value.errors()] == [
        ((key,), "missing")
    ]


@pytest.mark.parametrize("name", ["a", "0", "digits", "taxi-2", "a" * 128])
def test_names_that_kubeflow_takes(name):
    assert Config.model_validate(document(name=name)).name == name


@pytest.mark.parametrize(
    "name", ["", "-a", "A", "a_b", "a.b", "a b", "é", "a\n", "a" * 129]
)
def test_names_that_kubeflow_refuses(name):
    assert "lower-case letters, digits and hyphens" in problems(name=name)["name"]


@pytest.mark.parametrize("name", [1, None, True])
def test_a_name_is_a_string(name):
    assert "valid string" in problems(name=name)["name"]


@pytest.mark.parametrize(
    "pattern", ["", "/data/train-*", "../train-*", "a/../../b", ".."]
)
def test_patterns_stay_below_the_data(pattern):
    found = problems(data={"dir": "d", "splits": {"train": pattern, "eval": "e"}})

    assert "below data.dir" in found["data.splits.train"]


@pytest.mark.parametrize("key", ["schema", "train.warm_start"])
def test_files_of_the_project_are_local(key):
    section, _, name = key.partition(".")
    given: Any = "gs://bucket/file"
    if name:
        given = {"epochs": 1, "batch_size": 1, name: given}
    assert "a path of this machine" in problems(**{section: given})[key]


@pytest.mark.parametrize("given", ["", "gs://", "gs://UPPER/data", "s3://bucket/data"])
def test_data_of_another_place_than_a_folder_or_bucket(given):
    splits = {"train": "t", "eval": "e"}
    assert "data.dir" in problems(data={"dir": given, "splits": splits})


@pytest.mark.parametrize("missing", ["train", "eval"])
def test_train_and_eval_are_required(missing):
    splits = {"train": "t", "eval": "e", "test": "x"}
    del splits[missing]

    assert f"data.splits.{missing}" in problems(data={"dir": "d", "splits": splits})


def test_other_splits_are_unknown():
    splits = {"train": "t", "eval": "e", "valid": "v"}

    assert "data.splits.valid" in problems(data={"dir": "d", "splits": splits})


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"kind": "numeric"}, Numeric()),
        ({"kind": "bucketized"}, Bucketized(buckets=10)),
        ({"kind": "bucketized", "buckets": 3}, Bucketized(buckets=3)),
        ({"kind": "vocabulary"}, Vocabulary(top_k=None, oov_buckets=1)),
        ({"kind": "vocabulary", "top_k": 9}, Vocabulary(top_k=9)),
        ({"kind": "hashed"}, Hashed(buckets=64)),
        (
            {"kind": "image", "height": 8, "width": 9, "channels": 3},
            Image(height=8, width=9, channels=3),
        ),
    ],
)
def test_kinds_of_features(spec, expected):
    config = Config.model_validate(document(features={"x": spec}))

    assert config.features == {"x": expected}


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"kind": "bucketized", "buckets": 1}, "bucketized.buckets"),
        ({"kind": "bucketized", "buckets": True}, "bucketized.buckets"),
        ({"kind": "bucketized", "buckets": 2.0}, "bucketized.buckets"),
        ({"kind": "vocabulary", "top_k": 0}, "vocabulary.top_k"),
        ({"kind": "vocabulary", "oov_buckets": 0}, "vocabulary.oov_buckets"),
        ({"kind": "hashed", "buckets": "64"}, "hashed.buckets"),
        ({"kind": "numeric", "buckets": 3}, "numeric.buckets"),
        (
            {"kind": "image", "height": 0, "width": 8, "channels": 1},
            "image.height",
        ),
        (
            {"kind": "image", "height": 8, "width": 5000, "channels": 1},
            "image.width",
        ),
        (
            {"kind": "image", "height": 8, "width": 8, "channels": 2},
            "image.channels",
        ),
        (
            {"kind": "image", "height": 8, "width": 8, "channels": True},
            "image.channels",
        ),
        ({"kind": "image", "height": 8, "width": 8}, "image.channels"),
    ],
)
def test_bounds_of_features(spec, path):
    assert list(problems(features={"x": spec})) == [f"features.x.{path}"]


def test_empty_features_are_rejected():
    assert problems(features={}) == {"features": "Input should be at least one"}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("epochs", 0),
        ("epochs", "3"),
        ("batch_size", 0),
        ("batch_size", 1.5),
        ("seed", -1),
        ("seed", 2**31),
    ],
)
def test_bounds_of_training(key, value):
    assert list(problems(train={key: value})) == [f"train.{key}"]


@pytest.mark.parametrize("value", [0, -1e-3, float("nan"), float("inf"), "fast"])
def test_bounds_of_the_learning_rate(value):
    assert list(problems(train={"learning_rate": value})) == [
        "train.learning_rate.number"
    ]
    assert list(problems(train={"learning_rate": {"initial": value}})) == [
        "train.learning_rate.constant.initial"
    ]


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (0.1, float),
        ({"initial": 0.1, "warmup_epochs": 2}, Constant),
        ({"kind": "cosine", "final_fraction": 0.1}, Cosine),
        ({"kind": "exponential", "rate": 0.5}, Exponential),
        ({"kind": "piecewise", "boundaries": [1], "values": [0.1]}, Piecewise),
    ],
)
def test_a_learning_rate_is_a_number_or_a_schedule(value, kind):
    found = Train(learning_rate=value).learning_rate

    assert type(found) is kind
    assert Train(learning_rate=found).learning_rate == found


def test_early_stopping_may_be_given_or_null():
    given = Config.model_validate(document(train={"early_stopping": {}}))
    none = Config.model_validate(document(train={"early_stopping": None}))

    assert given.train.early_stopping == EarlyStopping(patience=3)
    assert none.train.early_stopping is None
    assert "train.early_stopping.patience" in problems(
        train={"early_stopping": {"patience": 0}}
    )


@pytest.mark.parametrize("classes", [[0, 1], ["no", "yes"], [3, 1, 2]])
def test_classes_keep_their_order(classes):
    config = Config.model_validate(document(label={"feature": "x", "classes": classes}))

    assert config.label.classes == tuple(classes)


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        ([], "list of whole numbers or a list of strings"),
        ([1], "at least 2 classes"),
        ([1, 1], "each of them once"),
        ([0, "1"], "list of whole numbers or a list of strings"),
        ([True, False], "list of whole numbers or a list of strings"),
        ([0.0, 1.0], "list of whole numbers or a list of strings"),
        ("ab", "list of whole numbers or a list of strings"),
        ({"a": 1}, "list of whole numbers or a list of strings"),
    ],
)
def test_classes_are_two_or_more_of_one_type(classes, message):
    found = problems(label={"feature": "x", "classes": classes})

    assert message in found["label.classes"]


def threshold(**changes: Any) -> dict[str, Any]:
    return {"metrics": ["AUC"], "thresholds": [{"metric": "auc", **changes}]}


def test_a_metric_is_a_class_or_a_mapping():
    config = Config.model_validate(
        document(
            evaluate={
                "metrics": ["AUC", {"class": "AUC", "name": "pr", "params": {"c": 1}}]
            }
        )
    )

    short, long = config.evaluate.metrics
    assert (short.class_name, short.name, short.params) == ("AUC", None, {})
    assert (long.class_name, long.name, long.params) == ("AUC", "pr", {"c": 1})


@pytest.mark.parametrize(
    ("evaluate", "path"),
    [
        ({"metrics": []}, "evaluate.metrics"),
        ({"metrics": "AUC"}, "evaluate.metrics"),
        ({"metrics": [3]}, "evaluate.metrics.0"),
        ({"metrics": [{"name": "x"}]}, "evaluate.metrics.0.class"),
        ({"metrics": ["AUC"], "slices": [[]]}, "evaluate.slices.0"),
        ({"metrics": ["AUC"], "slices": ["a"]}, "evaluate.slices.0"),
        ({"metrics": ["AUC"], "slices": [[3]]}, "evaluate.slices.0.0"),
    ],
)
def test_metrics_and_slices_have_a_shape(evaluate, path):
    assert list(problems(evaluate=evaluate)) == [path]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "a limit: lower_bound, upper_bound or change"),
        ({"lower_bound": 2, "upper_bound": 1}, "not above its upper_bound"),
    ],
)
def test_a_threshold_has_limits_in_order(given, message):
    assert message in problems(evaluate=threshold(**given))["evaluate.thresholds.0"]


@pytest.mark.parametrize(
    "given",
    [
        {"lower_bound": 0},
        {"upper_bound": -1.5},
        {"lower_bound": 1, "upper_bound": 1},
        {"change": {"direction": "lower_is_better", "relative": 0.1}},
        {"change": {"direction": "higher_is_better", "absolute": 0}},
    ],
)
def test_one_limit_is_enough(given):
    Config.model_validate(document(evaluate=threshold(**given)))


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ({"lower_bound": "0.9"}, "lower_bound"),
        ({"lower_bound": float("nan")}, "lower_bound"),
        ({"upper_bound": float("inf")}, "upper_bound"),
        ({"lower_bound": 0, "min_examples_per_class": 0}, "min_examples_per_class"),
        ({"lower_bound": 0, "slice": 3}, "slice"),
        ({"lower_bound": 0, "slice": []}, "slice"),
        ({"lower_bound": 0, "slice": {}}, "slice"),
        ({"lower_bound": 0, "slice": [3]}, "slice"),
        ({"lower_bound": 0, "slice": {"a": True}}, "slice"),
        ({"lower_bound": 0, "slice": {"a": None}}, "slice"),
        ({"lower_bound": 0, "slice": {"a": 1.5}}, "slice"),
        ({"change": {"direction": "higher_is_better"}}, "change"),
        ({"change": {"direction": "up", "absolute": 1}}, "change.direction"),
        ({"change": {"absolute": 1}}, "change.direction"),
    ],
)
def test_bounds_of_thresholds(given, path):
    assert list(problems(evaluate=threshold(**given))) == [
        f"evaluate.thresholds.0.{path}"
    ]


def test_slices_of_thresholds_are_values_or_features():
    config = Config.model_validate(
        document(
            evaluate={
                "metrics": ["AUC"],
                "thresholds": [
                    {"metric": "auc", "lower_bound": 0, "slice": {"a": 1, "b": "x"}},
                    {"metric": "auc", "lower_bound": 0, "slice": ["a", "b"]},
                ],
            }
        )
    )

    by_value, by_feature = config.evaluate.thresholds
    assert by_value.slice == {"a": 1, "b": "x"}
    assert by_feature.slice == ("a", "b")


@pytest.mark.parametrize("section", ["data", "train", "push", "evaluate", "label"])
def test_a_section_is_a_mapping(section):
    assert list(problems(**{section: 3})) == [section]


def test_key_path_reads_as_the_yaml_does():
    path = ("evaluate", "thresholds", 0, "slice", "payment_type")

    assert key_path(path) == "evaluate.thresholds[0].slice.payment_type"
    assert key_path(()) == ""


def test_an_unknown_location_falls_back_to_the_section_above(tmp_path):
    origin = Origin(tmp_path, "x.yaml", locations={("a",): "x.yaml:3"})

    assert origin.location(("a", "b", 0)) == "x.yaml:3"
    assert origin.location(("c",)) == "x.yaml"
