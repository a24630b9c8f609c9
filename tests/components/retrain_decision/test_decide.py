"""When there is a reason to train, and what is said about each."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

import pandas as pd
import pytest

from components.data_baselines import Entry
from components.model_verdict.read_evaluation import Evaluation
from components.retrain_decision.decide import Served, decide
from components.retrain_decision.settings import Retrain
from components.tfrecord_gen.ingestion_report import FileReport
from tests.kit.ingestion_reports import a_report

pytestmark = pytest.mark.tf

NOW = datetime(2026, 11, 27, 12, tzinfo=timezone.utc)


def _file(span: int, records: int = 100, version: int = 0) -> FileReport:
    digest = f"{span}-{version}"
    return FileReport(f"{span}/a", span, version, None, 9, digest, records, 0, 0)


def _served(*files: FileReport, days: float = 1.0, fare: float = 10.0) -> Served:
    entry = Entry(
        name="span 2",
        accepted_at="2026-11-01T00:00:00+00:00",
        run_id="run",
        spans=tuple(sorted({file.span or 0 for file in files})),
        splits={"train": 80},
        contents=tuple(file.sha256 for file in files),
        override=None,
    )
    pushed_at = NOW - timedelta(days=days)
    return Served("version 3", pushed_at, entry, {"train": _statistics(fare)})


def _statistics(fare: float, count: int = 200) -> Any:
    import tensorflow_data_validation as tfdv

    steps = range(0, 200, 200 // count)
    frame = pd.DataFrame({"fare": [fare + 0.1 * i for i in steps], "tip": steps})
    return tfdv.generate_statistics_from_dataframe(frame)


def _answers(
    policy: dict[str, Any], served: Served | None, *files: FileReport, **facts
):
    fare = facts.get("fare", 10.0)
    verdict = decide(
        Retrain(**policy), a_report(*files), _statistics(fare), served, NOW
    )
    assert verdict.passed, "a decision stops nothing"
    return verdict.skips, {row.check: (row.result, row.why) for row in verdict.rows}


def test_without_a_served_model_there_is_a_reason():
    skips, rows = _answers({"min_new_examples": 10**6}, None, _file(1))
    assert not skips
    assert rows == {"served model": ("yes", "no model is served yet")}


@pytest.mark.parametrize(
    ("least", "files", "answer", "why"),
    [
        (100, (_file(2), _file(3)), "yes", "new spans: 3"),
        (101, (_file(2), _file(3)), "no", "new spans: 3"),
        (150, (_file(3), _file(4)), "yes", "new spans: 3, 4"),
        # The newest version of a span counts as new; which it is not, is said.
        (50, (_file(2, version=1),), "yes", "delivered again: 2"),
        (1, (_file(1), _file(2)), "no", "version 3 was trained on the same data"),
    ],
)
def test_new_examples(least, files, answer, why):
    served = _served(_file(1), _file(2))
    skips, rows = _answers({"min_new_examples": least}, served, *files)
    assert rows == {"new examples": (answer, why)}
    assert skips == (answer == "no")


def test_drift_is_measured_against_the_data_of_the_served_model():
    served = _served(_file(1), fare=10.0)
    policy = {"drift_above": 0.2}
    skips, rows = _answers(policy, served, _file(2))
    assert skips
    assert {result for result, _ in rows.values()} == {"no"}

    skips, rows = _answers(policy, served, _file(2), fare=100.0)
    assert not skips
    ((check, (result, why)),) = rows.items()
    assert (result, why) == ("yes", "Jensen-Shannon; 200 examples against 200")
    assert check == "drift of 'fare'"

    few = _statistics(12.0, count=5)
    limit = Retrain(drift_above=0.01)
    (row,) = decide(limit, a_report(_file(2)), few, served, NOW).rows
    assert isinstance(row.actual, float) and row.actual > 0.01 and row.result == "no"
    chance = "Jensen-Shannon; 5 examples against 200, where chance gives up to 0."
    assert row.why.startswith(chance)

    # Found: 0 of a small limit was said to be closer to it than half of a large one.
    of_two = {"drift_above": {"fare": 1.0, "tip": 0.001}}
    skips, rows = _answers(of_two, served, _file(2), fare=20.0)
    assert (skips, list(rows)) == (True, ["drift of 'fare'"])
    only = {"drift_above": {"tip": 0.2}}
    assert list(_answers(only, served, _file(2), fare=100.0)[1]) == ["drift of 'tip'"]
    unknown = replace(served, data=None, statistics={})
    skips, rows = _answers(policy, unknown, _file(2))
    assert (skips, rows) == (
        False,
        {"drift": ("yes", "the data of version 3 is not known")},
    )


@pytest.mark.parametrize(
    ("limits", "auc", "answer"),
    [
        ({"lower_bound": 0.8}, 0.81, "no"),
        # As at the model gate, a limit is inclusive.
        ({"lower_bound": 0.8}, 0.8, "no"),
        ({"change": {"direction": "higher_is_better", "absolute": 0.0}}, 0.9, "no"),
        ({"lower_bound": 0.8}, 0.79, "yes"),
        ({"change": {"direction": "higher_is_better", "absolute": -0.1}}, 0.81, "no"),
        ({"change": {"direction": "higher_is_better", "absolute": -0.1}}, 0.79, "yes"),
        ({"change": {"direction": "lower_is_better", "absolute": 0.1}}, 0.99, "no"),
        ({"change": {"direction": "lower_is_better", "absolute": 0.1}}, 1.01, "yes"),
        # It has no value there.
        ({"lower_bound": 0.8}, None, "no"),
    ],
)
def test_the_served_model_is_measured_on_the_newest_span(limits, auc, answer):
    newest = Evaluation({(): {} if auc is None else {"auc": auc}})
    served = replace(_served(_file(1)), metrics={"auc": 0.9}, newest=newest)
    policy = {"metric_drop": ({"metric": "auc", **limits},)}
    skips, rows = _answers(policy, served, _file(2))
    assert [result for result, _ in rows.values()] == [answer]
    assert skips == (answer == "no")


def test_weighted_metrics_are_not_compared_with_unweighted_ones():
    limit = {"direction": "higher_is_better", "absolute": -0.1}
    policy = {"metric_drop": ({"metric": "auc", "change": limit},)}
    weighted = {"auc": 0.5, "effective_example_count": 20.0}
    for before, answer in (({"auc": 0.9}, "no"), ({**weighted, "auc": 0.9}, "yes")):
        newest = Evaluation({(): weighted})
        served = replace(_served(_file(1)), metrics=before, newest=newest)
        _, rows = _answers(policy, served, _file(2))
        assert [result for result, _ in rows.values()] == [answer]


def test_a_served_model_that_cannot_be_evaluated_is_a_reason():
    policy = {"metric_drop": ({"metric": "auc", "lower_bound": 0.8},)}
    for newest in (None, Evaluation({})):
        served = replace(_served(_file(1)), newest=newest)
        skips, rows = _answers(policy, served, _file(2))
        why = "version 3 could not be evaluated on the newest span"
        assert (skips, rows) == (False, {"metrics": ("yes", why)})


def test_age_counts_only_with_new_data():
    old = _served(_file(1), days=31)
    policy = {"max_age_days": 30.0}
    assert not _answers(policy, old, _file(1), _file(2, records=1))[0]
    skips, rows = _answers(policy, old, _file(1))
    assert skips
    assert rows["days since the push"] == (
        "no",
        "version 3 was trained on the same data",
    )
    assert _answers(policy, _served(_file(1), days=29), _file(2))[0]


def test_soon_after_a_push_nothing_is_a_reason():
    policy = {"min_new_examples": 1, "min_interval_h": 6.0}
    skips, rows = _answers(policy, _served(_file(1), days=0.2), _file(2))
    assert skips
    assert "4.8 hours after the push" in rows["new examples"][1]
    assert not _answers(policy, _served(_file(1), days=0.3), _file(2))[0]


def test_any_reason_suffices():
    policy = {"min_new_examples": 1000, "max_age_days": 30.0}
    skips, rows = _answers(policy, _served(_file(1), days=40), _file(2))
    assert not skips
    assert [result for result, _ in rows.values()] == ["no", "yes"]


@pytest.mark.parametrize(
    ("fare", "answer"), [(None, "no"), (10.0, "no"), (100.0, "yes")]
)
def test_drift_of_requests(fare, answer):
    """They have no label, and may have other features."""
    served = _served(_file(1))
    import tensorflow_data_validation as tfdv

    requests = tfdv.generate_statistics_from_dataframe(pd.DataFrame({"fare": []}))
    if fare is not None:
        rows = pd.DataFrame({"fare": [fare + 0.1 * n for n in range(200)]})
        requests = tfdv.generate_statistics_from_dataframe(rows)
    policy = Retrain(request_drift_above=0.2)
    report = a_report(_file(2))
    verdict = decide(policy, report, _statistics(10.0), served, NOW, requests)
    (row,) = verdict.rows
    assert (row.result, verdict.skips) == (answer, answer == "no"), row
    if fare is None:
        assert row.why == "no requests since the push are recorded"
    else:
        assert row.feature == "fare" and row.check == "request drift of 'fare'"
    # Without data that is new to the model a training would make the same one.
    report = a_report(_file(1))
    assert decide(policy, report, _statistics(10.0), served, NOW, requests).skips


def test_a_feature_that_no_request_has_any_more_is_a_drift():
    """Found: of 99 % without it the drift was 0.99, of all without it none."""
    import tensorflow_data_validation as tfdv

    rows = pd.DataFrame({"fare": [10.0 + 0.1 * n for n in range(200)], "miles": 1.0})
    make = tfdv.generate_statistics_from_dataframe
    requests = make(rows.drop(columns="miles"))
    policy = Retrain(request_drift_above=0.2)
    for takes, result in ((("fare", "miles"), "yes"), (("fare",), "no")):
        served = replace(
            _served(_file(1)), statistics={"train": make(rows)}, takes=takes
        )
        verdict = decide(policy, a_report(_file(2)), None, served, NOW, requests)
        assert [row.result for row in verdict.rows] == [result]


def test_what_requests_never_have_is_no_reason():
    """Found: it was one, each time, since "the data is not known"."""
    policy = Retrain(request_drift_above={"other": 0.1})
    requests = _statistics(10.0)
    served = replace(_served(_file(1)), statistics={"train": requests})
    verdict = decide(policy, a_report(_file(2)), None, served, NOW, requests)
    (row,) = verdict.rows
    assert (row.result, row.why) == (
        "no",
        "the data has none of the features that are to be compared",
    )


@pytest.mark.parametrize(
    ("limits", "answers", "rows"),
    [
        (0.15, "aabb", {"fare": "no", "prediction": "no"}),
        (0.15, "abbb", {"fare": "no", "prediction": "yes"}),
        ({"fare": 0.2}, "abbb", {"fare": "no"}),
        ({"prediction": 0.1}, "abbb", {"prediction": "yes"}),
        ({"fare": 0.2, "prediction": 0.9}, "abbb", {"fare": "no", "prediction": "no"}),
    ],
)
def test_drift_of_predictions(limits, answers, rows):
    import tensorflow_data_validation as tfdv

    make = tfdv.generate_statistics_from_dataframe
    both = (pd.DataFrame({"prediction": [*x] * 100}) for x in (answers, "aaab"))
    recorded, judged = map(make, both)
    served = replace(_served(_file(1)), predictions=(recorded, judged))
    requests = make(pd.DataFrame({"fare": [10.0 + 0.1 * n for n in range(200)]}))
    policy = Retrain(request_drift_above=limits)
    verdict = decide(policy, a_report(_file(2)), None, served, NOW, requests)
    assert {row.feature: row.result for row in verdict.rows} == rows


@pytest.mark.parametrize("limits", [0.2, {"prediction": 0.2}])
def test_drift_of_the_probability_of_predictions(limits):
    import tensorflow_data_validation as tfdv

    name = "probability of the prediction"
    both = (
        pd.DataFrame({"prediction": ["a", "b"] * 100, name: [low, 1.0] * 100})
        for low in (0.5, 0.9)
    )
    served = replace(
        _served(_file(1)),
        predictions=(*map(tfdv.generate_statistics_from_dataframe, both),),
    )
    policy = Retrain(request_drift_above=limits)
    verdict = decide(policy, a_report(_file(2)), None, served, NOW, None)
    assert [row.result for row in verdict.rows if row.feature == name] == ["yes"]


def test_predictions_that_are_not_known_are_no_reason():
    policy = Retrain(request_drift_above={"prediction": 0.1})
    verdict = decide(policy, a_report(_file(2)), None, _served(_file(1)), NOW, None)
    (row,) = verdict.rows
    assert (row.check, row.result) == ("request drift of 'prediction'", "no")
    assert "pushed without predictions" in row.why
