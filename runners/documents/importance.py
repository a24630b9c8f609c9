"""Permutation importance: how much worse a model predicts without a raw feature.

A feature's values are moved among the examples, missing ones included, so that they
keep their distribution and tell nothing. Features that carry the same information
each seem unimportant, since the model still has the others.

Source: L. Breiman, Random Forests, Machine Learning 45 (2001), section 10.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from heapq import nsmallest
from typing import Any
from zlib import crc32

import numpy as np

from runners.documents.examples import ExampleRecord, ExportedModel
from sluice.tfrecords import tf_example_pb2

MAX_EXAMPLES = 1_000
# Meant to be at most a tenth of what the Evaluator takes on the smallest data sets.
MAX_SECONDS = 0.2
REPEATS = 3
_TIMED = 250
# Fewer examples say little.
_LEAST = 100
_SMALLEST = 1e-7


def importance(
    model: ExportedModel,
    records: Iterable[ExampleRecord],
    task: str | None,
    weight: str | None,
) -> dict[str, Any] | None:
    """Returns the changes of the loss by feature, the largest mean first.

    The loss is the log loss, with several labels its mean over the classes; of a
    regression the root mean squared error, with several targets in their standard
    deviations. Fewer examples are used if a model takes longer than ``MAX_SECONDS``.

    Returns:
      None for a model of one feature or without examples, or if it is too slow.
    """
    if len(model.features) < 2:
        return None
    # Not the first: files may be sorted. A checksum is as good as a random number.
    sample = nsmallest(MAX_EXAMPLES, records, lambda record: crc32(record.data))
    if not sample:
        return None
    columns = _columns(sample, model.features)
    timed = {name: column[:_TIMED] for name, column in columns.items()}
    start = time.monotonic()
    _predict(model, timed)
    spent_s = (time.monotonic() - start) / min(_TIMED, len(sample))
    size = int(MAX_SECONDS / spent_s / len(columns) / REPEATS)
    if size < min(_LEAST, len(sample)):
        return None
    labels = model.labels([record.data for record in sample[:size]])
    is_known = np.isfinite(labels).all(axis=1)
    is_known &= (labels[:, 0] >= 0) | (task != "classification")
    known = np.flatnonzero(is_known)
    labels, size = labels[known], len(known)
    if not size:
        return None
    weights = np.array([sample[i].weight(weight) for i in known])
    columns = {name: [column[i] for i in known] for name, column in columns.items()}

    def loss(columns: Mapping[str, Sequence[bytes]]) -> float:
        return _loss(_predict(model, columns), labels, weights, task)

    before, order = loss(columns), np.random.default_rng(0)
    changes = {
        name: [
            loss({**columns, name: [column[i] for i in order.permutation(size)]})
            - before
            for _ in range(REPEATS)
        ]
        for name, column in columns.items()
    }
    ranked = sorted(changes.items(), key=lambda item: -sum(item[1]))
    kind = "root mean squared error" if task == "regression" else "log loss"
    if task == "regression" and labels.shape[1] > 1:
        kind += " in standard deviations"
    return {
        "loss": kind,
        "value": before,
        "examples": size,
        "features": [{"feature": x, "changes": found} for x, found in ranked],
    }


def _columns(
    records: Sequence[ExampleRecord], names: Sequence[str]
) -> dict[str, list[bytes]]:
    """Returns each feature of the records, in a serialized tf.Example of its own."""
    columns: dict[str, list[bytes]] = {name: [] for name in names}
    for record in records:
        features = record.features()
        for name, column in columns.items():
            alone: Any = tf_example_pb2.Example()
            if name in features:
                alone.features.feature[name].CopyFrom(features[name])
            column.append(alone.SerializeToString())
    return columns


def _predict(model: ExportedModel, columns: Mapping[str, Sequence[bytes]]) -> Any:
    """Returns predictions; joined serialized protos are one with all their fields."""
    return model.predict([*map(b"".join, zip(*columns.values(), strict=True))])


def _loss(
    predicted: np.ndarray, labels: np.ndarray, weights: np.ndarray, task: str | None
) -> float:
    if task == "regression":
        errors = predicted - labels
        if labels.shape[1] > 1:
            errors /= np.maximum(labels.std(axis=0), _SMALLEST)
        squared = np.square(errors).mean(axis=1)
        return float(np.sqrt(np.average(squared, weights=weights)))
    if task == "multi_label" or predicted.shape[1] == 1:
        right = np.where(labels > 0, predicted, 1 - predicted)
    else:
        right = np.take_along_axis(predicted, labels.astype(int), axis=1)
    lost = -np.log(np.maximum(right, _SMALLEST)).mean(axis=1)
    return float(np.average(lost, weights=weights))
