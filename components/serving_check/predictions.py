"""Statistics of what a model predicts: for requests, and for the judged split.

Both are of one model, so that a difference comes from what is asked.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from components.serving_check.in_process import LoadedModel, ask
from components.serving_check.judge import Answer, read_answer
from components.serving_check.recorded_requests import RecordedRequests
from components.serving_check.settings import PREDICTION, Settings
from schemas.data_statistics import Statistics, compute_statistics
from schemas.distances import distances_of_all, sizes, with_chance
from serving.model_store import ModelVersion
from sluice.metrics import THRESHOLD
from sluice.model_facts import read_facts
from sluice.record.verdict import Check

_EXAMPLES, _BATCH = 1000, 32
_MAX_S = 10.0
# The largest one; of two classes that of the positive class.
_PROBABILITY = f"probability of the {PREDICTION}"


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
    judged, which = predictions_of_judged(model, facts, examples, settings)
    if not any(isinstance(answer, Answer) for answer in requested):
        return []
    both = _statistics(requested, facts), judged
    largest = max(distances_of_all(*both, ()), key=lambda x: x.distance)
    largest = with_chance(replace(largest, limit=0.0), *both)
    measure = f"{largest.measure} of {largest.feature!r}"
    why = f"{measure} from those of {which}; {sizes(*both, largest)}"
    check = "predictions of requests"
    return [Check(check=check, actual=largest.distance, why=why)]


def predictions_of_judged(
    model: LoadedModel, facts: Any, examples: str, settings: Settings
) -> tuple[Statistics, str]:
    """Returns statistics of what a model predicts for the judged split, and its name.

    The arguments are those of ``against_judged``.
    """
    sample, which = _sample(examples, settings.split)
    batches = [sample[i : i + _BATCH] for i in range(0, len(sample), _BATCH)]
    answers = [x for batch in batches for x in ask(model, batch, facts)]
    return _statistics(answers, facts), which


def recorded_predictions(folder: Path, version: ModelVersion) -> Statistics | None:
    """Returns statistics of the answers that a version gave last; None without any.

    Args:
      folder: of recorded requests.
      version: the served one.
    """
    facts, since = read_facts(version.uri), (version.published_at or "")[:10]
    logged = RecordedRequests(folder, since).answers(version.version)
    answers = [read_answer([x], range(1), facts) for x in islice(logged, _EXAMPLES)]
    is_answered = any(isinstance(answer, Answer) for answer in answers)
    return _statistics(answers, facts) if is_answered else None


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
    """Returns a tf.Example: the predicted classes and a probability, or the numbers."""
    example = tf.train.Example()
    features = example.features.feature
    (numbers,) = answer.numbers
    if facts["task"] == "regression":
        names = facts.get("targets") or range(len(numbers))
        for name, number in zip(names, numbers, strict=True):
            key = PREDICTION if len(numbers) == 1 else f"{PREDICTION} of {name}"
            features[key].float_list.value.append(number)
        return example.SerializeToString()
    labels = [answer.labels[0]]
    if facts["task"] == "multi_label":
        labels = np.array(facts["classes"])[numbers >= THRESHOLD]
    features[PREDICTION].bytes_list.value.extend(str(x).encode() for x in labels)
    # What a model does not know may get the usual classes, with less confidence.
    features[_PROBABILITY].float_list.value.append(numbers.max())
    return example.SerializeToString()
