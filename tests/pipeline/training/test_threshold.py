"""The threshold that is chosen on predictions, at known values."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.config.label import ThresholdRule
from pipeline.training.threshold import choose_threshold

pytestmark = pytest.mark.unit

# Descending; recall after each distinct one: 1/3, 1/3, 2/3, 1, 1.
_P = (0.9, 0.8, 0.6, 0.6, 0.4, 0.1)
_Y = (1, 0, 1, 0, 1, 0)
_ONES = (1.0,) * 6


@pytest.mark.parametrize(
    ("rule", "weights", "expected"),
    [
        ({"recall_at_least": 2 / 3}, _ONES, 0.5),
        ({"recall_at_least": 0.7}, _ONES, 0.25),
        ({"recall_at_least": 1.0}, _ONES, 0.25),
        # Precision: 1, 1/2, 1/2, 3/5, 1/2.
        ({"precision_at_least": 0.6}, _ONES, 0.25),
        ({"precision_at_least": 0.5}, _ONES, 0.05),
        # The first positive weighs nothing, so precision is 0.6 at most.
        ({"precision_at_least": 0.9}, (0, 1, 1, 0, 2, 1), 0.25),
        # F1: 1/2, 2/5, 4/7, 3/4, 2/3.
        ({"maximize": "f1"}, _ONES, 0.25),
        # Of the weighted positives, the first is 8 of 10.
        ({"recall_at_least": 0.8}, (8, 1, 1, 1, 1, 1), 0.85),
        ({"recall_at_least": 0.5}, (0, 1, 0, 1, 0, 1), 0.5),  # There is no positive.
    ],
)
def test_what_a_rule_chooses(rule, weights, expected):
    found = choose_threshold(
        ThresholdRule.model_validate(rule),
        np.array(_Y) > 0,
        np.array(_P, np.float32),
        np.array(weights, np.float32),
    )
    assert found == expected
