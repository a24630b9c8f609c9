"""The model gate's decision: bounds, changes, slices, baseline."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from components.model_verdict.judge import (
    BaselineSummary,
    SkippedModel,
    judge,
)
from components.model_verdict.read_evaluation import Evaluation
from components.model_verdict.settings import Change, Settings, Threshold
from sluice.record.verdict import Check, Verdict
from sluice.uncertainty import SliceEstimates, Uncertainty

pytestmark = pytest.mark.unit


def _evaluation(shift: float = 0.0) -> Evaluation:
    metrics = {
        "": {"auc": 0.95 + shift, "loss": 0.2 + shift},
        "Credit Card": {"auc": 0.6 + shift},
        "Cash": {"auc": 0.9 + shift},
        "Prcard": {"auc": 0.1},
    }
    counts = {
        "": {"0": 800, "1": 200},
        "Credit Card": {"0": 300, "1": 150},
        "Cash": {"0": 500, "1": 50},
        "Prcard": {"0": 9, "1": 0},
    }
    keys = {name: (("payment", name),) if name else () for name in metrics}
    return Evaluation(
        {keys[name]: values for name, values in metrics.items()},
        {keys[name]: values for name, values in counts.items()},
    )


def _judge(
    *thresholds: Threshold,
    candidate: Evaluation | None = None,
    baseline: Evaluation | None = None,
    split: str = "test",
    about: BaselineSummary | None = None,
) -> Verdict:
    settings = Settings(thresholds=thresholds, classes=("0", "1"), split=split)
    evaluation = candidate or _evaluation()
    return judge(settings, evaluation, baseline, about or BaselineSummary())


def _only(verdict: Verdict) -> Check:
    (row,) = verdict.rows
    return row


@pytest.mark.parametrize(
    ("metric", "bounds", "limit", "passed", "why"),
    [
        ("auc", {"lower_bound": 0.95}, ">= 0.95", True, ""),
        ("auc", {"lower_bound": 0.97}, ">= 0.97", False, "misses the limit by 0.0200"),
        ("loss", {"upper_bound": 0.2}, "<= 0.2", True, ""),
        ("loss", {"upper_bound": 0.1}, "<= 0.1", False, "misses the limit by 0.1000"),
    ],
)
def test_bounds_are_inclusive(metric, bounds, limit, passed, why):
    row = _only(_judge(Threshold(metric=metric, **bounds)))
    assert (row.limit_text, row.passed, row.why) == (limit, passed, why)
    assert (row.check, row.slice) == (metric, "overall")


@pytest.mark.parametrize(
    ("value", "minimum", "passed", "why"),
    [
        ("Cash", 10, True, ""),
        ("Cheque", None, False, "no example is in it"),
        ("Prcard", 10, False, "only 9 of class 0, 0 of class 1; 10 of each needed"),
    ],
)
def test_a_named_slice_is_judged_by_itself(value, minimum, passed, why):
    threshold = Threshold(
        metric="auc",
        slice={"payment": value},
        lower_bound=0.0,
        min_examples_per_class=minimum,
    )
    row = _only(_judge(threshold))
    assert (row.slice, row.passed, row.why) == (f"payment: {value}", passed, why)


def test_every_value_of_a_feature_is_judged_except_small_slices():
    threshold = Threshold(
        metric="auc", slice=("payment",), lower_bound=0.7, min_examples_per_class=10
    )
    rows = {row.slice: row for row in _judge(threshold).rows}
    assert not rows["payment: Credit Card"].passed
    assert rows["payment: Cash"].passed
    small = rows["payment: Prcard"]
    assert (small.passed, small.actual, small.limit_text) == (True, 0.1, ">= 0.7")
    assert small.why.startswith("not judged: only 9 of class 0")


def test_what_has_no_value_fails():
    row = _only(_judge(Threshold(metric="auc", slice=("hour",), lower_bound=0.7)))
    assert (row.passed, row.slice) == (False, "hour")
    row = _only(_judge(Threshold(metric="f1", lower_bound=0.0)))
    assert not row.passed
    assert row.why == "the metric has no value on this slice"
    no_war = Evaluation({(): {"auc": 0.9}}, {(): {"drama": 9, "war": 0}})
    row = _only(_judge(Threshold(metric="f1", lower_bound=0.0), candidate=no_war))
    assert row.why.endswith("no value on this slice; there is no example of class war")
    row = _only(_judge(Threshold(metric="auc", lower_bound=1.0), candidate=no_war))
    assert row.why == "misses the limit by 0.1000; there is no example of class war"


def test_a_threshold_on_two_features_is_judged_on_each_pair_and_on_nothing_else():
    metrics: Any = {
        (("b", "2"), ("a", "1")): {"auc": 0.8},
        (("a", "2"), ("b", "2")): {"auc": 0.6},
        (("a", "1"),): {"auc": 0.1},
        (): {"auc": 0.1},
    }
    threshold = Threshold(metric="auc", slice=("a", "b"), lower_bound=0.7)
    verdict = _judge(threshold, candidate=Evaluation(metrics))
    rows = {row.slice: row.passed for row in verdict.rows}
    assert rows == {"a: 2, b: 2": False, "b: 2, a: 1": True}


def test_a_slice_of_unknown_size_fails_where_a_size_is_needed():
    threshold = Threshold(metric="auc", lower_bound=0.1, min_examples_per_class=10)
    row = _only(_judge(threshold, candidate=Evaluation({(): {"auc": 0.9}})))
    assert (row.passed, row.why) == (False, "examples per class are unknown, 10 needed")


def _change(metric: str, direction: Any, **limits: Any) -> Threshold:
    return Threshold(metric=metric, change=Change(direction=direction, **limits))


HIGHER, LOWER = "higher_is_better", "lower_is_better"
CHANGE = _change("auc", HIGHER, absolute=-0.01)


@pytest.mark.parametrize(
    ("threshold", "shift", "passed", "why"),
    [
        (CHANGE, -0.1, True, "absolute change +0.1000"),
        (CHANGE, 0.009, True, "absolute change -0.0090"),
        (CHANGE, 0.011, False, "absolute change -0.0110"),
        (_change("loss", LOWER, absolute=0.0), 0.05, True, "absolute change -0.0500"),
        (_change("loss", LOWER, absolute=0.0), -0.05, False, "absolute change +0.0500"),
        (_change("auc", HIGHER, relative=-0.1), 0.04, True, "relative change -0.0404"),
        (_change("auc", HIGHER, relative=0.0), 0.04, False, "relative change -0.0404"),
        (_change("auc", HIGHER, relative=0.5), -0.95, True, "relative change +∞"),
    ],
)
def test_a_change_from_the_baseline(threshold, shift, passed, why):
    row = _only(_judge(threshold, baseline=_evaluation(shift)))
    assert (row.passed, row.why) == (passed, why)
    before = {"auc": 0.95, "loss": 0.2}[threshold.metric] + shift
    assert row.baseline == pytest.approx(before)


def test_a_change_on_each_value_is_compared_with_the_same_value():
    change = Change(direction="higher_is_better", absolute=-0.01)
    threshold = Threshold(metric="auc", slice=("payment",), change=change)
    cash = Evaluation({(("payment", "Cash"),): {"auc": 0.95}})
    rows = {row.slice: row for row in _judge(threshold, baseline=cash).rows}
    assert not rows["payment: Cash"].passed
    assert rows["payment: Cash"].baseline == 0.95
    others = [row for name, row in rows.items() if name != "payment: Cash"]
    assert {row.why for row in others} == {
        "the baseline has no value for it on this slice"
    }


@pytest.mark.parametrize(
    ("actual", "before"), [(math.nan, 0.9), (0.9, math.nan), (math.inf, math.inf)]
)
def test_a_change_that_is_no_number_fails(actual, before):
    candidate, baseline = (Evaluation({(): {"auc": x}}) for x in (actual, before))
    assert not _judge(CHANGE, candidate=candidate, baseline=baseline).passed


LOST = SkippedModel(
    name="version 3 (artifact 30 of run c)",
    why="missing: nothing is at /c",
    retired=False,
)
RETIRED = SkippedModel(
    name="artifact 20 of run b", why="retired: wrong labels", retired=True
)


@pytest.mark.parametrize(
    ("about", "passed", "why"),
    [
        ({}, True, "no baseline: no model was blessed before this one"),
        ({"skipped": (RETIRED,)}, True, "no baseline: all models blessed before are"),
        ({"is_candidate": True}, True, "not compared: this model is the latest"),
        ({"name": "version 3"}, True, "the baseline has other classes or targets"),
        ({"pipeline": "digits", "skipped": (LOST, RETIRED)}, False, "retire digits"),
    ],
)
def test_without_a_baseline_a_change_says_why(about, passed, why):
    change = _judge(CHANGE, about=BaselineSummary(**about)).rows[0]
    assert change.passed is passed
    assert why in change.why


def test_a_retired_model_is_not_blessed_again():
    about = BaselineSummary(retired="version 3 (artifact 30 of run c) was retired: bad")
    first, *others = _judge(CHANGE, about=about).rows
    assert [row.passed for row in (first, *others)] == [False, True]
    assert first.sentence.startswith(f"retired model: {about.retired}; train another")


def test_the_baseline_is_named_with_those_that_were_skipped():
    about = BaselineSummary(name="version 1 (artifact 10 of run a)")
    change, row = _judge(CHANGE, baseline=_evaluation(), about=about).rows
    made = "artifact 10 of run a"
    assert (row.check, row.baseline, row.why) == ("baseline", "version 1", made)
    about = about.model_copy(update={"skipped": (LOST, RETIRED)})
    *_, row = _judge(CHANGE, baseline=_evaluation(), about=about).rows
    assert row.why == (
        "artifact 10 of run a; an older model is used: version 3 (artifact 30 of run "
        "c) is missing: nothing is at /c; artifact 20 of run b is retired: wrong labels"
    )
    about = BaselineSummary(name="version 2 (a)", older=("version 1 (b)",))
    *_, row = _judge(CHANGE, baseline=_evaluation(), about=about).rows
    assert row.why == "a; 'over: best' also compares with version 1 (b)"


def test_a_lost_model_does_not_loosen_the_limit_of_an_older_one():
    about = BaselineSummary(name="version 1 (artifact 10 of run a)", skipped=(LOST,))
    worse = _judge(CHANGE, baseline=_evaluation(0.02), about=about)
    assert [row.passed for row in worse.rows] == [False, True]


def test_what_holds_nothing_back_is_reported():
    verdict = _judge(Threshold(metric="auc", lower_bound=0.9), split="eval")
    assert verdict.rows[0].why.startswith("there is no test split")
    assert verdict.passed
    assert "nothing holds a model back" in _only(_judge()).why


def test_a_metric_that_misses_several_limits_is_one_cause():
    bound = Threshold(metric="auc", lower_bound=0.97)
    loss = _change("loss", LOWER, absolute=-0.01)
    verdict = _judge(bound, CHANGE, loss, baseline=_evaluation(0.03))
    assert len(verdict.failures) == 2 and verdict.causes == [
        "auc is 0.9500 (baseline 0.9800), 0.0200 below the limit 0.97"
    ]
    assert _judge(loss, baseline=_evaluation(-0.1)).causes == [
        "loss is 0.2000 (baseline 0.1000): absolute change +0.1000, limit <= -0.01"
    ]


def _uncertain(
    auc: float, width: float, examples: int = 300, **more: Any
) -> Evaluation:
    """An AUC with intervals that end ``width`` beside each value."""
    bounds = (-width, width)
    known = Uncertainty(
        auc, bounds, reference=0.5, gain=bounds, changes={"baseline": bounds}
    )
    estimates: Any = {(): SliceEstimates(examples, {"auc": known}, **more)}
    counts: Any = {(): {"ok": 1392, "fraud": 42}}
    return Evaluation({(): {"auc": auc}}, counts, estimates)


def test_predictions_that_are_no_numbers_fail():
    """Found: all metrics leave them out."""
    *_, row = _judge(candidate=_uncertain(0.9, 0.01, not_finite=99)).rows
    assert (row.check, row.result) == ("predictions", "FAIL")
    assert row.why == "NaN or infinity is predicted for 99 of 399 examples"


def test_a_limit_within_the_interval_is_a_warning_that_says_what_would_decide():
    """Half the width away: four times the examples."""
    bound = Threshold(metric="auc", lower_bound=0.55)
    row = _only(_judge(bound, candidate=_uncertain(0.57, 0.04)))
    assert (row.result, row.reference) == ("warn", 0.5)
    assert row.interval == pytest.approx((0.53, 0.61))
    assert row.why == (
        "the limit 0.55 lies within the 95 % interval 0.5300 to 0.6100: about 1,200 "
        "examples would decide"
    )
    assert row.sentence == f"auc is 0.5700, {row.why}"
    assert json.loads(Verdict("model", (row,)).to_json())["rows"][0]["severity"] == (
        "warn"
    )
    sure = _only(_judge(bound, candidate=_uncertain(0.57, 0.01)))
    assert (sure.result, sure.why) == ("pass", "")
    missed = _only(_judge(bound, candidate=_uncertain(0.54, 0.02)))
    assert (missed.result, missed.passed) == ("FAIL", False)
    assert "would decide" in missed.why


@pytest.mark.parametrize(("width", "is_chance"), [(0.03, True), (0.01, False)])
def test_a_loss_that_may_be_chance_is_said(width, is_chance):
    """Also where it is too large a loss, and nothing is said of a gain."""
    baseline = Evaluation({(): {"auc": 0.92}})
    given: Any = {"candidate": _uncertain(0.9, width), "baseline": baseline}
    about = BaselineSummary(name="version 1")
    row, _ = _judge(CHANGE, **given, about=about).rows
    assert (row.result, row.baseline) == ("FAIL", 0.92)
    assert row.interval == pytest.approx((-0.02 - width, -0.02 + width))
    assert ("which may be chance with 300 examples" in row.why) == is_chance
    given["baseline"] = Evaluation({(): {"auc": 0.88}})
    row, _ = _judge(CHANGE, **given, about=about).rows
    assert (row.result, row.why) == ("pass", "absolute change +0.0200")


@pytest.mark.parametrize("bound", [0.5, 0.99])
def test_a_model_that_says_the_same_of_all_is_a_warning(bound):
    verdict = _judge(
        Threshold(metric="auc", lower_bound=bound),
        candidate=_uncertain(0.9, 0.01, 1434, predicted=(1434, 0)),
    )
    assert verdict.passed == (bound == 0.5)
    assert verdict.warnings == [
        "model: predicts 'ok' for all 1,434 examples; recall of 'fraud' is 0 of 42"
    ]


@pytest.mark.parametrize(
    ("auc", "result", "why"),
    [
        (0.53, "FAIL", "0.5300 against 0.5000 of a constant prediction: the "),
        (0.47, "FAIL", "0.4700 against 0.5000 of a constant prediction: no better"),
        (0.57, "pass", ""),
    ],
)
def test_better_than_the_reference_blocks_and_is_a_warning_without_a_limit(
    auc, result, why
):
    given = _uncertain(auc, 0.05)
    row = _only(
        _judge(Threshold(metric="auc", better_than="reference"), candidate=given)
    )
    assert row.result == result and row.why.startswith(why)
    assert (row.limit_text, row.actual) == ("better than reference", auc)
    bound = Threshold(metric="auc", lower_bound=0.1)
    warnings = _judge(bound, candidate=given).warnings
    assert bool(warnings) == (result == "FAIL")
    assert all(text.startswith(f"reference: auc {auc}") for text in warnings)


def test_a_miss_of_the_reference_is_a_cause_beside_that_of_a_limit():
    bound = Threshold(metric="auc", lower_bound=0.6)
    better = Threshold(metric="auc", better_than="reference")
    limit, reference = _judge(bound, better, candidate=_uncertain(0.47, 0.05)).causes
    assert limit.startswith("auc is 0.4700, 0.1300 below the limit 0.6")
    assert reference.startswith("auc: 0.4700 against 0.5000 of a constant prediction")


def test_few_examples_are_not_held_against_the_reference():
    few = Evaluation({(): {"auc": 0.9}}, {}, {(): SliceEstimates(12)})
    given = Threshold(metric="auc", better_than="reference")
    row = _only(_judge(given, candidate=few))
    assert (row.result, row.passed) == ("warn", True)
    assert row.why == "not judged: only 12 examples, 30 are needed"


def test_ten_days_of_small_losses_are_stopped_by_the_best():
    """Half a point a day is within a limit of one; the third day is the first below."""
    aucs = [0.9 - 0.005 * day for day in range(10)]
    passed = {}
    for over in ("latest", "best"):
        threshold = _change("auc", HIGHER, absolute=-0.0101, over=over)
        passed[over] = [
            _judge(
                threshold,
                candidate=_after(aucs[max(0, day - 5) : day], aucs[day]),
                baseline=Evaluation({(): {"auc": aucs[day - 1]}}),
                about=BaselineSummary(name="version 1"),
            ).passed
            for day in range(1, 10)
        ]
    assert passed == {"latest": [True] * 9, "best": [True] * 2 + [False] * 7}
    threshold = _change("auc", HIGHER, absolute=-0.0101, over="best")
    row, *_ = _judge(
        threshold,
        candidate=_after(aucs[:3], aucs[3]),
        baseline=Evaluation({(): {"auc": aucs[2]}}),
        about=BaselineSummary(name="version 3", older=("version 2", "version 1")),
    ).rows
    assert row.baseline == pytest.approx(0.9)
    assert row.why == (
        "absolute change -0.0150 from the best served model (2 before the baseline)"
    )


def _after(served: list[float], auc: float) -> Evaluation:
    """An AUC, after those of served models, the oldest first; all are known well."""
    *older, baseline = served
    values = {f"{n} before the baseline": x for n, x in enumerate(older[::-1], 1)}
    values["baseline"] = baseline
    bounds = (-0.001, 0.001)
    changes = dict.fromkeys(values, bounds)
    known = Uncertainty(auc, bounds, values=values, changes=changes)
    found: Any = {(): SliceEstimates(5000, {"auc": known})}
    return Evaluation({(): {"auc": auc}}, {}, found)
