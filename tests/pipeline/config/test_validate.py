"""A config is validated against its schema and the user's code."""

from __future__ import annotations

import pytest

from pipeline.config.features import Numeric
from pipeline.config.serialize import read_stored_config, write_stored_config

pytestmark = pytest.mark.unit


def test_a_good_config_comes_back_complete(validate, project):
    valid = validate("train.epochs=3")
    names = [metric.name for metric in valid.config.evaluate.metrics]
    assert valid.config.label.classes == (0, 1)
    assert names == ["auc", "binary_accuracy", "example_count"]
    assert valid.warnings == ()
    assert len(valid.schema.feature) == 14
    assert valid.config.root == project
    assert valid.config.origin.overrides == ("train.epochs=3",)


IMAGE = "{kind: image, height: 8, width: 8, channels: 1}"
HASHED = "data={splits: null, files: '*', hash_splits: {train: 8, eval: 1, by: %s}}"
RULES = "validate.rules=[{%s, action: fail}]"


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        ("label.feature=bigtip", "the schema has no feature 'bigtip'"),
        ("label.feature=history", "AUC is for two classes: of 7"),
        ("features.big_tip={kind: numeric}", "'big_tip' is the label"),
        ("features.fare={kind: hashed}", "'hashed' is not for 'fare', which is FLOAT"),
        ("features.tags={kind: vocabulary}", "value_count { min: 1 max: 1 }"),
        (("model=wide_deep", f"features.photo={IMAGE}"), "'wide_deep' takes no images"),
        (
            ("label.feature=company", "features={fare: {kind: numeric}}"),
            "'company' may be missing from a record",
        ),
        ("data.splits.test=eval-*", "two splits have the same pattern"),
        ("data.splits.train='{SPAN'", "a pattern with {SPAN}, {SPAN:2}"),
        ("data.hash_splits={train: 1, eval: 1}", "splits"),
        (HASHED % "fare", "records cannot be split by 'fare'"),
        ("sensitive=[big_tip]", "the label cannot be sensitive"),
        ("sensitive=[payment_type]", "'payment_type' would show its values"),
        (RULES % "anomaly: new_vale", "did you mean 'new_value'"),
        (RULES % "feature: company, anomaly: count", "'count' have no feature"),
        ("validate={min_examples: {eval: 9}, max_examples: {eval: 3}}", "less than"),
        (("data.splits.test=null", "validate.min_examples={test: 5}"), "no split"),
        ("examples.complete_when=often", "always, {marker: NAME} or {quiet_for_s"),
        ("examples.complete_when={marker: a, quiet_for_s: 1}", "always, {marker:"),
        ("push.serving_dir=.", "versions need a folder of their own"),
        ("push.serving_dir=workspace/x", "versions need a folder of their own"),
    ],
)
def test_what_is_refused(refused, overrides, words):
    overrides = [overrides] if isinstance(overrides, str) else overrides
    message = refused(*overrides)
    assert words in message


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("shape { dim { size: 1 } }", "shape {}", "does not have exactly one value"),
        ("shape { dim { size: 1 } }", "value_count { min: 1 }", "not have exactly one"),
    ],
)
def test_a_shape_that_tfx_cannot_read(refused, project, old, new, problem):
    schema = project / "schemas" / "fares" / "schema.pbtxt"
    head, fare, rest = schema.read_text().partition('name: "fare"')
    schema.write_text(head + fare + rest.replace(old, new, 1))

    assert problem in refused("features.fare={kind: numeric}")


def test_own_models_and_preprocessing_are_looked_up_in_the_project(validate, project):
    (project / "mine.py").write_text("raise SystemExit\ndef build(): ...\n")

    valid = validate("model=mine:build", "preprocessing=mine:build")

    assert valid.config.model == "mine:build"


VECTORS = """
feature { name: "big_tip" type: INT
  presence { min_fraction: 1 } shape { dim { size: 1 } }
  int_domain { min: 0 max: 1 is_categorical: true } }
feature { name: "history" type: FLOAT
  presence { min_fraction: 1 } shape { dim { size: 7 } } }
feature { name: "tags" type: BYTES value_count { min: 0 max: 5 } }
"""


def test_own_preprocessing_may_use_only_vectors(validate, refused, project):
    (project / "mine.py").write_text("def prepare(): ...\n")
    own = ("preprocessing=mine:prepare", "features=null", "evaluate.slices=[]")
    schema = project / "schemas" / "fares" / "schema.pbtxt"
    schema.write_text(VECTORS)

    valid = validate(*own)

    assert valid.config.feature_set.features == {}
    # A config with defaults is stored beside a run and read from there.
    write_stored_config(valid.config, project / "stored.json")
    assert read_stored_config(project / "stored.json").features is None

    fare = 'feature { name: "fare" type: FLOAT value_count { min: 1 max: 1 } }'
    schema.write_text(VECTORS + fare)
    assert validate(*own).config.features == {"fare": Numeric()}

    schema.write_text(VECTORS)
    message = refused(*own[:1], "features={history: {kind: numeric}}", own[2])
    assert "'history' does not have exactly one value" in message
    assert "preprocessing_fn of your own still gets it" in message
    schema.write_text(VECTORS.replace("min_fraction: 1", "min_fraction: 0.5"))
    message = refused(*own)
    assert "'history' has a shape and may be missing" in message
    # Without one every feature needs a kind.
    schema.write_text(VECTORS)
    assert [*(validate(*own[1:]).config.features or {})] == ["history", "tags"]


@pytest.mark.parametrize("key", ["model", "preprocessing"])
def test_missing_user_code_is_a_config_error(refused, project, key):
    (project / "mine.py").write_text("def build_model(): ...\n")

    message = refused(f"{key}=mine:bild_model")
    assert "no function 'bild_model'" in message
    assert f"where:    --set {key}=mine:bild_model" in message
    assert str(project / "mine.py") in message
    assert "did you mean 'build_model'?" in message

    assert "no module 'mien'" in refused(f"{key}=mien:build_model")
    assert "not an import path" in refused(f"{key}=mine.build_model")


def test_a_project_that_hides_our_packages_is_refused(refused, project):
    (project / "reports.py").write_text("")

    message = refused()

    assert "'reports' shadows Sluice's package" in message
    assert str(project / "reports.py") in message


def test_warns_without_thresholds(validate):
    (warning,) = validate("evaluate.thresholds=[]").warnings

    assert warning.startswith("--set evaluate.thresholds=[]")
    assert "every trained model is pushed" in warning
