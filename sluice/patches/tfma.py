"""TFMA: batches instead of single examples, and finer thresholds of AUC and the like.

Beam pickles the classes by name, so this module imports TFMA. Where a private name is
missing, TFMA stays as it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import apache_beam as beam
import numpy as np
import tensorflow_model_analysis as tfma
from tensorflow_model_analysis.api import model_eval_lib
from tensorflow_model_analysis.evaluators import (
    metrics_plots_and_validations_evaluator as evaluator,
)
from tensorflow_model_analysis.metrics import (
    binary_confusion_matrices,
    calibration_histogram,
    confusion_matrix_metrics,
    example_count,
    metric_types,
    metric_util,
    tf_metric_wrapper,
)
from tensorflow_model_analysis.utils import model_util

from sluice.metrics import LOG_ODDS, OF_EVERY_THRESHOLD

KNOWN_VERSIONS = ("0.47.", "0.52.")
_Histogram: Any = getattr(
    calibration_histogram, "_CalibrationHistogramCombiner", object
)
_NAMES = (
    (model_eval_lib, "default_extractors"),
    (evaluator, "_PreprocessorDoFn"),
    (evaluator, "_ComputationsCombineFn"),
    (example_count, "_ExampleCountCombiner"),
    (tf_metric_wrapper, "_CompilableMetricsCombiner"),
    (binary_confusion_matrices, "_BinaryConfusionMatrixCombiner"),
    (binary_confusion_matrices, "BINARY_CONFUSION_MATRICES_NAME"),
    (calibration_histogram, "CALIBRATION_HISTOGRAM_NAME"),
    (_Histogram, "_bucket_index"),
)
_extract = metric_util.to_label_prediction_example_weight


def missing_names() -> list[str]:
    """Returns the names that this TFMA lacks; if any, it is used as it is."""
    return [name for owner, name in _NAMES if not hasattr(owner, name)]


@contextmanager
def keep_batches(
    can_keep: Callable[[Any], bool],
    split_by_slice: Callable[..., Any],
    combine_fn: type[beam.CombineFn],
) -> Iterator[None]:
    """Lets TFMA's default extractors keep batches, where the config allows it.

    Why: TFMA splits the batches that it has predicted, and gives each example, once per
    slice, to each metric. It has no option for this.
    Upstream: ``default_extractors`` in tensorflow_model_analysis/api/model_eval_lib.py,
    ``_PreprocessorDoFn`` and ``_ComputationsCombineFn`` in
    evaluators/metrics_plots_and_validations_evaluator.py.
    Checked with: TFMA 0.47 and 0.52; others evaluate single examples.
    Without it: 0.6 ms for a taxi trip with two slices, 30 s of a run of 92 s.

    Args:
      can_keep: whether an EvalConfig allows it.
      split_by_slice: yields the inputs of metrics, from the extracts of a batch and the
        config.
      combine_fn: of all metrics, in place of TFMA's.
    """
    default = model_eval_lib.default_extractors
    with ExitStack() as replaced:

        def extractors(**options: Any) -> list[Any]:
            *others, unbatch, slices = default(**options)
            config = options["eval_config"]
            if not can_keep(config):
                return [*others, unbatch, slices]
            replaced.enter_context(
                _replaced(
                    evaluator,
                    # Our elements have the inputs of metrics already.
                    _PreprocessorDoFn=lambda _: lambda element: [element],
                    _ComputationsCombineFn=combine_fn,
                )
            )
            split = beam.FlatMap(split_by_slice, config)
            return [*others, slices._replace(ptransform=split)]

        if tfma.__version__.startswith(KNOWN_VERSIONS) and not missing_names():
            names = _replaced(model_eval_lib, default_extractors=extractors)
            replaced.enter_context(names)
        yield


@contextmanager
def evaluate_also(models: Mapping[str, str], class_name: str) -> Iterator[None]:
    """Lets TFX's Evaluator evaluate further models, by one of the metrics.

    Why: TFX evaluates a candidate and a baseline, and raises for more models.
    Upstream: ``Executor.Do`` in tfx/components/evaluator/executor.py.
    Checked with: TFX 1.16 and 1.21.
    Without it: a change is compared with the latest model alone.

    Args:
      models: paths of SavedModels by name.
      class_name: of the metric.
    """
    evaluate = tfma.ExtractEvaluateAndWriteResults

    def with_models(eval_shared_model: Any, eval_config: Any, **options: Any) -> Any:
        config = type(eval_config)()
        config.CopyFrom(eval_config)
        own = [spec.name for spec in config.model_specs]
        for name in models:
            config.model_specs.add().CopyFrom(config.model_specs[0])
            config.model_specs[-1].name = name
        for spec in config.metrics_specs:
            is_of_all = any(x.class_name == class_name for x in spec.metrics)
            spec.model_names[:] = [*own, *(models if is_of_all else ())]
        further = [
            tfma.default_eval_shared_model(path, model_name=name, eval_config=config)
            for name, path in models.items()
        ]
        shared = [*eval_shared_model, *further]
        return evaluate(eval_shared_model=shared, eval_config=config, **options)

    with _replaced(tfma, ExtractEvaluateAndWriteResults=with_models):
        yield


def get_callable(*given: Any, **options: Any) -> Any:
    """Returns a signature of a model, which is called by the name of its input.

    Why: TFMA calls it by position, which TensorFlow first refuses with a TypeError
    whose message prints the batch.
    Upstream: ``get_callable`` in tensorflow_model_analysis/utils/model_util.py.
    Checked with: TFMA 0.47 and 0.52.
    Without it: 50 ms for 1,000 small images.
    """
    signature: Any = _get_callable(*given, **options)
    structure: Any = getattr(signature, "structured_input_signature", None)
    if structure is None:
        return signature

    def call(*values: Any, **named: Any) -> Any:
        return signature(**dict(zip(structure[1], values, strict=False)), **named)

    vars(call)["structured_input_signature"] = structure
    return call


_get_callable = model_util.get_callable
vars(model_util)["get_callable"] = get_callable


def add_batch(combiner: Any, accumulator: Any, batch: Any, size: int) -> Any:
    """Returns a metric's accumulator with a batch; None: it needs single examples.

    Why: TFMA's combiners take one example, but some can take the arrays of several.
    Upstream: the private combiners of tensorflow_model_analysis/metrics: of examples,
    of pairs of a label and a prediction, and of the inputs of Keras metrics.
    Checked with: TFMA 0.47 and 0.52; called only within ``keep_batches``.
    Without it: half of the time that ``keep_batches`` saves.
    """
    if type(combiner) is example_count._ExampleCountCombiner:
        return None if combiner._example_weighted else accumulator + size
    if type(combiner) in (
        binary_confusion_matrices._BinaryConfusionMatrixCombiner,
        _Histogram,
        LogOddsHistogram,
    ):
        key = combiner._key
        names = key.model_name, key.output_name, key.sub_key
        arrays = _labels_and_predictions(combiner, batch, size, names)
        # With one of each per example, the pairs of a batch are those of its examples.
        if arrays and arrays[0].size == arrays[1].size == size:
            return combiner.add_input(accumulator, batch)
    is_keras = type(combiner) is tf_metric_wrapper._CompilableMetricsCombiner
    if is_keras and len(combiner._output_names) == 1:
        names = combiner._model_name, combiner._output_names[0], combiner._sub_key
        arrays = _labels_and_predictions(combiner, batch, size, names)
        if arrays and all(array.size and array.ndim <= 2 for array in arrays):
            labels, predictions, weights = (x.reshape(len(x), -1) for x in arrays)
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
    (arrays,) = _extract(
        batch,
        eval_config=combiner._eval_config,
        model_name=model_name,
        output_name=output_name,
        example_weighted=combiner._example_weighted,
        flatten=False,
        squeeze=False,
        allow_none=True,
    )
    return arrays if arrays[2].size in (1, size) else None


class LogOddsHistogram(_Histogram):
    """TFMA's histogram of predictions, in equal steps of their log-odds."""

    def _bucket_index(self, prediction: float) -> int:
        if 0 < prediction < 1:
            odds = math.log(prediction) - math.log1p(-prediction)
            prediction = max(0.0, odds / (2 * LOG_ODDS) + 0.5)
        return int(super()._bucket_index(prediction))


