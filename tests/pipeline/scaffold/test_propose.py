"""Proposed configs and schemas: from records to text."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf import text_format
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML
from tensorflow_metadata.proto.v0 import schema_pb2

from pipeline.config.config import Config
from pipeline.config.load import read_file
from pipeline.scaffold.choose_label import choose_label
from pipeline.scaffold.find_splits import SplitGuess
from pipeline.scaffold.propose import propose
from pipeline.scaffold.sample import read_sample
from sample_data.tf_example import encode
from schemas import loader
from sluice.tfrecords import tfrecord

pytestmark = pytest.mark.tf


@pytest.fixture
def proposed(table):
    """Proposes for such records; returns the config, the schema and the proposal."""

    def proposed(count=120, window=0, label_name=None, **columns):
        sample = table(count, **columns)
        splits = SplitGuess({}, "*", window, "as said")
        label = choose_label(sample, label_name)
        found = propose("mine", "data", splits, sample, label)
        schema = text_format.Parse(found.schema_text, schema_pb2.Schema())
        return YAML(typ="safe").load(found.config_text), schema, found

    return proposed


def test_records_of_one_person_are_in_one_split(proposed):
    """Found: a model that had learned the persons was pushed with an AUC of 0.93."""
    columns: dict[str, Any] = {
        "patient_id": lambda n: 1000 + n * 7 % 60,
        "store_id": lambda n: n % 50,
        "pressure": lambda n: float(n % 11),
        "label": lambda n: n * 37 % 101 % 2,
    }
    config, _, found = proposed(count=600, **columns)
    assert config["data"]["hash_splits"]["by"] == "patient_id"
    assert {*config["features"]} == {"store_id", "pressure"}
    assert not any("several splits" in x for x in found.warnings)
    config, _, found = proposed(count=600, **columns, user_id=lambda n: n % 70)
    assert "by" not in config["data"]["hash_splits"]
    assert any("'patient_id' or 'user_id' may be in" in x for x in found.warnings)
    # Records without one cannot be split by it.
    columns["patient_id"] = lambda n: 1000 + n * 7 % 60 if n % 9 else None
    config, _, found = proposed(count=600, **columns)
    assert "by" not in config["data"]["hash_splits"]
    assert any("'patient_id' may be in several splits" in x for x in found.warnings)


@pytest.mark.parametrize("kind", [bytes, int])
def test_a_list_as_label_is_several_labels(proposed, kind):
    values: list[Any] = [b"war", b"crime", b"drama"] if kind is bytes else [4, 5, 7]
    config, schema, found = proposed(
        # Every record has the first class, some also others.
        labels=lambda n: [values[0], *values[1 : 1 + n % 3]],
        x=lambda n: n / 7,
    )
    assert config["label"] == {"feature": "labels", "task": "multi_label"}
    label = next(x for x in schema.feature if x.name == "labels")
    assert not label.HasField("shape") and not label.HasField("value_count")
    assert not label.presence.min_fraction
    classes = loader.class_values(schema, "labels")
    wanted: list[Any] = ["crime", "drama", "war"] if kind is bytes else [4, 5, 6, 7]
    assert classes == wanted
    first = "'war'" if kind is bytes else 4
    assert found.warnings[-1].startswith(f"every record has the class {first}")
    evaluate = config["evaluate"]
    assert evaluate["thresholds"][0] == {"metric": "macro_auc", "lower_bound": 0.55}


@pytest.mark.parametrize(
    ("label", "written", "metric"),
    [
        (lambda n: float(n % 3), {"classes": [0, 1, 2]}, "accuracy"),
        (lambda n: (10, 20, 40)[n % 3], {"classes": [10, 20, 40]}, "accuracy"),
        (
            lambda n: [10, 40][: 1 + n % 2],
            {"task": "multi_label", "classes": [10, 40]},
            "macro_auc",
        ),
        (lambda n: float(n % 3 > 0), {"classes": [0, 1], "positive": 1}, "auc"),
        (lambda n: (b"ok", b"bad")[n % 5 == 0], {"positive": "bad"}, "auc"),
        # Shares, and whole numbers with others between them.
        (lambda n: n % 3 / 2, {"task": "regression"}, "rmse"),
        (lambda n: 1.0 + n % 3, {"task": "regression"}, "rmse"),
    ],
)
def test_codes_and_floats_as_classes(proposed, label, written, metric):
    config, schema, found = proposed(label=label, x=lambda n: n % 7 / 7)
    assert config["label"] == {"feature": "label", **written}
    assert config["evaluate"]["thresholds"][0]["metric"] == metric
    assert not [x for x in found.warnings if "label's classes" in x]
    is_listed = "Its classes are the values that were seen" in found.config_text
    assert is_listed == ("classes" in written)
    assert ("For classes, list them" in found.config_text) == (metric == "rmse")
    (one,) = [x for x in schema.feature if x.name == "label"]
    if written.get("task") != "regression" and one.type == schema_pb2.FLOAT:
        assert loader.number_bounds(one) == (0, written["classes"][-1])


@pytest.mark.parametrize(
    ("price", "deviations"),
    [
        (lambda n: 10.0 + n % 40 / 2, [5.772]),
        (lambda n: [10.0 + n % 40 / 2, n % 40 / 200], [5.772, 0.05772]),
        (lambda n: 100 + 50 * (n % 40), [577.2]),
    ],
)
def test_a_number_as_label(proposed, price, deviations):
    config, schema, found = proposed(
        label_name="price",
        price=price,
        x=lambda n: n % 9 / 7,
        copy=lambda n: n % 40 / 3,
    )
    names = [""] if len(deviations) == 1 else ["price_0_", "price_1_"]
    targets = {"targets": ["price_0", "price_1"]} if names[1:] else {}
    assert config["label"] == {"feature": "price", "task": "regression", **targets}
    named = [x for x in found.warnings if "'price_0' to 'price_1': name them" in x]
    assert len(named) == len(targets)
    assert [x["name"] for x in config["evaluate"]["metrics"][:-1]] == [
        name + kind for name in names for kind in ("rmse", "mae", "r2")
    ]
    assert "&id" not in found.config_text  # An anchor of YAML.
    (label,) = [x for x in schema.feature if x.name == "price"]
    assert len(label.shape.dim) == 1 and label.presence.min_fraction == 1
    assert list(label.not_in_environment) == ["SERVING"]
    assert not label.int_domain.is_categorical
    limits = iter(config["evaluate"]["thresholds"])
    for name, deviation in zip(names, deviations, strict=True):
        first, second, third = (next(limits) for _ in range(3))
        assert {x["metric"] for x in (first, second, third)} == {f"{name}rmse"}
        assert first["upper_bound"] == pytest.approx(0.95 * deviation, rel=1e-3)
        assert second["better_than"] == "reference"
        change = {"direction": "lower_is_better", "relative": 0.05, "over": "best"}
        assert third["change"] == change
    given_away = [x for x in found.warnings if "'copy' gives the label away" in x]
    assert len(given_away) == (0 if isinstance(price(0), list) else 1)
    assert len(found.warnings) == len(given_away) + len(named)


def test_the_config_of_a_table(proposed):
    config, schema, found = proposed(
        label=lambda n: 4 if n == 1 else min(n % 10, 2),
        bad=lambda n: float("nan") if n == 5 else n / 7,
        home_address=lambda n: b"Elm Street" if n % 2 else b"Oak Road",
        colour=lambda n: b"red" if n % 2 else b"blue",
        x=lambda n: n / 7,
        sold=lambda n: b"2026-11-%02d" % (n % 30 + 1),
        window=3,
    )
    assert config["data"] == {
        "dir": "data",
        "files": "*",
        "hash_splits": {"train": 8, "eval": 1, "test": 1},
    }
    assert config["examples"] == {"window": 3, "complete_when": "always"}
    assert config["features"] == {
        "colour": {"kind": "vocabulary"},
        "sold": {"kind": "time", "parts": ["weekday"]},
        "x": {"kind": "numeric"},
    }
    assert config["model"] == "wide_deep"
    assert config["validate"]["rules"] == [
        {"feature": "bad", "anomaly": "not_finite", "action": "warn"}
    ]
    assert config["sensitive"] == ["home_address"]
    # The largest class has 80 %.
    floor = config["evaluate"]["thresholds"][0]
    assert floor == {"metric": "accuracy", "lower_bound": 0.81}
    unseen, rare = found.warnings
    assert unseen == "1 of the label's classes 0 to 4 were not seen"
    assert rare.startswith("only 1 of 120 records have the class 4: 'train.class_wei")
    # The data of December has other dates.
    assert [domain.name for domain in schema.string_domain] == ["colour"]
    assert "Left out: bad: some of its values are NaN" in found.config_text
    assert "Elm" not in found.config_text + found.schema_text


def test_names_and_values_cannot_disturb_a_terminal(proposed):
    """A schema with the escape of a terminal in a name was written as it is."""
    config, schema, found = proposed(
        **{
            "bad\x1b[31m\u202e": lambda n: ["\x1b[2J", "\x85"][n % 2].encode(),
            "l\nb": lambda n: n / 7,
            "label": lambda n: n % 3,
        }
    )
    assert list(config["features"]) == ["bad\x1b[31m\u202e", "l\nb"]
    assert schema.feature[0].name == "bad\x1b[31m\u202e"
    assert list(schema.string_domain[0].value) == ["\x1b[2J", "\x85"]
    for text in (found.config_text, found.schema_text):
        assert text.replace("\n", "").isprintable()


# Lone surrogates are no UTF-8, so they are in no record either; TFX ends a name at NUL.
CHARACTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
NAMES = st.text(CHARACTERS, min_size=1, max_size=12) | st.sampled_from(
    ["label", "user_id", "lat", "date", "x", "image/class/text"]
)


@given(names=st.lists(NAMES, min_size=1, max_size=4, unique=True), data=st.data())
@settings(
    max_examples=80,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_any_proposal_is_a_valid_config_and_schema(tmp_path, names, data):
    columns = {
        name: data.draw(
            st.lists(st.integers(0, 3), min_size=3, max_size=3)
            | st.lists(st.floats(-9, 9, width=32), min_size=3, max_size=3)
            | st.lists(NAMES.map(str.encode), min_size=3, max_size=3)
        )
        for name in names
    }
    records = [
        encode(
            {
                "the label": [row * 37 % 101 % 2],
                **{name: [values[row % 3]] for name, values in columns.items()},
            }
        )
        for row in range(60)
    ]
    tfrecord.write(tmp_path / "records", records)
    sample = read_sample([tmp_path / "records"])
    splits = SplitGuess({}, "*", 0, "as said")
    label = choose_label(sample, "the label")
    proposal = propose("mine", "data", splits, sample, label)
    used = [choice.name for choice in proposal.features if choice.spec]
    if not used:
        assert "features: {}" in proposal.config_text
        return
    path = tmp_path / "mine.yaml"
    path.write_text(proposal.config_text, encoding="utf-8")

    config = Config.model_validate(read_file(path, "mine.yaml").data)

    assert list(config.features or {}) == used
    assert config.label.feature == "the label"
    schema = loader.parse(proposal.schema_text, "schema")
    assert set(loader.feature_names(schema)) == {"the label", *names}
