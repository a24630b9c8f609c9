"""Mistakes document: the most confident wrong predictions of an evaluated classifier.

The model predicts raw examples by the signature of the evaluation, as TFMA does, up to
a limit of examples and seconds. Which model and which label that is, the evaluation's
``eval_config.json`` says.
"""

from __future__ import annotations

import heapq
import json
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

from sluice.record.documents.classifier import Classifier, Predictions, class_names
from sluice.record.documents.example_records import (
    MAX_TEXT_CHARS,
    ExampleReader,
    ExampleRecord,
    class_name,
    first_value,
    split_names,
    values_of,
)
from sluice.record.documents.image_sample import describe_image, is_image
from sluice.record.documents.privacy import Privacy
from sluice.record.json_number import json_number
from sluice.storage.local_copy import local_copy

MAX_EXAMPLES = 5000
MAX_SECONDS = 1.0
MAX_MISTAKES = 24
MAX_FEATURES = 50
MAX_VALUES = 10
# The first batches are small: a large model may take a second for a few images.
_FIRST_BATCH, _MAX_BATCH, _FAST_S = 8, 256, 0.1
_CONFIG_FILE = "eval_config.json"
_SERVING_DIR = "Format-Serving"


@dataclass(frozen=True)
class Evaluated:
    """The inputs of an evaluation; without ``splits``, TFX's default was evaluated."""

    model_uri: str
    examples_uri: str
    examples_properties: Mapping[str, Any]
    splits: Sequence[str] | None = None


def mistakes_document(
    uri: str, evaluated: Evaluated, privacy: Privacy
) -> dict[str, Any] | None:
    """Returns the most confident mistakes; None if it is no classifier that is known.

    Args:
      uri: of the ``ModelEvaluation``, local or remote.
      evaluated: what it evaluated.
      privacy: what may be shown.

    Raises:
      OSError: an artifact cannot be read.
      ValueError: the evaluation's config is damaged.
      tf.errors.OpError: the model cannot be loaded, or fails.
    """
    with local_copy(uri, (_CONFIG_FILE,)) as folder:
        try:
            config = json.loads((folder / _CONFIG_FILE).read_bytes())["evalConfig"]
        except FileNotFoundError:
            return None
    # TFX evaluates the eval split unless it is told otherwise.
    splits = evaluated.splits or ["eval"]
    known = split_names(evaluated.examples_properties)
    splits = [split for split in splits if split in known]
    spec = _candidate(config.get("modelSpecs", []))
    if spec is None or not splits:
        return None
    reader = ExampleReader(evaluated.examples_uri, splits)
    records = iter(reader)
    first = next(records, None)
    if first is None:
        return None
    with local_copy(evaluated.model_uri) as folder:
        served = folder / _SERVING_DIR
        model_dir = served if served.is_dir() else folder
        spec = _by_raw_label(spec, privacy.label, first, class_names(model_dir))
        with Classifier.load(model_dir, spec) as model:
            if model is None:
                return None
            found = _predict(model, chain([first], records))
    if found is None:
        return None
    shown = [] if privacy.private else found.shown()
    return {
        "private": privacy.private,
        "limits": {
            "examples": MAX_EXAMPLES,
            "seconds": MAX_SECONDS,
            "mistakes": MAX_MISTAKES,
        },
        "split": ", ".join(splits),
        "label": spec["labelKey"],
        "signature": model.signature,
        "classes": found.classes,
        "examples": found.examples,
        "complete": not reader.incomplete,
        "wrong": found.wrong,
        "mistakes": _describe(shown, found.classes, spec["labelKey"], privacy),
        "withheld": sorted(privacy.sensitive),
    }


