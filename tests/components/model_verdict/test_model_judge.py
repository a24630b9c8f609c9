"""The model gate's decision: bounds, changes, slices, baseline."""

from __future__ import annotations

import math
from typing import Any

import pytest

from components.model_verdict.baseline_summary import BaselineSummary, SkippedModel
from components.model_verdict.judge import Evaluation, judge, slice_name
from components.model_verdict.threshold import Change, Threshold
from sluice.record.verdict import Check, Verdict

pytestmark = pytest.mark.unit

CARD = (("payment", "Credit Card"),)
CASH = (("payment", "Cash"),)
RARE = (("payment", "Prcard"),)


def _evaluation(shift: float = 0.0) -> Evaluation:
    return Evaluation(
        metrics={
            (): {"auc": 0.95 + shift, "loss": 0.2 + shift},
            CARD: {"auc": 0.6 + shift},
            CASH: {"auc": 0.9 + shift},
            RARE: {"auc": 0.1},
        },
        examples_per_class={
            (): {"0": 800, "1": 200},
            CARD: {"0": 300, "1": 150},
            CASH: {"0": 500, "1": 50},
            RARE: {"0": 9, "1": 0},
        },
    )


def _judge(
    *thresholds: Threshold,
    baseline: Evaluation | None = None,
    split: str = "test",
    compared_with: BaselineSummary | None = None,
) -> Verdict:
    return judge(thresholds, _evaluation(), baseline, split, compared_with)


def _only(verdict: Verdict) -> Check:
    (row,) = verdict.rows
    return row


@pytest.mark.parametrize(("bound", "passed"), [(0.95, True), (0.9500001, False)])
def test_a_lower_bound_is_inclusive(bound, passed):
    row = _only(_judge(Threshold(metric="auc", lower_bound=bound)))
    assert (row.passed, row.actual, row.slice) == (passed, 0.95, "overall")


@pytest.mark.parametrize(("bound", "passed"), [(0.2, True), (0.19, False)])
def test_an_upper_bound_is_inclusive(bound, passed):
    row = _only(_judge(Threshold(metric="loss", upper_bound=bound)))
    assert (row.passed, row.limit_text) == (passed, f"<= {bound:g}")


def test_a_missed_bound_has_its_margin():
    row = _only(_judge(Threshold(metric="auc", lower_bound=0.97)))
    assert row.why == "misses the limit by 0.0200"


def test_both_bounds_are_two_rows():
    verdict = _judge(Threshold(metric="auc", lower_bound=0.9, upper_bound=0.94))
    assert [row.passed for row in verdict.rows] == [True, False]
    assert not verdict.passed


def test_a_named_slice_is_judged_by_itself():
    threshold = Threshold(
        metric="auc", slice={"payment": "Credit Card"}, lower_bound=0.58
    )
    row = _only(_judge(threshold))
    assert (row.slice, row.actual, row.passed) == ("payment: Credit Card", 0.6, True)


def test_a_named_slice_without_examples_fails():
    threshold = Threshold(metric="auc", slice={"payment": "Cheque"}, lower_bound=0.5)
    row = _only(_judge(threshold))
    assert not row.passed
    assert row.why == "no example is in it"


def test_a_named_slice_that_is_too_small_fails():
    threshold = Threshold(
        metric="auc",
        slice={"payment": "Prcard"},
        lower_bound=0.0,
        min_examples_per_class=10,
    )
    row = _only(_judge(threshold))
    assert not row.passed
    assert row.why == "only 9 of class 0, 0 of class 1; 10 of each needed"


def test_every_value_of_a_feature_is_judged_except_small_slices():
    threshold = Threshold(
        metric="auc", slice=("payment",), lower_bound=0.7, min_examples_per_class=10
    )
    rows = {row.slice: row for row in _judge(threshold).rows}
    assert not rows["payment: Credit Card"].passed
    assert rows["payment: Cash"].passed
    assert rows["payment: Prcard"].passed
    assert rows["payment: Prcard"].why.startswith("not judged: only 9 of class 0")


def test_a_feature_that_is_not_sliced_fails():
    row = _only(_judge(Threshold(metric="auc", slice=("hour",), lower_bound=0.7)))
    assert not row.passed
    assert row.slice == "hour"


@pytest.mark.parametrize("value", [None, math.nan])
def test_a_metric_without_a_value_fails(value):
    metrics = {} if value is None else {"auc": value}
    evaluation = Evaluation({(): metrics})
    row = _only(
        judge([Threshold(metric="auc", lower_bound=0.0)], evaluation, None, "test")
    )
    assert not row.passed
    assert row.why == "the metric has no value on this slice"


def _change(direction: Any = "higher_is_better", **limits: float) -> Change:
    return Change(direction=direction, **limits)


CHANGE = Threshold(metric="auc", change=_change(absolute=-0.01))


