"""Predicts the same examples with models that our trainer has exported.

Their signature ``serving_default`` takes serialized tf.Examples and returns
probabilities.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from runners.documents.examples import ExampleRecord, as_text, first_value
from sluice.storage.local_copy import local_copy
from sluice.storage.storage import storage_for

MAX_SECONDS = 1.0
_BATCH = 32
_DIGEST_CHARS = 12
_SERVING_DIR = "Format-Serving"
_CLASSES_FILE = "assets.extra/classes.json"


@dataclass(frozen=True)
class Classifier:
    """A model that was loaded.

    Attributes:
      classes: their names.
      predict: returns the probabilities of serialized examples: one of each class, or
        of two classes that of the second alone.
    """

    classes: list[str]
    predict: Callable[[list[bytes]], Any]


@dataclass(frozen=True)
class Prediction:
    """An example and what is predicted of it.

    Attributes:
      record: the example.
      true: the index of its class.
      probabilities: of each class, by model.
      predicted: the indices of the predicted classes, by model.
    """

    record: ExampleRecord
    true: int
    probabilities: list[list[float]]
    predicted: list[int]

    @property
    def right(self) -> tuple[bool, ...]:
        """Whether each model is right."""
        return tuple(index == self.true for index in self.predicted)

    @property
    def confidence(self) -> float:
        """The first model's probability of the class that it predicts."""
        return self.probabilities[0][self.predicted[0]]

    @property
    def digest(self) -> str:
        """Tells equal records of several runs from others."""
        return hashlib.sha256(self.record.data).hexdigest()[:_DIGEST_CHARS]


def is_ours(model_uri: str) -> bool:
    """Whether a ``Model`` artifact exists and was exported by our trainer."""
    uri = f"{model_uri}/{_SERVING_DIR}/{_CLASSES_FILE}"
    return storage_for(uri).exists(uri)


def load_classifier(model_uri: str, opened: ExitStack) -> Classifier:
    """Loads a model of ours, local or remote, which ``opened`` closes."""
    folder = opened.enter_context(local_copy(f"{model_uri}/{_SERVING_DIR}"))
    classes = json.loads((folder / _CLASSES_FILE).read_bytes())["classes"]
    return Classifier(classes, _signature(folder, opened))


def _signature(model_dir: Path, opened: ExitStack) -> Callable[[list[bytes]], Any]:
    """Returns the signature, as a call of a session on the CPU.

    ``tf.saved_model.load`` also makes Python functions of all that the graph calls, and
    optimizes: of taxi's two models it takes 1.9 s, this 1.2 s.
    """
    import tensorflow as tf

    v1 = tf.compat.v1
    options = v1.ConfigProto(device_count={"GPU": 0}, allow_soft_placement=True)
    options.graph_options.rewrite_options.disable_meta_optimizer = True
    session = opened.enter_context(closing(v1.Session("", tf.Graph(), options)))
    with session.graph.as_default():
        meta = v1.saved_model.load(session, ["serve"], str(model_dir))
    signature = meta.signature_def["serving_default"]
    output, given = signature.outputs["probabilities"], signature.inputs["examples"]
    return session.make_callable(output.name, [given.name])


def predict(
    models: Sequence[Classifier], records: Iterator[ExampleRecord], label: str
) -> Iterator[Prediction]:
    """Yields what models with the same classes predict of the examples of a class.

    It ends after ``MAX_SECONDS`` per model.
    """
    classes = {name: index for index, name in enumerate(models[0].classes)}
    ends_at = math.inf
    while time.monotonic() < ends_at and (batch := [*islice(records, _BATCH)]):
        data = [record.data for record in batch]
        by_model = [model.predict(data).tolist() for model in models]
        # The first batch takes the longest: TensorFlow prepares the graph.
        ends_at = min(ends_at, time.monotonic() + MAX_SECONDS * len(models))
        for record, *rows in zip(batch, *by_model, strict=True):
            true = as_text(first_value(record.features().get(label)))
            if true is not None and true in classes:
                found = [[1 - x[0], x[0]] if len(x) == 1 else x for x in rows]
                predicted = [*map(predicted_class, found)]
                yield Prediction(record, classes[true], found, predicted)


def predicted_class(probabilities: Sequence[float]) -> int:
    """Returns the index of the class that the served model names.

    Of two classes it is the second from 0.5 on, of more the first of the likeliest.
    """
    if len(probabilities) == 2:
        return int(probabilities[1] >= 0.5)
    return max(range(len(probabilities)), key=probabilities.__getitem__)
