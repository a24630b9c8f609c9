"""Mistakes document: what an evaluated classifier gets wrong, and where it flips.

An example flips where only one of the candidate and the baseline is right.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from contextlib import ExitStack
from itertools import islice
from typing import Any

from runners.documents.examples import (
    ExampleRecord,
    as_text,
    first_value,
    read_examples,
    values_of,
)
from runners.documents.images import describe_image, open_image
from runners.documents.predict import Prediction, is_ours, load_classifier, predict
from sluice.mlmd_items import Artifact
from sluice.privacy import Privacy
from sluice.record.json_number import json_number

MAX_EXAMPLES = 20_000
MAX_MISTAKES = 24
MAX_FEATURES = 50
MAX_VALUES = 10
_COLUMNS = ("digests", "true", "candidate", "baseline")


def mistakes(
    model_uris: Sequence[str],
    examples: Artifact,
    splits: Sequence[str],
    privacy: Privacy,
) -> dict[str, Any] | None:
    """Returns the most confident mistakes; None for a model that is not ours.

    ``predictions`` are parallel lists: digests of the records, the indices of their
    classes, and of those that each model predicts. It is None if features are withheld,
    which could be guessed from a digest. ``flips`` is None if the baseline has other
    classes, and absent without a baseline of ours.

    Args:
      model_uris: of the ``Model`` artifacts, local or remote: the candidate, and the
        baseline if there is one.
      examples: the artifact that they were evaluated on.
      splits: those that were evaluated.
      privacy: what may be shown, and which feature is the label.
    """
    if not (privacy.label and is_ours(model_uris[0])):
        return None
    records = read_examples(examples.uri, splits)
    rows: list[tuple[str | int, ...]] = []
    errors: list[Prediction] = []
    with ExitStack() as opened:
        models = [load_classifier(x, opened) for x in filter(is_ours, model_uris)]
        classes = models[0].classes
        same = [model for model in models if model.classes == classes]
        first = islice(records, MAX_EXAMPLES)
        for found in predict(same, first, privacy.label):
            rows.append((found.digest, found.true, *found.predicted))
            if not all(found.right):
                errors.append(found)
    errors.sort(key=lambda found: -found.confidence)
    wrong = [found for found in errors if not found.right[0]]
    newly_wrong = [found for found in wrong if found.right[-1]]
    newly_right = [found for found in errors if found.right[0]]
    columns = dict(zip(_COLUMNS, zip(*rows, strict=True), strict=False))
    document = {
        "split": ", ".join(splits),
        "classes": classes,
        "examples": len(rows),
        "complete": next(records, None) is None,
        "wrong": len(wrong),
        "mistakes": _shown(wrong, classes, privacy),
        "predictions": None if privacy.private or privacy.sensitive else columns,
    }
    if len(models) == 1:
        return document
    flips = {
        "newly_wrong": len(newly_wrong),
        "newly_right": len(newly_right),
        "both_wrong": len(wrong) - len(newly_wrong),
        "both_right": len(rows) - len(errors),
        "examples": {
            "newly_wrong": _shown(newly_wrong, classes, privacy),
            "newly_right": _shown(newly_right, classes, privacy),
        },
    }
    return {**document, "flips": flips if len(same) == 2 else None}


def _shown(
    found: Sequence[Prediction], classes: Sequence[str], privacy: Privacy
) -> list[dict[str, Any]]:
    """Describes the first ones, as far as they may be shown."""
    return [
        {
            **item.record.place,
            "digest": None if privacy.sensitive else item.digest,
            "true": classes[item.true],
            "predicted": classes[item.predicted[0]],
            "baseline": classes[item.predicted[1]] if item.predicted[1:] else None,
            "probability": json_number(item.confidence),
            "true_probability": json_number(item.probabilities[0][item.true]),
            **_features(item.record, {*privacy.sensitive, privacy.label}),
        }
        for item in found[: 0 if privacy.private else MAX_MISTAKES]
    ]


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
