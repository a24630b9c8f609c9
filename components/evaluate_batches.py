"""Evaluates batches of examples, where TFMA's Evaluator takes one after another.

TFMA splits the batches it has predicted, and gives each example, once per slice, to
each metric: 0.6 ms for a taxi trip with two slices. Here the examples that a batch has
of a slice stay together. Most metrics take them at once, and any other one by one; the
results are the same, but for the rounding of sums.

TFMA has no option for this, so names of its modules are replaced while it builds its
pipeline, only in the versions below; see docs/adr/0014-evaluation-in-batches.md.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import apache_beam as beam
import numpy as np
import tensorflow as tf
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
    tf_metric_wrapper,
)
from tensorflow_model_analysis.slicer import slicer_lib
from tensorflow_model_analysis.utils import util

from components.threshold_metrics import LogOddsHistogram

KNOWN_VERSIONS = ("0.47.", "0.52.")
_INPUTS = {tfma.LABELS_KEY, tfma.PREDICTIONS_KEY, tfma.EXAMPLE_WEIGHTS_KEY}
_Keras = tf_metric_wrapper._CompilableMetricsCombiner
_PAIRWISE = (
    binary_confusion_matrices._BinaryConfusionMatrixCombiner,
    calibration_histogram._CalibrationHistogramCombiner,
    LogOddsHistogram,
)
_extract = metric_util.to_label_prediction_example_weight


class BatchCombineFn(beam.CombineFn):
    """Computes a metric; also takes the labels and predictions of a whole batch."""

    def add_batch(self, accumulator: Any, batch: Any, size: int) -> Any:
        """Returns the accumulator with the inputs ``[size, ...]`` of a batch."""
        raise NotImplementedError


@contextmanager
def evaluate_batches() -> Iterator[None]:
    """Lets TFMA's default extractors keep batches, where the config allows it."""
    default = model_eval_lib.default_extractors
    with ExitStack() as patches:

        def replace(module: Any, name: str, new: Any) -> None:
            patches.enter_context(mock.patch.object(module, name, new))

        def extractors(**given: Any) -> list[Any]:
            *others, unbatch, slices = default(**given)
            config = given["eval_config"]
            if not _can_keep_batches(config):
                return [*others, unbatch, slices]
            # Our elements have the inputs of metrics already.
            replace(evaluator, "_PreprocessorDoFn", lambda _: lambda element: [element])
            replace(evaluator, "_ComputationsCombineFn", _CombineBatches)
            split = beam.FlatMap(_split_by_slice, config)
            return [*others, slices._replace(ptransform=split)]

        if tfma.__version__.startswith(KNOWN_VERSIONS):
            replace(model_eval_lib, "default_extractors", extractors)
        yield


def _can_keep_batches(config: Any) -> bool:
    """Whether metrics read labels, predictions and weights of single examples."""
    found = metric_specs.to_computations(config.metrics_specs, eval_config=config)
    return not (
        config.options.compute_confidence_intervals.value
        or config.options.min_slice_size.value > 1
        or config.cross_slicing_specs
        or any(spec.query_key for spec in config.metrics_specs)
        or any(spec.slice_keys_sql for spec in config.slicing_specs)
        or any(spec.model_type != tfma.TF_GENERIC for spec in config.model_specs)
        or any(
            type(preprocessor) is not metric_types.StandardMetricInputsPreprocessor
            or not {*preprocessor.include_filter} <= _INPUTS
            for computation in found
            for preprocessor in getattr(computation, "preprocessors", None) or ()
        )
    )


def _split_by_slice(batch: Mapping[str, Any], config: Any) -> Iterator[dict[str, Any]]:
    """Yields what a batch has of each slice, or its examples, with their slices."""
    size = len(batch[tfma.INPUT_KEY])
    inputs = {name: batch[name] for name in _INPUTS if name in batch}
    slices = _slices(batch, size, config)
    if not _is_dense(inputs):
        for keys, example in zip(slices, util.split_extracts(inputs), strict=True):
            yield _element(keys, None, example)
        return
    rows = defaultdict(list)
    for row, keys in enumerate(slices):
        for key in keys:
            rows[key].append(row)
    for key, at in rows.items():
        part = tf.nest.map_structure(
            lambda x, at=at: None if x is None else x[at], inputs
        )
        yield _element([key], len(at), part)


def _is_dense(inputs: Mapping[str, Any]) -> bool:
    """Whether all inputs are arrays, and labels numbers.

    Otherwise an example may have no label or several, or TFMA looks up the label among
    the class names of its prediction, so TFMA splits the batch.
    """
    labels = _leaves(inputs.get(tfma.LABELS_KEY))
    return all(isinstance(x, np.ndarray) for x in _leaves(inputs)) and all(
        x.dtype.kind in "biuf" for x in labels
    )


