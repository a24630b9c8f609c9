"""TFMA's metrics that look for a threshold themselves, such as AUC, at finer ones.

TFMA counts predictions in 10,000 equal steps of the probability: of rare positives, all
of whose probabilities are below 0.0001, AUC is 0.5 whatever the model does. Here the
steps are equal in the log-odds. None of these metrics changes with the scale of the
predictions, only with their order. TFMA finds those registered here by its own names.
"""

from __future__ import annotations

import math
from typing import Any
from unittest import mock

from tensorflow_model_analysis.metrics import (
    binary_confusion_matrices,
    calibration_histogram,
    confusion_matrix_metrics,
    metric_types,
)

from sluice.metrics import LOG_ODDS, OF_EVERY_THRESHOLD


class LogOddsHistogram(calibration_histogram._CalibrationHistogramCombiner):
    """TFMA's histogram of predictions, in equal steps of their log-odds."""

    def _bucket_index(self, prediction: float) -> int:
        if 0 < prediction < 1:
            odds = math.log(prediction) - math.log1p(-prediction)
            prediction = max(0.0, odds / (2 * LOG_ODDS) + 0.5)
        return int(super()._bucket_index(prediction))


class _OfLogOdds:
    """Base of the metrics; thresholds that the config gives are of the probability."""

    kwargs: dict[str, Any]

    def computations(self, *args: Any, **given: Any) -> Any:
        compute = super().computations  # type: ignore[misc]
        if self.kwargs.get("thresholds") or self.kwargs.get("num_thresholds"):
            return compute(*args, **given)
        # Other metrics of the same predictions keep TFMA's histogram, by its name.
        histogram = mock.patch.multiple(
            calibration_histogram,
            _CalibrationHistogramCombiner=LogOddsHistogram,
            CALIBRATION_HISTOGRAM_NAME="_log_odds_histogram",
        )
        name = "BINARY_CONFUSION_MATRICES_NAME"
        matrices = mock.patch.object(binary_confusion_matrices, name, "_log_odds")
        with histogram, matrices:
            return compute(*args, **given)


for _name in OF_EVERY_THRESHOLD:
    _bases = (_OfLogOdds, getattr(confusion_matrix_metrics, _name))
    globals()[_name] = type(_name, _bases, {"__module__": __name__})
    metric_types.register_metric(globals()[_name])
