from __future__ import annotations

import dataclasses
import json

import pytest

from pipeline.config.metric_table import (
    TABLE_FILE,
    describe_classes,
    judge,
    metric_table,
)


@pytest.mark.unit
def test_every_row_is_fit_for_something() -> None:
    table = metric_table()

    assert len(table) > 40
    for name, row in table.items():
        assert set(row.tasks) in ({"binary"}, {"multiclass"}, {"binary", "multiclass"})
        assert row.name
        assert set(row.required) <= set(row.params), name
        assert not (row.pooled and "multiclass" in row.tasks), name


@pytest.mark.unit
@pytest.mark.parametrize(
    ("class_name", "tasks", "pooled"),
    [
        ("AUC", ("binary",), True),
        ("BinaryAccuracy", ("binary",), True),
        ("Precision", ("binary",), True),
        ("BinaryCrossentropy", ("binary",), False),
        ("RecallAtPrecision", ("binary",), True),
        ("SparseCategoricalAccuracy", ("multiclass",), False),
        ("SparseCategoricalCrossentropy", ("multiclass",), False),
        ("MeanSquaredError", ("binary", "multiclass"), False),
        ("ExampleCount", ("binary", "multiclass"), False),
    ],
)
def test_what_users_will_ask_for(
    class_name: str, tasks: tuple[str, ...], pooled: bool
) -> None:
    row = metric_table()[class_name]

    assert (row.tasks, row.pooled) == (tasks, pooled)


@pytest.mark.unit
@pytest.mark.parametrize(
    "class_name",
    [
        "Accuracy",  # Compares probabilities with classes: always 0.
        "MaxRecall",  # Always 1.
        "CosineSimilarity",  # Of a single number: its sign.
        "ConfusionMatrixPlot",
        "MultiClassConfusionMatrixAtThresholds",
        "Mean",
        "Metric",
        "Rouge",
    ],
)
def test_what_says_nothing_here_is_left_out(class_name: str) -> None:
    assert class_name not in metric_table()


@pytest.mark.unit
def test_the_file_is_as_the_generator_writes_it() -> None:
    rows = {name: dataclasses.asdict(row) for name, row in metric_table().items()}

    assert TABLE_FILE.read_text() == (
        json.dumps(rows, indent=2, ensure_ascii=False) + "\n"
    )


@pytest.mark.tf
def test_classes_names_and_parameters_are_those_of_tfma_and_keras() -> None:
    known = describe_classes()

    for class_name, row in metric_table().items():
        empty = dataclasses.replace(row, tasks=(), pooled=False)
        assert known[class_name] == empty


@pytest.mark.tf
@pytest.mark.parametrize(
    "class_name",
    ["AUC", "SparseCategoricalAccuracy", "KLDivergence"],
)
def test_running_tfma_shows_the_same_tasks(class_name: str) -> None:
    row = metric_table()[class_name]

    assert judge(class_name, row) == row


@pytest.mark.tf
def test_running_tfma_shows_what_says_nothing() -> None:
    assert judge("Accuracy", describe_classes()["Accuracy"]).tasks == ()
