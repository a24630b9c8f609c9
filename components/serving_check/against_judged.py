"""Compares what a model predicts for requests and for the split that it was judged on.

One model answers both, so that a difference comes from what is asked.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import tensorflow as tf

from components.serving_check.in_process import LoadedModel, ask
from components.serving_check.judge import Answer
from components.serving_check.settings import Settings
from schemas.data_statistics import Statistics, compute_statistics
from schemas.distances import distances_of_all, sizes, with_chance
from sluice.metrics import THRESHOLD
from sluice.record.verdict import Check

_EXAMPLES, _BATCH = 1000, 32
_MAX_S = 10.0
_KEY = "prediction"


def against_judged(
    model: LoadedModel,
    requested: Sequence[Answer | str],
    facts: Any,
    examples: str,
    settings: Settings,
) -> list[Check]:
    """Returns the row of the distance of the predictions.

    Args:
      model: to ask the examples.
      requested: its answers to requests.
      facts: what the model says of itself.
      examples: address of the ``Examples`` artifact.
      settings: with the split.
    """
    sample, which = _sample(examples, settings.split)
    batches = [sample[i : i + _BATCH] for i in range(0, len(sample), _BATCH)]
    answers = [x for batch in batches for x in ask(model, batch, facts)]
    if not any(isinstance(answer, Answer) for answer in requested):
        return []
    both = _statistics(requested, facts), _statistics(answers, facts)
    largest = max(distances_of_all(*both, ()), key=lambda x: x.distance)
    largest = with_chance(replace(largest, limit=0.0), *both)
    why = f"{largest.measure} from those of {which}; {sizes(*both, largest)}"
    check = "predictions of requests"
    return [Check(check=check, actual=largest.distance, why=why)]


def _sample(examples: str, split: str) -> tuple[list[bytes], str]:
    """Returns tf.Examples, drawn from all that can be read in time, and of how many."""
    files = sorted(tf.io.gfile.glob(f"{examples}/Split-{split}/*"))
    sample: list[bytes] = []
    chosen, ends_at = random.Random(0), time.monotonic() + _MAX_S
    records = tf.data.TFRecordDataset(files, "GZIP").as_numpy_iterator()
    for count, record in enumerate(records, 1):
        if count <= _EXAMPLES:
            sample.append(record)
        elif (index := chosen.randrange(count)) < _EXAMPLES:
            sample[index] = record
        if time.monotonic() > ends_at:
            return sample, f"the first {count:,} examples of {split!r}"
    return sample, f"the split {split!r}"


def _statistics(answers: Sequence[Answer | str], facts: Any) -> Statistics:
    known = [x for x in answers if isinstance(x, Answer)]
    return compute_statistics(_as_example(answer, facts) for answer in known)


def _as_example(answer: Answer, facts: Any) -> bytes:
    """Returns a tf.Example with the predicted classes, or the numbers."""
    example = tf.train.Example()
    feature = example.features.feature[_KEY]
    (numbers,) = answer.numbers
    if facts["task"] == "regression":
        feature.float_list.value.extend(numbers)
        return example.SerializeToString()
    labels = [answer.labels[0]]
    if facts["task"] == "multi_label":
        labels = np.array(facts["classes"])[numbers >= THRESHOLD]
    feature.bytes_list.value.extend(str(label).encode() for label in labels)
    return example.SerializeToString()
