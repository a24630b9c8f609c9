"""Metrics, slices and thresholds are validated against the schema."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.unit

TEN = "label.feature=digit"


def thresholds(*items: str) -> str:
    return f"evaluate.thresholds=[{', '.join(items)}]"


def metrics(*items: str) -> str:
    return f"evaluate.metrics=[{', '.join(items)}]"


def test_metrics_get_the_names_of_their_results(validate):
    valid = validate(metrics("AUC", "{class: AUC, name: pr, params: {curve: PR}}"))

    assert [m.name for m in valid.config.evaluate.metrics] == ["auc", "pr"]
    assert valid.config.evaluate.metrics[1].params == {"curve": "PR"}


def test_an_unlisted_metric_is_left_to_tfma(validate):
    valid = validate(metrics("AUC", "KLDivergence", "BinaryAcuracy"))

    assert [m.name for m in valid.config.evaluate.metrics] == [
        "auc",
        "kl_divergence",
        "binary_acuracy",
    ]
    other, misspelt = valid.warnings
    assert "evaluate.metrics[1]" in other
    assert "'KLDivergence' is looked up in TFMA" in other
    assert "did you mean 'BinaryAccuracy'?" in misspelt


def test_a_threshold_may_be_on_a_metric_that_is_not_listed(validate):
    validate(metrics("Hinge"), thresholds("{metric: hinge, upper_bound: 1.0}"))


def test_the_name_of_a_result_is_not_a_metric_class(validate):
    (warning,) = validate(metrics("auc")).warnings
    assert "did you mean 'AUC'?" in warning


CHANGED = "thresholds=[{metric: auc, slice: {%s}, lower_bound: 1}]"


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("metrics=[SparseCategoricalAccuracy]", "does not fit a label of 2 classes"),
        ("metrics=[{class: AUC, params: {num: 1}}]", "'AUC' has no parameter 'num'"),
        ("metrics=[{class: AUC, params: {name: x}}]", "{class: AUC, name: ...}"),
        ("metrics=[RecallAtPrecision]", "needs the parameter 'precision'"),
        ("metrics=[AUC, AUC]", "rename this one: {class: AUC, name:"),
        ("metrics=[BinaryCrossentropy, BinaryCrossEntropy]", "two metrics are called"),
        ("metrics=[{class: AUC, name: examples_per_class}]", "is reserved"),
        ("slices=[[payment_type], [payment_typ]]", "evaluate.slices[1][0]"),
        ("slices=[[payment_typ]]", "did you mean 'payment_type'?"),
        ("slices=[[hour, hour]]", "crossed with itself"),
        ("thresholds=[{metric: acu, lower_bound: 1}]", "did you mean 'auc'?"),
        ("thresholds=[{metric: AUC, lower_bound: 1}]", "did you mean 'auc'?"),
        (CHANGED % "hour: 7", "add [hour] to evaluate.slices"),
        (CHANGED % "payment_tpe: Cash", "did you mean 'payment_type'?"),
        (CHANGED % "payment_type: Credit card", "did you mean 'Credit Card'?"),
        (CHANGED % "payment_type: Cash, hour: 24", "24 is not in the domain of 'hour'"),
        (CHANGED % "payment_type: 1", 'quote it: "1"'),
        (CHANGED % "seconds: '1'", "expected: a whole number"),
    ],
)
def test_what_is_refused(refused, override, words):
    assert words in refused("evaluate.thresholds=[]", f"evaluate.{override}")


def test_a_metric_must_fit_the_label(refused):
    message = refused(TEN, metrics("AUC"), thresholds())

    assert "the metric 'AUC' does not fit a label of 10 classes" in message
    assert "one of SparseCategoricalAccuracy, SparseCategoricalCross" in message
    assert "TFMA pools one-against-the-rest" in message


@pytest.mark.parametrize("params", ["class_id: 3", "top_k: 2"])
def test_a_metric_of_one_class_fits_many(validate, params):
    validate(TEN, metrics(f"{{class: Recall, params: {{{params}}}}}"), thresholds())


def test_metrics_are_not_checked_without_a_valid_label(refused):
    assert "does not fit" not in refused("label.feature=nothing")


def test_slices_of_a_float_are_warned_of(validate):
    (warning,) = validate("evaluate.slices=[[fare]]").warnings

    assert "evaluate.slices[0][0]: 'fare' is FLOAT" in warning


def test_slices_may_be_of_features_that_the_model_does_not_see(validate):
    assert validate("evaluate.slices=[[company]]").warnings == ()


def test_a_renamed_metric_is_known_by_its_new_name_only(refused, validate):
    renamed = metrics("{class: AUC, name: area}")

    validate(renamed, thresholds("{metric: area, lower_bound: 0.5}"))
    assert "is called 'auc'" in refused(
        renamed, thresholds("{metric: auc, lower_bound: 0.5}")
    )


def test_a_metric_of_one_class_cannot_have_thresholds(refused):
    message = refused(
        TEN,
        metrics("{class: Recall, params: {class_id: 3}}"),
        thresholds("{metric: recall, lower_bound: 0.5}"),
    )

    assert "'recall' is of one class (class_id)" in message


@pytest.mark.parametrize(
    "given",
    [
        "{payment_type: Cash}",
        "{payment_type: Cash, hour: 7}",
        "{hour: 7, payment_type: Cash}",
        "{seconds: 12345}",
        "[payment_type]",
        "[hour, payment_type]",
    ],
)
def test_slices_that_are_measured_may_have_thresholds(validate, given):
    validate(thresholds(f"{{metric: auc, slice: {given}, lower_bound: 0.5}}"))


def test_duplicate_limits_are_rejected(refused):
    message = refused(
        thresholds(
            "{metric: auc, lower_bound: 0.5}",
            "{metric: auc, upper_bound: 0.9}",
            "{metric: auc, lower_bound: 0.6}",
        )
    )

    assert "two thresholds on the lower_bound of 'auc' for the same slice" in message
    assert "evaluate.thresholds[2]" in message


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
