"""The table of metrics, compared with TFMA and Keras."""

from __future__ import annotations

import dataclasses

import pytest

from pipeline.config.metrics import METRICS


@pytest.mark.unit
def test_every_metric_fits_a_task():
    for name, row in METRICS.items():
        assert set(row.tasks) in ({"binary"}, {"multiclass"}, {"binary", "multiclass"})
        assert set(row.required) <= set(row.params), name
        assert not (row.pooled and "multiclass" in row.tasks), name


@pytest.mark.tf
def test_classes_names_and_parameters_are_those_of_tfma_and_keras():
    from tools.judge_metrics import describe_classes

    known = describe_classes()

    for class_name, row in METRICS.items():
        assert known[class_name] == dataclasses.replace(row, tasks=(), pooled=False)


@pytest.mark.tf
@pytest.mark.parametrize(
    "class_name", ["AUC", "SparseCategoricalAccuracy", "MeanSquaredError"]
)
def test_running_tfma_shows_the_same_tasks(class_name):
    from tools.judge_metrics import judge

    row = METRICS[class_name]

    assert judge(class_name, row) == row


@pytest.mark.tf
def test_running_tfma_shows_meaningless_metrics():
    from tools.judge_metrics import describe_classes, judge

    assert judge("Accuracy", describe_classes()["Accuracy"]).tasks == ()
