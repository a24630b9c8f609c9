"""Reads TFMA's evaluation into plain metrics for the model gate."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from components.model_verdict.settings import EXAMPLES_PER_CLASS
from sluice.uncertainty import ESTIMATES, SliceEstimates

# TFMA puts it before the name of an average over classes.
_AVERAGE = re.compile(r"^macro_average: true\n_?")
SliceKey = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Evaluation:
    """Metrics of one model by slice.

    Attributes:
      metrics: slice -> metric name -> value; those that are not finite are left out.
      examples_per_class: slice -> class name -> number of examples.
      estimates: slice -> how uncertain the metrics are; the candidate's alone.
    """

    metrics: Mapping[SliceKey, Mapping[str, float]]
    examples_per_class: Mapping[SliceKey, Mapping[str, int]] = field(
        default_factory=dict
    )
    estimates: Mapping[SliceKey, SliceEstimates] = field(default_factory=dict)


def read_candidate(uri: str, classes: Sequence[str]) -> Evaluation:
    """Returns the candidate's metrics per slice; see ``read_evaluation``.

    TFMA names the candidate only if it was evaluated beside a baseline.

    Raises:
      ValueError: the evaluation contains no metrics of a candidate.
    """
    for name in ("", "candidate"):
        evaluation = read_evaluation(uri, name, classes)
        if evaluation.metrics:
            return evaluation
    raise ValueError(f"the evaluation contains no metrics of a candidate: {uri}")


def read_evaluation(uri: str, model: str, classes: Sequence[str]) -> Evaluation:
    """Returns one model's metrics per slice.

    Args:
      uri: the ModelEvaluation artifact.
      model: the model's name in the evaluation: empty when there was no baseline,
        else ``candidate`` or ``baseline``.
      classes: class names in the order of their ids.
    """
    import tensorflow_model_analysis as tfma

    result = tfma.load_eval_result(uri, model_name=model)
    metrics: dict[SliceKey, dict[str, float]] = {}
    examples: dict[SliceKey, dict[str, int]] = {}
    estimates: dict[SliceKey, SliceEstimates] = {}
    for slice_key, outputs in result.slicing_metrics:
        key = tuple((name, str(value)) for name, value in slice_key)
        # Those of one class are among them; each has a name of its own.
        values = {
            _AVERAGE.sub("", name): value
            for by_sub_key in outputs.values()
            for named in by_sub_key.values()
            for name, value in named.items()
        }
        if (counted := values.pop(EXAMPLES_PER_CLASS, None)) is not None:
            # Protobuf's JSON form writes int64 as a string.
            counts = map(int, counted["arrayValue"]["int64Values"])
            examples[key] = dict(zip(classes, counts, strict=True))
        if (found := values.pop(ESTIMATES, None)) is not None:
            estimates[key] = SliceEstimates.of(found["bytesValue"])
        numbers = {
            name: float(x.get("doubleValue", "nan")) for name, x in values.items()
        }
        metrics[key] = {name: x for name, x in numbers.items() if math.isfinite(x)}
    return Evaluation(metrics, examples, estimates)
