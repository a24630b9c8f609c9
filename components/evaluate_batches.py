"""Evaluates batches of examples, where TFMA's Evaluator takes one after another.

TFMA splits the batches it has predicted, and gives each example, once per slice, to
each metric: 0.6 ms for a taxi trip with two slices. Here the examples that a batch has
of a slice stay together. Most metrics take them at once, and any other one by one; the
results are the same, but for the rounding of sums.

What is replaced in TFMA for it stands in ``sluice.patches.tfma``; see
docs/adr/0014-evaluation-in-batches.md.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any

import apache_beam as beam
import numpy as np
import tensorflow as tf
import tensorflow_model_analysis as tfma
from tensorflow_model_analysis import constants
from tensorflow_model_analysis.extractors import slice_key_extractor
from tensorflow_model_analysis.metrics import metric_specs, metric_types
from tensorflow_model_analysis.slicer import slicer_lib
from tensorflow_model_analysis.utils import util

from sluice.patches.tfma import add_batch, keep_batches

_INPUTS = {tfma.LABELS_KEY, tfma.PREDICTIONS_KEY, tfma.EXAMPLE_WEIGHTS_KEY}


class BatchCombineFn(beam.CombineFn):
    """Computes a metric; also takes the labels and predictions of a whole batch."""

    def add_batch(self, accumulator: Any, batch: Any, size: int) -> Any:
        """Returns the accumulator with the inputs ``[size, ...]`` of a batch."""
        raise NotImplementedError


def evaluate_batches() -> AbstractContextManager[None]:
    """Lets TFMA's default extractors keep batches, where the config allows it."""
    return keep_batches(_can_keep_batches, _split_by_slice, _CombineBatches)


def _can_keep_batches(config: Any) -> bool:
    """Whether metrics read labels, predictions and weights of single examples."""
    computations = metric_specs.to_computations(
        config.metrics_specs, eval_config=config
    )
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
            for computation in computations
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
            lambda array, at=at: None if array is None else array[at], inputs
        )
        yield _element([key], len(at), part)


def _is_dense(inputs: Mapping[str, Any]) -> bool:
    """Whether all inputs are arrays, and labels numbers.

    Otherwise an example may have no label or several, or TFMA looks up the label among
    the class names of its prediction, so TFMA splits the batch.
    """
    labels = _leaves(inputs.get(tfma.LABELS_KEY))
    are_arrays = all(isinstance(leaf, np.ndarray) for leaf in _leaves(inputs))
    return are_arrays and all(label.dtype.kind in "biuf" for label in labels)


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
    transformed = columns
    if len(models) > 1:
        transformed = {model.name: columns for model in models}
    of_kind = {
        constants.FEATURES_KEY: columns,
        constants.TRANSFORMED_FEATURES_KEY: transformed,
    }
    # With an array it splits also where all examples lack the features.
    parts = {**util.include_filter(of_kind, batch), "row": np.arange(size)}
    extracted = (extract(example, specs)[0] for example in util.split_extracts(parts))
    return [extracts[tfma.SLICE_KEY_TYPES_KEY] for extracts in extracted]


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
            result = None
            if size and isinstance(combiner, BatchCombineFn):
                result = combiner.add_batch(of_metric, inputs, size)
            elif size:
                result = add_batch(combiner, of_metric, inputs, size)
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
