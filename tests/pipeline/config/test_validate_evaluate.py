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


def test_a_metric_must_fit_the_label(refused):
    message = refused(TEN, metrics("AUC"), thresholds())

    assert "the metric 'AUC' does not fit a label of 10 classes" in message
    assert "one of SparseCategoricalAccuracy, SparseCategoricalCross" in message
    assert "TFMA pools one-against-the-rest" in message


def test_a_metric_of_many_classes_does_not_fit_two(refused):
    message = refused(metrics("SparseCategoricalAccuracy"), thresholds())

    assert "does not fit a label of 2 classes" in message
    assert "one of AUC, BinaryAccuracy, Precision, Recall" in message
    assert "a metric for multiclass labels" in message


@pytest.mark.parametrize("params", ["class_id: 3", "top_k: 2"])
def test_a_metric_of_one_class_fits_many(validate, params):
    validate(TEN, metrics(f"{{class: Recall, params: {{{params}}}}}"), thresholds())


def test_metrics_are_not_checked_without_a_valid_label(refused):
    assert "does not fit" not in refused("label.feature=nothing")


def test_an_unknown_parameter_names_the_nearest(refused):
    message = refused(
        metrics("{class: AUC, params: {num_threshold: 10}}"), thresholds()
    )

    assert "the metric 'AUC' has no parameter 'num_threshold'" in message
    assert "did you mean 'num_thresholds'?" in message
    assert "evaluate.metrics[0].params.num_threshold" in message


def test_a_name_does_not_belong_into_params(refused):
    message = refused(metrics("{class: AUC, params: {name: x}}"), thresholds())

    assert "{class: AUC, name: ...}" in message


def test_a_parameter_without_a_default_is_required(refused, validate):
    message = refused(metrics("RecallAtPrecision"), thresholds())

    assert "'RecallAtPrecision' needs the parameter 'precision'" in message
    validate(
        metrics("{class: RecallAtPrecision, params: {precision: 0.9}}"), thresholds()
    )


@pytest.mark.parametrize(
    "pair", [("AUC", "AUC"), ("BinaryCrossentropy", "BinaryCrossEntropy")]
)
def test_two_results_of_one_name_are_refused(refused, pair):
    message = refused(metrics(*pair), thresholds())

    assert "two metrics are called" in message
    assert f"rename this one: {{class: {pair[1]}, name:" in message


def test_examples_per_class_is_a_reserved_metric_name(refused):
    message = refused(metrics("{class: AUC, name: examples_per_class}"), thresholds())

    assert "the name 'examples_per_class' is reserved" in message
    assert "name: examples_per_class_2}" in message


def test_a_slice_s_feature_must_be_in_the_schema(refused):
    message = refused("evaluate.slices=[[payment_type], [payment_typ]]")

    assert "the schema has no feature 'payment_typ'" in message
    assert "evaluate.slices[1][0]" in message
    assert "did you mean 'payment_type'?" in message


def test_a_feature_is_not_crossed_with_itself(refused):
    assert "crossed with itself" in refused("evaluate.slices=[[hour, hour]]")


def test_slices_of_a_float_are_warned_of(validate):
    (warning,) = validate("evaluate.slices=[[fare]]").warnings

    assert "evaluate.slices[0][0]: 'fare' is FLOAT" in warning


def test_slices_may_be_of_features_that_the_model_does_not_see(validate):
    assert validate("evaluate.slices=[[company]]").warnings == ()


def test_a_threshold_s_metric_must_be_measured(refused):
    message = refused(thresholds("{metric: acu, lower_bound: 1}"))

    assert "no metric of this config is called 'acu'" in message
    assert "one of auc, binary_accuracy, example_count" in message
    assert "did you mean 'auc'?" in message
    assert "evaluate.thresholds[0].metric" in message


def test_a_threshold_takes_the_result_s_name_not_the_class(refused):
    message = refused(thresholds("{metric: BinaryAccuracy, lower_bound: 1}"))

    assert "did you mean 'binary_accuracy'?" in message


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


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ("{hour: 7}", "hour"),
        ("[company]", "company"),
        ("[payment_type, company]", "payment_type, company"),
    ],
)
def test_slices_that_are_not_measured_say_what_to_add(refused, given, names):
    message = refused(thresholds(f"{{metric: auc, slice: {given}, lower_bound: 0.5}}"))

    assert "there are no slices of" in message
    assert f"add [{names}] to evaluate.slices" in message
    assert "evaluate.thresholds[0].slice" in message


@pytest.mark.parametrize("given", ["{payment_tpe: Cash}", "[payment_tpe]"])
def test_a_slice_of_an_unknown_feature_names_the_nearest(refused, given):
    message = refused(thresholds(f"{{metric: auc, slice: {given}, lower_bound: 0.5}}"))

    assert "the schema has no feature 'payment_tpe'" in message
    assert "did you mean 'payment_type'?" in message


def test_a_slice_s_value_must_be_in_the_domain(refused):
    message = refused(
        thresholds("{metric: auc, slice: {payment_type: Credit card}, lower_bound: 1}")
    )

    assert "'Credit card' is not in the domain of 'payment_type'" in message
    assert "one of Cash, Credit Card" in message
    assert "did you mean 'Credit Card'?" in message
    assert "evaluate.thresholds[0].slice.payment_type" in message


def test_a_number_outside_the_domain_is_refused(refused):
    message = refused(
        thresholds(
            "{metric: auc, slice: {payment_type: Cash, hour: 24}, lower_bound: 1}"
        )
    )

    assert "24 is not in the domain of 'hour'" in message
    assert "and 12 more" in message


def test_a_slice_s_value_must_be_of_the_feature_s_type(refused):
    text = refused(
        thresholds("{metric: auc, slice: {payment_type: 1}, lower_bound: 1}")
    )
    number = refused(thresholds('{metric: auc, slice: {seconds: "1"}, lower_bound: 1}'))

    assert "expected: a string" in text
    assert 'quote it: "1"' in text
    assert "expected: a whole number" in number


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
