"""The export gate's verdict, and the section ``export`` of a config."""

from __future__ import annotations

import math
from typing import Any

import pytest
from pydantic import ValidationError

from components.exports.judge import Comparison, judge
from components.exports.settings import Export

pytestmark = pytest.mark.unit


def judged(
    settings: dict[str, Any],
    difference: float = 0.0,
    agreement: float | None = 1.0,
    largest: float = 1.0,
) -> list[str]:
    """Returns the failed checks of a TFLite export."""
    export = Export.model_validate({"format": "tflite", **settings})
    served = Comparison("saved_model", 1, 1.0, 0.0, largest, None)
    found = Comparison(export.name, 1, 1.0, difference, largest, agreement)
    return [row.check for row in judge([export], [served, found], "eval").failures]


@pytest.mark.parametrize(
    ("settings", "found", "failed"),
    [
        ({}, {"difference": 2e-4}, ["tflite difference"]),
        ({}, {"difference": math.nan}, ["tflite difference"]),
        # The predictions of a regression are beyond 1.
        ({}, {"difference": 0.01, "largest": 500.0, "agreement": None}, []),
        ({"max_difference": 0.0}, {"difference": 1e-9}, ["tflite difference"]),
        ({}, {"agreement": 0.98}, ["tflite agreement"]),
        ({"quantize": "int8"}, {"difference": 0.9, "agreement": 0.95}, []),
        ({"quantize": "int8"}, {"agreement": 0.94}, ["tflite-int8 agreement"]),
        ({"quantize": "int8", "min_agreement": 0.5}, {"agreement": 0.6}, []),
    ],
    ids=str,
)
def test_which_limits_an_export_misses(settings, found, failed):
    assert judged(settings, **found) == failed


def test_only_tflite_is_quantized():
    with pytest.raises(ValidationError, match="only tflite is quantized, not tfjs"):
        Export(format="tfjs", quantize="int8")
