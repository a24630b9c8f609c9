"""Evaluates batches of examples, where TFMA's Evaluator takes one after another.

TFMA splits the batches it has predicted, and gives each example, once per slice, to
each metric: 0.6 ms for a taxi trip with two slices. Here the examples that a batch has
of a slice stay together. A metric of one label and one prediction takes them at once,
and any other one by one; the results are the same.

TFMA has no option for this, so two of its names are replaced while it builds its
pipeline. They are known of the versions below; with another it evaluates as ever.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import apache_beam as beam
import numpy as np
import tensorflow_model_analysis as tfma
from tensorflow_model_analysis import constants
from tensorflow_model_analysis.api import model_eval_lib
from tensorflow_model_analysis.evaluators import (
    metrics_plots_and_validations_evaluator as evaluator,
)
from tensorflow_model_analysis.extractors import slice_key_extractor
from tensorflow_model_analysis.metrics import (
    binary_confusion_matrices,
    calibration_histogram,
    example_count,
    metric_specs,
    metric_types,
    metric_util,
)
from tensorflow_model_analysis.slicer import slicer_lib
from tensorflow_model_analysis.utils import util

KNOWN_VERSIONS = ("0.47.", "0.52.")
_INPUTS = {
    constants.LABELS_KEY,
    constants.PREDICTIONS_KEY,
    constants.EXAMPLE_WEIGHTS_KEY,
}

_FEATURES = (constants.FEATURES_KEY, constants.TRANSFORMED_FEATURES_KEY)
_ExampleCount = example_count._ExampleCountCombiner
_OF_PAIRS = (
    binary_confusion_matrices._BinaryConfusionMatrixCombiner,
    calibration_histogram._CalibrationHistogramCombiner,
)


@contextmanager
def evaluate_batches() -> Iterator[None]:
    """Lets TFMA's default extractors keep batches, where the metrics allow it."""
    default = model_eval_lib.default_extractors
    with ExitStack() as patches:

        def extractors(*, eval_config: Any, **given: Any) -> list[Any]:
            *others, unbatch, slices = default(eval_config=eval_config, **given)
            if not _has_plain_metrics(eval_config):
                return [*others, unbatch, slices]
            patches.enter_context(
                mock.patch.object(evaluator, "_ComputationsCombineFn", _CombineBatches)
            )
            split = beam.FlatMap(_split_by_slice, eval_config)
            return [*others, slices._replace(ptransform=split)]

        if tfma.__version__.startswith(KNOWN_VERSIONS):
            patches.enter_context(
                mock.patch.object(model_eval_lib, "default_extractors", extractors)
            )
        yield


def _has_plain_metrics(config: Any) -> bool:
    """Whether metrics read labels, predictions and weights, and are computed once."""
    options = config.options
    preprocessors = [
        preprocessor
        for computation in metric_specs.to_computations(
            config.metrics_specs, eval_config=config
        )
        for preprocessor in getattr(computation, "preprocessors", None) or ()
    ]
    return not (
        options.compute_confidence_intervals.value
        or options.min_slice_size.value > 1
        or config.cross_slicing_specs
        or any(spec.query_key for spec in config.metrics_specs)
        or any(spec.slice_keys_sql for spec in config.slicing_specs)
        or any(spec.model_type != constants.TF_GENERIC for spec in config.model_specs)
        or any(not _reads_inputs(preprocessor) for preprocessor in preprocessors)
    )


def _reads_inputs(preprocessor: Any) -> bool:
    """Whether it passes on labels, predictions and weights, and nothing else."""
    filters = isinstance(preprocessor, metric_types.StandardMetricInputsPreprocessor)
    return filters and {*preprocessor.include_filter} <= _INPUTS


def _split_by_slice(batch: Mapping[str, Any], config: Any) -> Iterator[dict[str, Any]]:
    """Yields the inputs of metrics, ``[examples, ...]``, of each slice of a batch."""
    inputs = {name: batch[name] for name in _INPUTS if name in batch}
    features = {name: batch[name] for name in _FEATURES if name in batch}
    if not all(isinstance(array, np.ndarray) for array in _arrays(inputs)):
        # Examples have no label or several: batches of one.
        for example in util.split_extracts({**inputs, **features}, keep_batch_dim=True):
            yield from _split_by_slice(example, config)
        return
    size = _size(inputs)
    for key, rows in _rows_of_slices(features, size, config).items():
        part = inputs if len(rows) == size else _take(inputs, np.array(rows))
        keys = slicer_lib.slice_keys_to_numpy_array([key])
        yield {**part, constants.SLICE_KEY_TYPES_KEY: keys}


