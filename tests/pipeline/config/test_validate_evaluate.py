"""Metrics, slices and thresholds are validated against the schema."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.unit

BIG_TIP = "label={feature: big_tip}"
GENRES = "label={feature: genres, task: multi_label}"


def thresholds(*items: str) -> str:
    return f"evaluate.thresholds=[{', '.join(items)}]"


def metrics(*items: str) -> str:
    return f"evaluate.metrics=[{', '.join(items)}]"


TWICE = "thresholds=[{metric: auc, lower_bound: 0}, {metric: auc, lower_bound: 0.6}]"
CHANGED = "thresholds=[{metric: auc, slice: {%s}, lower_bound: 1}]"
DIRECTED = "thresholds=[{metric: auc, change: {direction: %s, absolute: %s}}]"


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("metrics=[{class: AUC, params: {name: x}}]", "metrics[0].params.name"),
        ("metrics=[AUC, AUC]", "evaluate.metrics[1]"),
        ("metrics=[{class: AUC, name: examples_per_class}]", "already"),
        ("slices=[[payment_type], [payment_typ]]", "evaluate.slices[1][0]"),
        # Percent: no model would ever be pushed.
        ("thresholds=[{metric: auc, lower_bound: 97}]", "'auc' never exceeds 1"),
        (DIRECTED % ("lower_is_better", "0.01"), "a higher 'auc' is better"),
        (DIRECTED % ("higher_is_better", "-5"), "cannot change by more than 1"),
        (TWICE, "there is another limit of the same lower_bound"),
        (CHANGED % "hour: 7", "hour is not in evaluate.slices"),
        (CHANGED % "payment_type: Credit card", "did you mean 'Credit Card'?"),
        (CHANGED % "payment_type: Cash, hour: 24", "24 is not in the domain of 'hour'"),
        (CHANGED % "payment_type: 1", "a string: quote it"),
    ],
)
def test_what_is_refused(refused, override, words):
    assert words in refused("evaluate.thresholds=[]", f"evaluate.{override}")


def test_a_slice_must_not_have_the_name_of_a_transformed_feature(refused, project):
    path = project / "schemas" / "fares" / "schema.pbtxt"
    path.write_text(path.read_text() + 'feature { name: "fare_xf" type: INT }\n')

    message = refused("evaluate.slices=[[hour, fare_xf]]", thresholds())

    assert "take 'fare_xf' for the transformed 'fare'" in message
    assert "evaluate.slices[0][1]" in message


def test_a_renamed_metric_is_known_by_its_new_name_only(refused, validate):
    renamed = metrics("{class: AUC, name: area}")

    validate(renamed, thresholds("{metric: area, lower_bound: 0.5}"))
    assert "is called 'auc'" in refused(
        renamed, thresholds("{metric: auc, lower_bound: 0.5}")
    )


@pytest.mark.parametrize(
    ("label", "metric", "words"),
    [
        (GENRES, "SparseCategoricalAccuracy", "is not for several labels"),
        (GENRES, "{class: AUC, params: {class_id: 3}}", "are numbered from 0 to 2"),
        (GENRES, "{class: AUC, average: micro}", "metrics[0].average"),
        (GENRES, "{class: AUC, average: macro, params: {class_id: 1}}", "no average"),
        (BIG_TIP, "{class: AUC, average: macro}", "no average"),
        # Found: TFMA gives the number of the other class.
        (BIG_TIP, "{class: Recall, params: {class_id: 0}}", "Specificity or NPV"),
        (BIG_TIP, "{class: Recall, params: {top_k: 1}}", "is of label.positive"),
    ],
)
def test_what_does_not_fit_the_classes(refused, label, metric, words):
    assert words in refused(label, metrics(metric), thresholds())


def test_several_limits_per_metric_and_slice(validate):
    change = "change: {direction: higher_is_better, absolute: -0.01}"
    validate(
        thresholds(
            "{metric: auc, lower_bound: 0.5}",
            f"{{metric: auc, {change}}}",
            "{metric: auc, slice: {payment_type: Cash}, lower_bound: 0.6}",
            "{metric: auc, slice: {payment_type: Credit Card}, lower_bound: 0.6}",
            "{metric: auc, slice: [payment_type], lower_bound: 0.4}",
        )
    )


MAE = "evaluate.thresholds=[{metric: mean_absolute_error, %s}]"
NUMBERS = ("evaluate.metrics=[MeanAbsoluteError]", "evaluate.thresholds=[]")


def test_a_regression(validate):
    label = "{feature: seconds, task: regression}"
    valid = validate(f"label={label}", *NUMBERS)
    assert valid.config.label.classes is None
    assert valid.config.label.prediction_key == "prediction"


@pytest.mark.parametrize(
    ("label", "override", "words"),
    [
        ("company", "", "of task regression must be INT or FLOAT, not BYTES"),
        ("seconds, classes: [1, 2]", "", "a regression has no classes"),
        ("seconds", "train.class_weights=balanced", "has no class weights"),
        ("seconds", MAE % "upper_bound: 9, min_examples_per_class: 5", "no classes"),
    ],
)
def test_what_is_not_for_a_regression(refused, label, override, words):
    overrides = [*NUMBERS, override] if override else NUMBERS
    label = f"label={{feature: {label}, task: regression}}"
    assert words in refused(label, *overrides)


@pytest.mark.parametrize(
    ("threshold", "words"),
    [
        ("{metric: acu, lower_bound: 1}", "did you mean 'auc'?"),
        (
            "{metric: auc, slice: [payment_type], "
            "change: {direction: higher_is_better, absolute: 0}}",
            "what a slice reached at the push is not known",
        ),
    ],
)
def test_the_metrics_of_a_served_model(refused, threshold, words):
    assert words in refused(
        "evaluate.thresholds=[]", f"retrain.metric_drop=[{threshold}]"
    )


def test_slices_of_a_float_are_warned_of(validate):
    (warning,) = validate("evaluate.slices=[[fare]]").warnings

    assert "evaluate.slices[0][0]: 'fare' is FLOAT" in warning
