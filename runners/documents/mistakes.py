"""Mistakes document: the most confident wrong predictions of an evaluated classifier.

Only of models that our trainer exports, whose signature ``serving_default`` takes
serialized tf.Examples and returns probabilities.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Container, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from runners.documents.examples import (
    ExampleRecord,
    as_text,
    first_value,
    read_examples,
    values_of,
)
from runners.documents.images import describe_image, open_image
from sluice.mlmd_items import Artifact
from sluice.privacy import Privacy
from sluice.record.json_number import json_number
from sluice.storage.local_copy import local_copy

MAX_SECONDS = 1.0
MAX_MISTAKES = 24
MAX_FEATURES = 50
MAX_VALUES = 10
_BATCH = 32
_SERVING_DIR = "Format-Serving"
_CLASSES_FILE = "assets.extra/classes.json"


def mistakes(
    model_uri: str,
    examples: Artifact,
    splits: Sequence[str],
    privacy: Privacy,
) -> dict[str, Any] | None:
    """Returns the most confident mistakes; None for a model that is not ours.

    Args:
      model_uri: of the ``Model`` artifact, local or remote.
      examples: the artifact that it was evaluated on.
      splits: those that were evaluated.
      privacy: what may be shown, and which feature is the label.
    """
    records = read_examples(examples.uri, splits)
    with local_copy(model_uri) as folder:
        model_dir = folder / _SERVING_DIR
        if not (privacy.label and (model_dir / _CLASSES_FILE).exists()):
            return None
        classes = json.loads((model_dir / _CLASSES_FILE).read_bytes())["classes"]
        count, wrong = 0, []
        for record, probabilities in _predict(model_dir, records):
            true = as_text(first_value(record.features().get(privacy.label)))
            if true is not None and true in classes:
                count += 1
                by_class = dict(zip(classes, probabilities, strict=True))
                if (predicted := predicted_class(by_class)) != true:
                    wrong.append((record, true, predicted, by_class))
    wrong.sort(key=lambda found: -found[3][found[2]])
    shown = [] if privacy.private else wrong[:MAX_MISTAKES]
    return {
        "split": ", ".join(splits),
        "classes": classes,
        "examples": count,
        "complete": next(records, None) is None,
        "wrong": len(wrong),
        "mistakes": [
            {
                **record.place,
                "true": true,
                "predicted": predicted,
                "probability": json_number(by_class[predicted]),
                "true_probability": json_number(by_class[true]),
                **_features(record, {*privacy.sensitive, privacy.label}),
            }
            for record, true, predicted, by_class in shown
        ],
    }


def predicted_class(by_class: Mapping[str, float]) -> str:
    """Returns the class that the served model names: of two the second from 0.5 on."""
    if len(by_class) == 2:
        return [*by_class][int([*by_class.values()][1] >= 0.5)]
    return max(by_class, key=by_class.__getitem__)


def _predict(
    model_dir: Path, records: Iterator[ExampleRecord]
) -> Iterator[tuple[ExampleRecord, list[float]]]:
    """Yields records with the probability of each class, for ``MAX_SECONDS``."""
    import tensorflow as tf

    with tf.device("CPU"):
        model = tf.saved_model.load(str(model_dir))
        predict, ends_at = model.signatures["serving_default"], math.inf
        while time.monotonic() < ends_at and (batch := [*islice(records, _BATCH)]):
            data = tf.constant([record.data for record in batch])
            rows = predict(examples=data)["probabilities"].numpy().tolist()
            # The first batch takes the longest: TensorFlow prepares the graph.
            ends_at = min(ends_at, time.monotonic() + MAX_SECONDS)
            for record, row in zip(batch, rows, strict=True):
                yield record, [1 - row[0], row[0]] if len(row) == 1 else row


def _features(record: ExampleRecord, hidden: Container[str | None]) -> dict[str, Any]:
    """Returns the images, and the first values of the other features."""
    images: list[dict[str, Any]] = []
    values: dict[str, Any] = {}
    for name, feature in sorted(record.features().items()):
        if name in hidden:
            continue
        found = values_of(feature)
        if image := open_image(first_value(feature)):
            images.append({"feature": name, **describe_image(image)})
        elif len(values) < MAX_FEATURES:
            values[name] = [
                as_text(value) if isinstance(value, bytes) else json_number(value)
                for value in found[:MAX_VALUES]
            ]
    return {"images": images, "values": values}
