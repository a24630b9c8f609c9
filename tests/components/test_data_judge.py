"""The data gate's policy: any anomaly and any empty split fails."""

from __future__ import annotations

import pytest
from tensorflow_metadata.proto.v0 import anomalies_pb2, statistics_pb2

from components.data_verdict.judge import judge

pytestmark = pytest.mark.unit


def _statistics(count: int) -> statistics_pb2.DatasetFeatureStatisticsList:
    statistics = statistics_pb2.DatasetFeatureStatisticsList()
    statistics.datasets.add(num_examples=count)
    return statistics


def _anomalies(**features: str) -> anomalies_pb2.Anomalies:
    anomalies = anomalies_pb2.Anomalies()
    for name, description in features.items():
        info = anomalies.anomaly_info[name]
        info.description = description
        info.short_description = "Unexpected string values"
    return anomalies


GOOD = {"train": _statistics(10), "eval": _statistics(5)}
NO_ANOMALIES = {"train": _anomalies(), "eval": _anomalies()}


def test_clean_data_passes_with_a_row_per_check() -> None:
    verdict = judge(["train", "eval"], GOOD, NO_ANOMALIES)
    assert verdict.passed
    assert [(row.check, row.slice) for row in verdict.rows] == [
        ("number of examples", "train"),
        ("anomalies against the schema", "train"),
        ("number of examples", "eval"),
        ("anomalies against the schema", "eval"),
    ]


def test_an_anomaly_in_any_split_fails_and_names_the_feature() -> None:
    anomalies = {**NO_ANOMALIES, "eval": _anomalies(fare="values below 0")}
    (row,) = judge(["train", "eval"], GOOD, anomalies).failures
    assert (row.check, row.slice, row.why) == (
        "feature 'fare'",
        "eval",
        "values below 0",
    )
    assert row.limit == "Unexpected string values"


@pytest.mark.parametrize("statistics", [{}, {"train": _statistics(0)}])
def test_an_empty_split_is_one_failure(statistics: dict) -> None:
    anomalies = {"train": _anomalies(a="missing", b="missing")}
    (row,) = judge(["train"], statistics, anomalies).failures
    assert row.why == "the split 'train' holds no examples"


def test_an_anomaly_of_the_whole_data_set_fails() -> None:
    anomalies = anomalies_pb2.Anomalies()
    anomalies.dataset_anomaly_info.description = "too few examples"
    verdict = judge(["train"], GOOD, {"train": anomalies})
    assert [row.why for row in verdict.failures] == ["too few examples"]


def test_a_missing_report_is_not_taken_for_clean_data() -> None:
    verdict = judge(["train", "eval"], GOOD, {"train": _anomalies(), "eval": None})
    (row,) = verdict.failures
    assert (row.slice, row.why) == (
        "eval",
        "ExampleValidator has left no report on this split",
    )
