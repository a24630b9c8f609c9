"""Keys, types, bounds and defaults of a config."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from pipeline.config.config import Config
from pipeline.config.evaluate import Metric
from pipeline.config.learning_rate import Constant, Cosine, Exponential, Piecewise
from pipeline.config.origin import Origin, key_path
from pipeline.config.train import Train

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
    assert (config.features, config.push.serving_dir) == (None, None)
    assert config.data.splits is not None and config.data.splits.test is None
    assert config.evaluate.metrics == (Metric.model_validate({"class": "AUC"}),)


@pytest.mark.parametrize("name", ["a", "0", "taxi-2", "a" * 128])
def test_names_that_kubeflow_takes(name):
    assert Config.model_validate(document(name=name)).name == name


def splits(**changes: Any) -> dict[str, Any]:
    return {"dir": "d", "splits": {"train": "t", "eval": "e", **changes}}


def label(*classes: Any) -> dict[str, Any]:
    return {"label": {"feature": "x", "classes": list(classes)}}


def threshold(**changes: Any) -> dict[str, Any]:
    given = {"metrics": ["AUC"], "thresholds": [{"metric": "auc", **changes}]}
    return {"evaluate": given}


LIST_OF_CLASSES = "list of whole numbers or a list of strings"
LIMIT = "evaluate.thresholds.0"


@pytest.mark.parametrize(
    ("changes", "key", "message"),
    [
        *(
            ({"name": name}, "name", "lower-case letters, digits and hyphens")
            for name in ("", "-a", "A", "a_b", "a.b", "\u00e9", "a\n", "a" * 129)
        ),
        *(
            ({"data": splits(train=pattern)}, "data.splits.train", "below data.dir")
            for pattern in ("", "/data/train-*", "../train-*", "a/../../b", "..")
        ),
        *(
            ({"data": {**splits(), "dir": given}}, "data.dir", "")
            for given in ("", "gs://", "gs://UPPER/data", "s3://bucket/data")
        ),
        ({"data": splits(valid="v")}, "data.splits.valid", "not permitted"),
        ({"schema": "gs://bucket/a"}, "schema", "a path of this machine"),
        (
            {"train": {"warm_start": "gs://bucket/a"}},
            "train.warm_start",
            "a path of this machine",
        ),
        ({"train": {"learning_rate": 0}}, "train.learning_rate.number", ""),
        (
            {"train": {"learning_rate": {"initial": float("nan")}}},
            "train.learning_rate.constant.initial",
            "",
        ),
        (
            {"features": {"x": {"kind": "bucketized", "buckets": True}}},
            "features.x.bucketized.buckets",
            "",
        ),
        (label(), "label.classes", LIST_OF_CLASSES),
        (label(1), "label.classes", "at least 2 classes"),
        (label(1, 1), "label.classes", "each of them once"),
        (label(0, "1"), "label.classes", LIST_OF_CLASSES),
        (label(True, False), "label.classes", LIST_OF_CLASSES),
        (label(0.0, 1.0), "label.classes", LIST_OF_CLASSES),
        (
            {"evaluate": {"metrics": [{"name": "x"}]}},
            "evaluate.metrics.0.class",
            "required",
        ),
        (threshold(), LIMIT, "a limit: lower_bound, upper_bound or change"),
        (
            threshold(lower_bound=2, upper_bound=1),
            LIMIT,
            "not above its upper_bound",
        ),
        (threshold(lower_bound=float("nan")), f"{LIMIT}.lower_bound", "finite"),
        *(
            (threshold(lower_bound=0, slice=given), f"{LIMIT}.slice", "")
            for given in (3, [], {}, [3], {"a": True}, {"a": None}, {"a": 1.5})
        ),
        (threshold(change={"direction": "lower_is_better"}), f"{LIMIT}.change", ""),
        (threshold(change={"absolute": 1}), f"{LIMIT}.change.direction", ""),
    ],
)
def test_a_wrong_value_is_refused_under_its_key(changes, key, message):
    found = problems(**changes)
    assert list(found) == [key]
    assert message in found[key]


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


@pytest.mark.parametrize("classes", [[0, 1], ["no", "yes"], [3, 1, 2]])
def test_classes_keep_their_order(classes):
    config = Config.model_validate(document(**label(*classes)))

    assert config.label.classes == tuple(classes)


def test_a_metric_is_a_class_or_a_mapping():
    metrics = ["AUC", {"class": "AUC", "name": "pr", "params": {"c": 1}}]
    config = Config.model_validate(document(evaluate={"metrics": metrics}))

    short, long = config.evaluate.metrics
    assert (short.class_name, short.name, short.params) == ("AUC", "auc", {})
    assert (long.class_name, long.name, long.params) == ("AUC", "pr", {"c": 1})


@pytest.mark.parametrize("given", [{"a": 1, "b": "x"}, ("a", "b")])
def test_a_slice_of_a_threshold_is_values_or_features(given):
    changes = threshold(lower_bound=1, upper_bound=1, slice=given)
    (limit,) = Config.model_validate(document(**changes)).evaluate.thresholds
    assert limit.slice == given


def test_key_path_reads_as_the_yaml_does():
    path = ("evaluate", "thresholds", 0, "slice", "payment_type")

    assert key_path(path) == "evaluate.thresholds[0].slice.payment_type"
    assert key_path(()) == ""


def test_an_unknown_location_falls_back_to_the_section_above(tmp_path):
    origin = Origin(tmp_path, "x.yaml", locations={("a",): "x.yaml:3"})

    assert origin.location(("a", "b", 0)) == "x.yaml:3"
    assert origin.location(("c",)) == "x.yaml"
