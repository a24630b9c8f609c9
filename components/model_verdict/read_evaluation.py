"""Reads what the Evaluator wrote into the plain numbers that the gate judges.

Values that are not finite are left out: a metric that cannot be computed has no value.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from components.model_verdict import class_counts
from components.model_verdict.judge import Evaluation, SliceKey


def read_candidate(uri: str, classes: Sequence[str]) -> Evaluation:
    """Returns the candidate's metrics per slice; see ``read_evaluation``.

    TFMA names the candidate only if it was evaluated beside a baseline, and a cached
    evaluation may be of either form.

    Raises:
      ValueError: the evaluation holds no metrics of a candidate.
    """
    for name in ("", "candidate"):
        evaluation = read_evaluation(uri, name, classes)
        if evaluation.metrics:
            return evaluation
    raise ValueError(f"the evaluation holds no metrics of a candidate: {uri}")


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
    for slice_key, outputs in result.slicing_metrics:
        key = tuple((name, str(value)) for name, value in slice_key)
        by_class_id: dict[int | None, dict[str, float]] = defaultdict(dict)
        for by_sub_key in outputs.values():
            for sub_key, values in by_sub_key.items():
                class_id = _class_id(sub_key)
                for name, value in values.items():
                    number = float(value.get("doubleValue", math.nan))
                    if math.isfinite(number):
                        by_class_id[class_id][name] = number
        examples[key] = class_counts.counts(by_class_id, classes)
        metrics[key] = {
            name: value
            for name, value in by_class_id[None].items()
            if not class_counts.is_counter(name)
        }
    return Evaluation(metrics, examples)


def _class_id(sub_key: Any) -> int | None:
    """Parses TFMA's ``classId:3``; anything else counts as no class."""
    kind, _, value = str(sub_key).partition(":")
    return int(value) if kind == "classId" else None