def _rows_of_slices(
    features: Mapping[str, Any], size: int, config: Any
) -> Mapping[Any, Sequence[int]]:
    """Returns by the key of a slice the indices of its examples in a batch."""
    columns = {
        name
        for spec in config.slicing_specs
        for name in (*spec.feature_keys, *spec.feature_values)
    }
    if not columns:
        return {(): range(size)}
    specs = [slicer_lib.SingleSliceSpec(spec=spec) for spec in config.slicing_specs]
    extract = slice_key_extractor.ExtractSliceKeysFn(config, materialize=False).process
    found = defaultdict(list)
    # With an array it splits also where all examples lack the features.
    parts = {**_only(features, columns), "row": np.arange(size)}
    for row, example in enumerate(util.split_extracts(parts)):
        (extracted,) = extract(example, specs)
        for key in extracted[constants.SLICE_KEY_TYPES_KEY]:
            found[key].append(row)
    return found


def _arrays(values: Any) -> Iterator[Any]:
    if isinstance(values, Mapping):
        for value in values.values():
            yield from _arrays(value)
    elif values is not None:
        yield values


def _size(batch: Any) -> int:
    return len(next(_arrays(batch)))


def _take(values: Any, rows: np.ndarray) -> Any:
    if isinstance(values, Mapping):
        return {name: _take(value, rows) for name, value in values.items()}
    return None if values is None else values[rows]


def _only(values: Mapping[str, Any], names: set[str]) -> dict[str, Any]:
    return {
        name: _only(value, names) if isinstance(value, Mapping) else value
        for name, value in values.items()
        if isinstance(value, Mapping) or name in names
    }


class _CombineBatches(beam.combiners.SingleInputTupleCombineFn):
    """In place of TFMA's ``_ComputationsCombineFn``, whose elements are examples."""

    def __init__(self, computations: Iterable[metric_types.MetricComputation]) -> None:
        super().__init__(*(computation.combiner for computation in computations))

    # Beam's two base classes disagree about the names.
    def add_input(  # type: ignore[override]
        self, accumulator: Any, element: Any, *_: Any, **__: Any
    ) -> Any:
        (batch,) = element[evaluator._DEFAULT_COMBINER_INPUT_KEY]
        examples: list[Any] = []
        results = []
        for combiner, each in zip(self._combiners, accumulator, strict=True):
            if hasattr(combiner, "add_batch"):
                results.append(combiner.add_batch(each, batch))
            elif isinstance(combiner, _ExampleCount) and not combiner._example_weighted:
                results.append(each + _size(batch))
            elif _has_pairs(combiner, batch):
                results.append(combiner.add_input(each, batch))
            else:
                examples = examples or [
                    metric_types.StandardMetricInputs(example)
                    for example in util.split_extracts(batch)
                ]
                results.append(combiner.add_inputs(each, examples))
        return tuple(results)

    def extract_output(self, accumulator: Any, *_: Any, **__: Any) -> dict[Any, Any]:
        outputs = super().extract_output(accumulator)
        return {key: value for output in outputs for key, value in output.items()}


def _has_pairs(combiner: Any, batch: Any) -> bool:
    """Whether all that the metric does is to pair labels, predictions and weights.

    With one label and one prediction in each example these pairs are in the whole
    batch those of its examples.
    """
    if not isinstance(combiner, _OF_PAIRS):
        return False
    key = combiner._key
    if key.sub_key or combiner._aggregation_type or combiner._class_weights:
        return False
    ((labels, predictions, weights),) = metric_util.to_label_prediction_example_weight(
        batch,
        eval_config=combiner._eval_config,
        model_name=key.model_name,
        output_name=key.output_name,
        example_weighted=combiner._example_weighted,
        flatten=False,
        squeeze=False,
    )
    size = _size(batch)
    return labels.size == predictions.size == size and weights.size in (1, size)
