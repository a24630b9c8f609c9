"""Mistakes document: what an evaluated classifier gets wrong, and where it flips.

An example flips where only one of the candidate and the baseline is right. One with
several labels is right if all of them are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import islice
from operator import itemgetter
from typing import Any

import numpy as np

from runners.documents.examples import (
    ExampleRecord,
    as_text,
    first_value,
    load_model,
    predict,
    predicted_class,
    read_examples,
    task_of,
)
from runners.documents.images import describe_image, open_image
from runners.documents.importance import importance
from sluice.json_values import jsonable
from sluice.metrics import THRESHOLD
from sluice.mlmd_items import Artifact
from sluice.privacy import Privacy
from sluice.tfrecords.parse_tf_example import values_of

MAX_EXAMPLES = 20_000
MAX_MISTAKES = 24
MAX_FEATURES = 50
MAX_VALUES = 10
_COLUMNS = ("digests", "true", "candidate", "baseline")
_SHOWN = ("true", "predicted", "baseline")


@dataclass(frozen=True)
class Mistake:
    """An example that one of the models gets wrong; classes are indices.

    Attributes:
      record: the example.
      true: its classes, one of a classification.
      named: the classes that each model predicts.
      probabilities: of each class, by the first model.
    """

    record: ExampleRecord
    true: tuple[int, ...]
    named: list[tuple[int, ...]]
    probabilities: Sequence[float]

    @property
    def right(self) -> tuple[bool, ...]:
        """Whether each model is right."""
        return tuple(classes == self.true for classes in self.named)

    @property
    def severity(self) -> tuple[int, float]:
        """How many classes the first model has wrong, and how sure it is of them."""
        named, true, of = {*self.named[0]}, {*self.true}, self.probabilities
        missed = [1 - of[i] for i in true - named]
        sure = [of[i] for i in named - true] or missed or [of[i] for i in named]
        return len(named ^ true), max(sure, default=0.0)


def mistakes(
    model_uris: Sequence[str],
    examples: Artifact,
    splits: Sequence[str],
    privacy: Privacy,
) -> dict[str, Any] | None:
    """Returns the worst mistakes; None for a regression or a model that is not ours.

    Those with the most wrong classes come first, then the most confident ones.
    Numbers of examples are not weighted.
    ``importance`` and ``labels`` are what the functions ``importance`` and
    ``label_counts`` return; ``labels`` is None for a classification.
    ``predictions`` are parallel lists: digests of the records, the indices of their
    classes, and of those that each model predicts; several labels are lists. It is
    None if features are withheld, which could be guessed from a digest. ``flips`` is
    None if the baseline has other classes, and absent without a baseline of ours.

    Args:
      model_uris: of the ``Model`` artifacts, local or remote: the candidate, and the
        baseline if there is one.
      examples: the artifact that they were evaluated on.
      splits: those that were evaluated.
      privacy: what may be shown, and which feature is the label.
    """
    task = task_of(model_uris[0])
    if not privacy.label or task not in ("classification", "multi_label"):
        return None
    has_several = task == "multi_label"
    plain = list if has_several else itemgetter(0)
    records = read_examples(examples.uri, splits)
    rows: list[tuple[Any, ...]] = []
    errors: list[Mistake] = []
    labels: list[tuple[Any, Any, float]] = []
    with ExitStack() as opened:
        uris = [uri for uri in model_uris if task_of(uri) == task]
        models = [load_model(uri, privacy.label, opened) for uri in uris]
        classes = models[0].classes
        same = [x for x in models if x.classes == classes]
        thresholds = None if has_several else [x.threshold for x in same]
        for record, label, *predictions in predict(same, islice(records, MAX_EXAMPLES)):
            mistake = _mistake(record, label, predictions, thresholds)
            if not has_several and mistake.true[0] < 0:
                continue
            rows.append((record.digest, *map(plain, (mistake.true, *mistake.named))))
            if has_several:
                weight = record.weight(privacy.weight)
                labels.append((label, predictions[0], weight))
            if not all(mistake.right):
                errors.append(mistake)
        again = islice(read_examples(examples.uri, splits), MAX_EXAMPLES)
        permuted = importance(models[0], again, task, privacy.weight)
    errors.sort(key=lambda mistake: mistake.severity, reverse=True)
    wrong = [mistake for mistake in errors if not mistake.right[0]]
    newly_wrong = [mistake for mistake in wrong if mistake.right[-1]]
    newly_right = [mistake for mistake in errors if mistake.right[0]]
    shown = partial(_shown, task=task, classes=classes, privacy=privacy)
    columns = dict(zip(_COLUMNS, zip(*rows, strict=True), strict=False))
    document = {
        "split": ", ".join(splits),
        "classes": classes,
        "examples": len(rows),
        "complete": next(records, None) is None,
        "wrong": len(wrong),
        "mistakes": shown(wrong),
        "labels": label_counts(classes, labels) if labels else None,
        "importance": permuted,
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
            "newly_wrong": shown(newly_wrong),
            "newly_right": shown(newly_right),
        },
    }
    return {**document, "flips": flips if len(same) == 2 else None}


def _mistake(
    record: ExampleRecord,
    label: Any,
    predictions: list[Any],
    thresholds: list[float] | None,
) -> Mistake:
    if thresholds is None:
        values = (label, *predictions)
        true, *named = (tuple(np.flatnonzero(x >= THRESHOLD).tolist()) for x in values)
    else:
        answers = map(predicted_class, predictions, thresholds)
        true, *named = (int(label[0]),), *((answer,) for answer in answers)
    return Mistake(record, true, named, predictions[0].tolist())


def _shown(
    mistakes: Sequence[Mistake], task: str, classes: Sequence[str], privacy: Privacy
) -> list[dict[str, Any]]:
    """Describes the first ones, as far as they may be shown."""
    shown = []
    for mistake in mistakes[: 0 if privacy.private else MAX_MISTAKES]:
        indices = (mistake.true, *mistake.named)
        named = [", ".join(classes[i] for i in x) or "none" for x in indices]
        about: dict[str, Any] = dict(zip(_SHOWN, (*named, None), strict=False))
        wrong = sorted({*mistake.true, *mistake.named[0]})
        sure = {classes[i]: jsonable(mistake.probabilities[i]) for i in wrong}
        if task == "multi_label":
            about |= {"probability": None, "probabilities": sure}
        else:
            about |= {"probability": sure[named[1]], "true_probability": sure[named[0]]}
        shown.append({**shown_record(mistake.record, privacy), **about})
    return shown


def shown_record(record: ExampleRecord, privacy: Privacy) -> dict[str, Any]:
    """Returns the place, the images, and the first values of the other features."""
    images: list[dict[str, Any]] = []
    values: dict[str, Any] = {}
    for name, feature in sorted(record.features().items()):
        if name in (*privacy.sensitive, privacy.label):
            continue
        found = values_of(feature)
        if image := open_image(first_value(feature)):
            images.append({"feature": name, **describe_image(image)})
        elif len(values) < MAX_FEATURES:
            values[name] = [
                as_text(value) if isinstance(value, bytes) else jsonable(value)
                for value in found[:MAX_VALUES]
            ]
    digest = None if privacy.sensitive else record.digest
    place = {**record.place, "digest": digest}
    return {**place, "images": images, "values": values}


def label_counts(
    classes: Sequence[str], examples: Iterable[tuple[Any, Any, float]]
) -> list[dict[str, Any]]:
    """Returns of each class its examples, true and false positives, and AUC, weighted.

    They are counted at 0.5. ``auc`` is None where it is not defined.

    Args:
      classes: their names.
      examples: the label of each example, 0 or 1 per class, the probabilities, and the
        weight.
    """
    labels, probabilities, weights = map(np.array, zip(*examples, strict=True))
    columns = zip(classes, labels.T > 0, probabilities.T, strict=True)
    return [{"class": x, **_of_class(y, p, weights)} for x, y, p in columns]


def _of_class(
    labels: np.ndarray, probabilities: np.ndarray, weights: np.ndarray
) -> dict[str, Any]:
    order = np.argsort(-probabilities)
    labels, probabilities = labels[order], probabilities[order]
    weights = weights[order]
    # At each threshold, all of the same probability are positive.
    last = np.flatnonzero(np.diff(probabilities, append=-1.0))
    counts = (labels * weights, ~labels * weights)
    tp, fp = (np.append(0, x.cumsum()[last]) for x in counts)
    positives, negatives = tp[-1].item(), fp[-1].item()
    served = (probabilities[last] >= THRESHOLD).sum()
    area = np.dot(np.diff(fp), tp[1:] + tp[:-1]) / 2
    return {
        "positives": positives,
        "negatives": negatives,
        "served": {"tp": tp[served].item(), "fp": fp[served].item()},
        "auc": area.item() / (positives * negatives)
        if positives and negatives
        else None,
    }