def _slices(batch: Mapping[str, Any], size: int, config: Any) -> list[Any]:
    """Returns the keys of each example's slices, as TFMA finds them."""
    columns: dict[str, Any] = {
        name: {}
        for spec in config.slicing_specs
        for name in (*spec.feature_keys, *spec.feature_values)
    }
    if not columns:
        return [[()]] * size
    specs = [slicer_lib.SingleSliceSpec(spec=spec) for spec in config.slicing_specs]
    extract = slice_key_extractor.ExtractSliceKeysFn(config, materialize=False).process
    models = config.model_specs
    transformed = {x.name: columns for x in models} if len(models) > 1 else columns
    of_kind = {
        constants.FEATURES_KEY: columns,
        constants.TRANSFORMED_FEATURES_KEY: transformed,
    }
    # With an array it splits also where all examples lack the features.
    parts = {**util.include_filter(of_kind, batch), "row": np.arange(size)}
    extracted = (extract(example, specs)[0] for example in util.split_extracts(parts))
    return [found[tfma.SLICE_KEY_TYPES_KEY] for found in extracted]


def _element(keys: Any, size: int | None, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Returns an element of the pipeline; ``size`` None: ``inputs`` of an example."""
    return {
        tfma.SLICE_KEY_TYPES_KEY: slicer_lib.slice_keys_to_numpy_array([*keys]),
        "size": size,
        "inputs": metric_types.StandardMetricInputs(inputs),
    }


def _leaves(values: Any) -> list[Any]:
    if isinstance(values, Mapping):
        return [leaf for value in values.values() for leaf in _leaves(value)]
    return [] if values is None else [values]


class _CombineBatches(beam.combiners.SingleInputTupleCombineFn):
    """In place of TFMA's ``_ComputationsCombineFn``, whose elements are examples."""

    def __init__(self, computations: Iterable[metric_types.MetricComputation]) -> None:
        super().__init__(*(computation.combiner for computation in computations))

    # Beam's two base classes disagree about the names.
    def add_input(  # type: ignore[override]
        self, accumulator: Any, element: Any, *_: Any, **__: Any
    ) -> Any:
        inputs, size = element["inputs"], element["size"]
        examples = [inputs] if size is None else None
        results = []
        for combiner, of_metric in zip(self._combiners, accumulator, strict=True):
            result = _add_batch(combiner, of_metric, inputs, size) if size else None
            if result is None:
                examples = examples or _split(inputs)
                result = combiner.add_inputs(of_metric, examples)
            results.append(result)
        return tuple(results)

    def extract_output(self, accumulator: Any, *_: Any, **__: Any) -> dict[Any, Any]:
        outputs = super().extract_output(accumulator)
        return {key: value for output in outputs for key, value in output.items()}


def _split(batch: Mapping[str, Any]) -> list[metric_types.StandardMetricInputs]:
    return [*map(metric_types.StandardMetricInputs, util.split_extracts(batch))]


def _add_batch(combiner: Any, accumulator: Any, batch: Any, size: int) -> Any:
    """Returns a metric's accumulator with a batch; None: it needs single examples."""
    if isinstance(combiner, BatchCombineFn):
        return combiner.add_batch(accumulator, batch, size)
    if type(combiner) is example_count._ExampleCountCombiner:
        return None if combiner._example_weighted else accumulator + size
    if type(combiner) in _PAIRWISE:
        key = combiner._key
        names = key.model_name, key.output_name, key.sub_key
        found = _labels_and_predictions(combiner, batch, size, names)
        # With one of each per example, the pairs of a batch are those of its examples.
        if found and found[0].size == found[1].size == size:
            return combiner.add_input(accumulator, batch)
    if type(combiner) is _Keras and len(combiner._output_names) == 1:
        names = combiner._model_name, combiner._output_names[0], combiner._sub_key
        found = _labels_and_predictions(combiner, batch, size, names)
        if found and all(array.size and array.ndim <= 2 for array in found):
            labels, predictions, weights = (x.reshape(len(x), -1) for x in found)
            weights = np.broadcast_to(weights, [size, 1])
            for row in zip(labels, predictions, weights, strict=True):
                accumulator.add_input(0, *row)
                if accumulator.should_flush():
                    combiner._process_batch(accumulator)
            return accumulator
    return None


def _labels_and_predictions(combiner: Any, batch: Any, size: int, names: Any) -> Any:
    """Returns labels, predictions and weights; None if the metric changes them."""
    model_name, output_name, sub_key = names
    changed = sub_key or combiner._aggregation_type or combiner._class_weights
    extract = getattr(combiner, "_extract_label_prediction_and_weight", _extract)
    if changed or extract != _extract:
        return None
    (found,) = _extract(
        batch,
        eval_config=combiner._eval_config,
        model_name=model_name,
        output_name=output_name,
        example_weighted=combiner._example_weighted,
        flatten=False,
        squeeze=False,
        allow_none=True,
    )
    return found if found[2].size in (1, size) else None