@pytest.mark.parametrize(
    ("shift", "passed"), [(-0.1, True), (0.0, True), (0.009, True), (0.011, False)]
)
def test_an_absolute_change(shift, passed):
    row = _only(_judge(CHANGE, baseline=_evaluation(shift)))
    assert row.passed is passed
    assert row.baseline == pytest.approx(0.95 + shift)
    assert row.why == f"absolute change {0.0 - shift:+.4f}"


@pytest.mark.parametrize(("shift", "passed"), [(0.05, True), (-0.05, False)])
def test_lower_is_better(shift, passed):
    threshold = Threshold(
        metric="loss", change=_change("lower_is_better", absolute=0.0)
    )
    assert _only(_judge(threshold, baseline=_evaluation(shift))).passed is passed


@pytest.mark.parametrize(("relative", "passed"), [(-0.1, True), (0.0, False)])
def test_a_relative_change(relative, passed):
    threshold = Threshold(metric="auc", change=_change(relative=relative))
    assert _only(_judge(threshold, baseline=_evaluation(0.04))).passed is passed


def test_a_relative_change_from_zero():
    zero = Evaluation({(): {"auc": 0.0}})
    up = Threshold(metric="auc", change=_change(relative=0.5))
    assert judge([up], _evaluation(), zero, "test").passed
    assert not judge([up], zero, zero, "test").passed


def test_without_a_baseline_a_change_passes_and_says_so():
    row = _only(_judge(CHANGE))
    assert row.passed
    assert row.why == "no baseline: no model was blessed before this one"


def test_a_slice_missing_from_the_baseline_has_no_change():
    threshold = Threshold(
        metric="auc",
        slice={"payment": "Cash"},
        change=_change(absolute=0.0),
    )
    baseline = Evaluation({(): {"auc": 0.99}})
    row = _only(_judge(threshold, baseline=baseline))
    assert row.passed
    assert row.why == "the baseline has no value for it on this slice"


DAMAGED = SkippedModel(
    "version 3 (artifact 30 of run c)", "damaged: held 5, now 4", False
)
RETIRED = SkippedModel("artifact 20 of run b", "retired: wrong labels", True)


def test_the_latest_blessed_model_is_not_its_own_baseline():
    """It said that this would be the first blessed model."""
    row = _only(_judge(CHANGE, compared_with=BaselineSummary(is_candidate=True)))
    assert row.passed
    assert row.why == "not compared: this model is the latest blessed one itself"


def test_the_baseline_is_named():
    with_name = BaselineSummary(name="version 1 (artifact 10 of run a)")
    change, row = _judge(CHANGE, baseline=_evaluation(), compared_with=with_name).rows
    assert (row.check, row.baseline) == ("baseline", "version 1 (artifact 10 of run a)")
    assert (row.passed, row.why, change.baseline) == (True, "", 0.95)


def test_an_older_baseline_is_reported():
    stands_in = BaselineSummary(name="artifact 10 of run a", skipped=(DAMAGED, RETIRED))
    *_, row = _judge(CHANGE, baseline=_evaluation(), compared_with=stands_in).rows
    assert row.why == (
        "an older model is used: version 3 (artifact 30 of run c) is damaged: held "
        "5, now 4; artifact 20 of run b is retired: wrong labels"
    )


def test_a_change_against_a_lost_baseline_fails_with_a_hint():
    lost = BaselineSummary(pipeline="digits", skipped=(DAMAGED, RETIRED))
    verdict = _judge(CHANGE, compared_with=lost)
    change, row = verdict.rows
    assert not verdict.passed
    assert "sluice models retire digits artifact:ID --reason WHY" in change.why
    assert (row.baseline, row.passed) == ("none", True)
    assert _judge(Threshold(metric="auc", lower_bound=0.9), compared_with=lost).passed


def test_without_any_model_that_is_not_retired_a_change_passes():
    change, row = _judge(CHANGE, compared_with=BaselineSummary(skipped=(RETIRED,))).rows
    assert change.passed
    assert change.why == "no baseline: all models blessed before are retired"
    assert row.why == "artifact 20 of run b is retired: wrong labels"


@pytest.mark.parametrize(
    "baseline",
    [
        BaselineSummary(),
        BaselineSummary("digits", "a", True, skipped=(DAMAGED, RETIRED)),
    ],
)
def test_json_round_trip(baseline):
    assert BaselineSummary.from_json(baseline.to_json()) == baseline


def test_judging_on_eval_is_reported():
    verdict = _judge(Threshold(metric="auc", lower_bound=0.9), split="eval")
    assert verdict.rows[0].why.startswith("there is no test split")
    assert verdict.passed


def test_missing_thresholds_are_reported():
    assert "nothing holds a model back" in _only(_judge()).why


def test_crossed_slices_match_in_any_order():
    key = (("b", "2"), ("a", "1"))
    evaluation = Evaluation({key: {"auc": 0.8}})
    threshold = Threshold(metric="auc", slice={"a": 1, "b": 2}, lower_bound=0.5)
    row = _only(judge([threshold], evaluation, None, "test"))
    assert (row.passed, row.slice) == (True, slice_name(key))
