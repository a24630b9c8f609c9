"""TFMA metric: how often predictions of each probability were right.

The report draws ROC, precision-recall and calibration from it. TFMA's own plots are not
used: for two classes they fail on an example without a label, and their buckets hold
ten times the numbers, for every slice.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import apache_beam as beam
import numpy as np
from tensorflow_model_analysis import constants
from tensorflow_model_analysis.metrics import metric_types

PREDICTION_HISTOGRAM = "prediction_histogram"
BUCKETS = 100


class PredictionHistogram(metric_types.Metric):
    """Counts examples by probability; TFMA finds it by module and class name.

    Its value on a slice is an array of two rows of ``BUCKETS`` counts. Bucket i holds
    probabilities from i / BUCKETS to below (i + 1) / BUCKETS, the last one also 1. Of
    two classes it is the probability of the second, and the rows are examples of the
    first and of the second class. Of more it is that of the predicted class, and the
    rows are wrong and right predictions. Examples without a label (class id -1) and
    predictions that are not finite are not counted.
    """

    def __init__(self, prediction_key: str, name: str = PREDICTION_HISTOGRAM) -> None:
        """Makes the metric.

        Args:
          prediction_key: of the probabilities among the model's outputs.
          name: of the result.
        """
        super().__init__(_computations, prediction_key=prediction_key, name=name)

    @property
    def compute_confidence_interval(self) -> bool:
        """Never: a count is not an estimate."""
        return False


def metric_config(prediction_key: str) -> dict[str, str]:
    """Returns the TFMA MetricConfig, in its JSON form."""
    return {
        "class_name": PredictionHistogram.__name__,
        "module": __name__,
        "config": json.dumps({"prediction_key": prediction_key}),
    }


def _computations(
    prediction_key: str,
    name: str,
    model_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
) -> list[metric_types.MetricComputation]:
    """Returns one computation per model and output; called by TFMA."""
    return [
        metric_types.MetricComputation(
            keys=[key],
            preprocessors=[
                metric_types.StandardMetricInputsPreprocessor(
                    include_filter={
                        constants.LABELS_KEY: {},
                        constants.PREDICTIONS_KEY: {},
                    },
                    include_default_inputs=False,
                )
            ],
            combiner=_CountPredictions(key, prediction_key),
        )
        for model_name in model_names or [""]
        for output_name in output_names or [""]
        for key in [metric_types.MetricKey(name, model_name, output_name)]
    ]


class _CountPredictions(beam.CombineFn):
    """Counts predictions by their probability and whether they are right."""

    def __init__(self, key: metric_types.MetricKey, prediction_key: str) -> None:
        self._key = key
        self._prediction_key = prediction_key

    def create_accumulator(self) -> np.ndarray:
        return np.zeros((2, BUCKETS), np.int64)

    def add_input(
        self, mutable_accumulator: np.ndarray, element: Any, *_: Any, **__: Any
    ) -> np.ndarray:
        names = self._key.model_name, self._key.output_name
        labels, predictions = (
            element.get_labels(*names),
            element.get_predictions(*names),
        )
        if isinstance(predictions, Mapping):
            predictions = predictions.get(self._prediction_key)
        if labels is None or predictions is None:
            return mutable_accumulator
        (label, *_), values = np.ravel(labels).tolist(), np.ravel(predictions)
        if label < 0 or not np.isfinite(values).all():
            return mutable_accumulator
        if values.size > 2:
            predicted = int(values.argmax())
            row, probability = int(predicted == label), values[predicted]
        else:
            row, probability = int(label), values[-1]
        # In double precision 0.29 * 100 is below 29.
        bucket = int(np.floor(np.float32(probability) * np.float32(BUCKETS)))
        mutable_accumulator[row, min(max(bucket, 0), BUCKETS - 1)] += 1
        return mutable_accumulator

    def merge_accumulators(self, accumulators: Iterable[np.ndarray]) -> np.ndarray:
        return sum(accumulators, self.create_accumulator())

    def extract_output(
        self, accumulator: np.ndarray
    ) -> dict[metric_types.MetricKey, np.ndarray]:
        return {self._key: accumulator}
