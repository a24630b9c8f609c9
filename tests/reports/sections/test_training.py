"""The section Training: curves, speed, and the layers of the model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from reports.read_run import RunData
from reports.run_page import render_run
from reports.sections.training import build

pytestmark = pytest.mark.unit

RunWith = Callable[..., RunData]


def epochs(**changes: Any) -> dict[str, Any]:
    return {
        "source": "history.json",
        "epochs": [1, 2, 3],
        "epochs_left_out": 0,
        "metrics": {
            "auc": [0.5, 0.6, 0.7],
            "loss": [0.9, 0.5, None],
            "val_loss": [0.8, 0.6, "NaN"],
            "learning_rate": [0.1, 0.1, 0.01],
        },
        "training": {
            "strategy": "one_device: 1 replica on the CPU",
            "replicas": 1,
            "batch_size": 32,
            "precision": "float32",
            "trainable_parameters": 1000,
            "non_trainable_parameters": 20,
            "time_to_first_step_s": 1.5,
            "device_memory_peak_bytes": None,
            "chosen_epoch": 2,
            "epochs": [
                {
                    "epoch": epoch,
                    "duration_s": 2.0,
                    "examples_per_second": 100.0 * epoch,
                    "input_bound": share,
                }
                for epoch, share in ((1, 0.5), (2, 0.25), (3, None))
            ],
        },
        **changes,
    }


def model(**changes: Any) -> dict[str, Any]:
    return {
        "size_bytes": 2_000_000,
        "layers": [
            {
                "name": "dense",
                "class": "Dense",
                "output_shape": [None, 3],
                "parameters": 6,
                "trainable_parameters": 6,
            },
            {
                "name": "norm",
                "class": "BatchNormalization",
                "output_shape": [None, 3],
                "parameters": 12,
                "trainable_parameters": 6,
            },
            {
                "name": "flat",
                "class": "Flatten",
                "output_shape": None,
                "parameters": 0,
                "trainable_parameters": 0,
            },
        ],
        "files": [],
        "layers_left_out": 0,
        "variables": [],
        "variables_left_out": 0,
        "parameters": 18,
        "trainable_parameters": 12,
        **changes,
    }


def test_nothing_without_a_training(run_with: RunWith) -> None:
    assert build(run_with()) is None


def test_curves_of_train_and_eval_mark_the_chosen_epoch(run_with: RunWith) -> None:
    run = run_with({"epochs": epochs()})
    view = build(run)
    assert view is not None
    (training,) = view.trainings
    assert [title for title, _ in training.charts] == [
        "loss",
        "auc",
        "learning rate",
        "examples per second",
        "waiting for input",
    ]
    loss = str(training.charts[0][1])
    assert ">train</text>" in loss and ">eval</text>" in loss
    assert "chosen: 2" in loss
    assert "train: from 0.9000 to 0.5000" in loss and "1 without a number" in loss
    assert training.strategy == "one_device: 1 replica on the CPU"
    tiles = {name: (value, remark) for name, value, remark in training.tiles}
    assert tiles["Epochs"] == ("3", "weights of epoch 2")
    assert tiles["Examples per second"] == ("200", "median epoch")
    # 1.5 of 4 s, 1.5 s of which are before the first step.
    waiting = ("60 %", "of the time after the first step")
    assert tiles["Waiting for input"] == waiting
    assert tiles["Time in epochs"] == ("6.0 s", "1.5 s until the first step")
    assert tiles["Trainable parameters"] == ("1,000", "and 20 non-trainable")
    assert training.epochs.rows[1] == [2, 0.6, 0.5, 0.6, 0.1, 2.0, 200.0, 0.25]
    assert "Numbers by epoch" in render_run(run) and not run.notices


def test_a_foreign_training_has_curves_alone(run_with: RunWith) -> None:
    view = build(run_with({"epochs": epochs(training=None, epochs_left_out=7)}))
    assert view is not None
    (training,) = view.trainings
    assert [title for title, _ in training.charts] == ["loss", "auc", "learning rate"]
    assert training.tiles == [("Epochs", "10", "")]
    assert training.left_out == 7


def test_losses_far_apart_are_on_a_logarithmic_scale(run_with: RunWith) -> None:
    found = epochs(metrics={"loss": [10.0, 0.1, 0.01]})
    view = build(run_with({"epochs": found}))
    assert view is not None
    assert "log scale" in view.trainings[0].charts[0][1]


def test_layers_with_their_parameters(run_with: RunWith) -> None:
    run = run_with({"model": model()})
    view = build(run)
    assert view is not None
    (summary,) = view.models
    assert summary.total == "18 parameters: 12 trainable, 6 non-trainable, 2 MB."
    assert summary.table.rows == [
        ["dense", "Dense", "any x 3", 6, "yes"],
        ["norm", "BatchNormalization", "any x 3", 12, "6 of 12"],
        ["flat", "Flatten", None, 0, None],
    ]
    assert "Model summary" in render_run(run) and not run.notices


def test_variables_where_layers_are_unknown(run_with: RunWith) -> None:
    variable = {
        "name": "w",
        "dtype": "float32",
        "shape": [],
        "parameters": 1,
        "trainable": False,
    }
    view = build(run_with({"model": model(layers=None, variables=[variable])}))
    assert view is not None
    assert view.models[0].table.caption == "Variables"
    assert view.models[0].table.rows == [["w", "float32", "scalar", 1, "no"]]