def _candidate(specs: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """Returns the spec of the model; None without one that has one label."""
    candidates = [spec for spec in specs if not spec.get("isBaseline")]
    if len(candidates) != 1 or not candidates[0].get("labelKey"):
        return None
    return candidates[0]


def _by_raw_label(
    spec: Mapping[str, Any],
    label: str | None,
    record: ExampleRecord,
    classes: Sequence[str] | None,
) -> Mapping[str, Any]:
    """Returns the spec without preprocessing, if the records have the class's name.

    Preprocessing only the label would cost as much as all predictions.
    """
    value = (record.features() or {}).get(label) if label else None
    if class_name(first_value(value)) in (classes or ()):
        return {**spec, "labelKey": label, "preprocessingFunctionNames": []}
    return spec


@dataclass(frozen=True)
class _Mistake:
    record: ExampleRecord
    true: int
    predicted: int
    probability: float
    true_probability: float


class _Mistakes:
    """The most confident mistakes so far, and the numbers of all."""

    def __init__(self) -> None:
        self.examples = self.wrong = 0
        self.classes: list[str] = []
        self._heap: list[tuple[float, int, _Mistake]] = []

    def add(self, records: Sequence[ExampleRecord], found: Predictions) -> None:
        self.classes = found.classes
        for record, true, row in zip(
            records, found.labels, found.probabilities, strict=True
        ):
            if true is None:
                continue
            self.examples += 1
            # As the served label: of two classes, the second from 0.5 on.
            is_second = len(row) == 2 and row[1] >= row[0]
            predicted = 1 if is_second else max(range(len(row)), key=row.__getitem__)
            if predicted == true:
                continue
            self.wrong += 1
            mistake = _Mistake(record, true, predicted, row[predicted], row[true])
            heapq.heappush(self._heap, (row[predicted], -self.wrong, mistake))
            if len(self._heap) > MAX_MISTAKES:
                heapq.heappop(self._heap)

    def shown(self) -> list[_Mistake]:
        return [mistake for *_, mistake in sorted(self._heap, reverse=True)]


def _predict(model: Classifier, records: Iterator[ExampleRecord]) -> _Mistakes | None:
    """Predicts examples within the limits; None if their labels are no classes."""
    found = _Mistakes()
    size, left, ends_at = _FIRST_BATCH, MAX_EXAMPLES, math.inf
    while left > 0 and time.monotonic() < ends_at:
        batch = [*islice(records, min(size, left))]
        if not batch:
            break
        left -= len(batch)
        started_s = time.monotonic()
        predictions = model.predict([record.data for record in batch])
        if predictions is None:
            return None
        found.add(batch, predictions)
        if math.isinf(ends_at):
            # The first batch takes the longest: TensorFlow prepares the graph.
            ends_at = time.monotonic() + MAX_SECONDS
        if time.monotonic() - started_s < _FAST_S:
            size = min(2 * size, _MAX_BATCH)
    return found if found.examples else None


def _describe(
    mistakes: Sequence[_Mistake], classes: list[str], label: str, privacy: Privacy
) -> list[dict[str, Any]]:
    rows = [mistake.record.features() or {} for mistake in mistakes]
    images = {
        name
        for row in rows
        for name, feature in row.items()
        if any(map(is_image, values_of(feature)[:1]))
    }
    hidden = {*privacy.sensitive, label, privacy.label}
    names = sorted({name for row in rows for name in row} - images - hidden)
    return [
        {
            "file": mistake.record.file,
            "record": mistake.record.number,
            "true": classes[mistake.true],
            "predicted": classes[mistake.predicted],
            "probability": mistake.probability,
            "true_probability": mistake.true_probability,
            "images": [
                {"feature": name, **describe_image(first_value(row.get(name)))}
                for name in sorted(images - hidden)
            ],
            "values": {name: _value(row.get(name)) for name in names[:MAX_FEATURES]},
            "values_left_out": max(0, len(names) - MAX_FEATURES),
        }
        for mistake, row in zip(mistakes, rows, strict=True)
    ]


def _value(feature: Any) -> Any:
    values = [_plain(value) for value in values_of(feature)[:MAX_VALUES]]
    if len(values_of(feature)) > 1:
        return values
    return values[0] if values else None


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        try:
            return value.decode()[:MAX_TEXT_CHARS]
        except UnicodeDecodeError:
            return f"{len(value):,} bytes that are not text"
    return json_number(value)
