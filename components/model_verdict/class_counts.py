"""TFMA metric: the number of examples of each class on a slice.

TFMA's own metrics count one class against the rest, with a pass over the predictions
per class. This metric reads each label once. Its value on a slice is an array with one
count per class, in the order of the class ids, independent of the model. An example
without a label (class id -1) is not counted.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import apache_beam as beam
import numpy as np
from tensorflow_model_analysis import constants
from tensorflow_model_analysis.metrics import metric_types

from components.model_verdict.threshold import EXAMPLES_PER_CLASS


class ExamplesPerClass(metric_types.Metric):
    """Counts the examples of each class; TFMA finds it by module and class name."""

    def __init__(self, classes: int, name: str = EXAMPLES_PER_CLASS) -> None:
        """Makes the metric.

        Args:
          classes: how many classes the label has.
          name: of the result.
        """
        super().__init__(_computations, classes=classes, name=name)

    @property
    def compute_confidence_interval(self) -> bool:
        """Never: a count is not an estimate."""
        return False


def metric_config(classes: Sequence[str]) -> dict[str, str]:
    """Returns the TFMA MetricConfig (JSON form) that counts every class per slice."""
    return {
        "class_name": ExamplesPerClass.__name__,
        "module": __name__,
        "config": json.dumps({"classes": len(classes), "name": EXAMPLES_PER_CLASS}),
    }


def counts(value: Mapping[str, Any], classes: Sequence[str]) -> dict[str, int]:
    """Returns class name -> number of examples.

    Args:
      value: the metric's value on one slice, as ``tfma.load_eval_result`` has it.
      classes: the class names in the order of their ids.
    """
    # Protobuf's JSON form writes int64 as a string.
    numbers = map(int, value["arrayValue"]["int64Values"])
    return dict(zip(classes, numbers, strict=True))


def _computations(
    classes: int,
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
                    include_filter={constants.LABELS_KEY: {}},
                    include_default_inputs=False,
                )
            ],
            combiner=_CountClasses(key, classes),
        )
        for model_name in model_names or [""]
        for output_name in output_names or [""]
        for key in [metric_types.MetricKey(name, model_name, output_name)]
    ]


class _CountClasses(beam.CombineFn):
    """Counts labels by class id."""

    def __init__(self, key: metric_types.MetricKey, classes: int) -> None:
        self._key = key
        self._classes = classes

    def create_accumulator(self) -> Counter[int]:
        return Counter()

    def add_input(
        self, mutable_accumulator: Counter[int], element: Any, *_: Any, **__: Any
    ) -> Counter[int]:
        label = element.get_labels(self._key.model_name, self._key.output_name)
        if label is not None:
            mutable_accumulator.update(np.ravel(label).tolist())
        return mutable_accumulator

    def merge_accumulators(self, accumulators: Iterable[Counter[int]]) -> Counter[int]:
        merged: Counter[int] = Counter()
        for accumulator in accumulators:
            merged.update(accumulator)
        return merged

    def extract_output(
        self, accumulator: Counter[int]
    ) -> dict[metric_types.MetricKey, np.ndarray]:
        found = [accumulator[class_id] for class_id in range(self._classes)]
        return {self._key: np.array(found, np.int64)}
