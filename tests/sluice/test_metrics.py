"""Directions of metrics, by whole names."""

from __future__ import annotations

import pytest

from sluice.metrics import direction_of, result_name

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("metric", "direction"),
    [
        ("val_loss", "min"),
        ("val_auc", "max"),
        ("binary_accuracy", "max"),
        (result_name("FalsePositives"), "min"),
        (result_name("BinaryCrossEntropy"), "min"),
        (result_name("FBetaScore"), "max"),
        ("val_cost", None),
        ("val_accident_rate", None),
    ],
)
def test_direction_of_a_metric(metric, direction):
    assert direction_of(metric) == direction