class _OfLogOdds:
    """Base of TFMA's metrics that look for a threshold themselves, such as AUC.

    None of them changes with the scale of the predictions, only with their order.
    Thresholds that the config gives are of the probability.

    Why: TFMA counts predictions in 10,000 equal steps of the probability.
    Upstream: ``_CalibrationHistogramCombiner`` and ``CALIBRATION_HISTOGRAM_NAME`` in
    tensorflow_model_analysis/metrics/calibration_histogram.py,
    ``BINARY_CONFUSION_MATRICES_NAME`` in metrics/binary_confusion_matrices.py.
    Checked with: TFMA 0.47 and 0.52.
    Without it: of rare positives, all of whose probabilities are below 0.0001, AUC is
    0.5 whatever the model does.
    """

    kwargs: dict[str, Any]

    def computations(self, *args: Any, **options: Any) -> Any:
        compute = super().computations  # type: ignore[misc]
        is_fixed = self.kwargs.get("thresholds") or self.kwargs.get("num_thresholds")
        if is_fixed or missing_names():
            return compute(*args, **options)
        # Other metrics of the same predictions keep TFMA's histogram, by its name.
        histogram = _replaced(
            calibration_histogram,
            _CalibrationHistogramCombiner=LogOddsHistogram,
            CALIBRATION_HISTOGRAM_NAME="_log_odds_histogram",
        )
        matrices = _replaced(
            binary_confusion_matrices, BINARY_CONFUSION_MATRICES_NAME="_log_odds"
        )
        with histogram, matrices:
            return compute(*args, **options)


# TFMA finds the metrics that are registered here by its own names.
for _name in OF_EVERY_THRESHOLD:
    _bases = (_OfLogOdds, getattr(confusion_matrix_metrics, _name))
    globals()[_name] = type(_name, _bases, {"__module__": __name__})
    metric_types.register_metric(globals()[_name])


@contextmanager
def _replaced(module: Any, **names: Any) -> Iterator[None]:
    """Replaces names of a module within the block."""
    before = {name: getattr(module, name) for name in names}
    vars(module).update(names)
    try:
        yield
    finally:
        vars(module).update(before)
