"""Reads the records of an ``Examples`` artifact, and predicts them with our models.

A part of each shard is read in turn, so that the first records come from all splits and
from several shards, also where the records are sorted. The signatures of exported
models take serialized tf.Examples: ``serving_default`` returns predictions,
``transform_features`` the label.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial
from itertools import chain, count, islice, zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sluice.metrics import THRESHOLD
from sluice.mlmd_items import Artifact
from sluice.model_facts import SERVING_DIR, read_facts
from sluice.splits import SPLIT_PREFIX
from sluice.storage.local_copy import local_copy
from sluice.storage.storage import storage_for
from sluice.tfrecords import tf_example_pb2, tfrecord
from sluice.tfrecords.parse_tf_example import values_of

MAX_TEXT_CHARS = 200
_RECORDS_PER_TURN = 128
_DIGEST_CHARS = 12


class ExampleRecord(NamedTuple):
    """A serialized tf.Example, with its split, file, and number there, from 1.

    The file is the one that was ingested, or else the shard that it was read from.
    """

    split: str
    file: str
    number: int
    data: bytes

    @property
    def place(self) -> dict[str, Any]:
        """Where it is, as documents have it."""
        return {"split": self.split, "file": self.file, "record": self.number}

    @property
    def digest(self) -> str:
        """Tells equal records of several runs from others."""
        return hashlib.sha256(self.data).hexdigest()[:_DIGEST_CHARS]

    def features(self) -> Mapping[str, Any]:
        """Returns the features by name."""
        message: Any = tf_example_pb2.Example
        return message.FromString(self.data).features.feature

    def weight(self, feature: str | None) -> float:
        """Returns the value of the feature that weighs examples; 1 without one."""
        return float(first_value(self.features()[feature])) if feature else 1


def read_examples(uri: str, splits: Collection[str]) -> Iterator[ExampleRecord]:
    """Yields the records of some splits of an artifact, local or remote."""
    by_split = [[(split, file) for file in _files(uri, split)] for split in splits]
    in_turn = filter(None, chain(*zip_longest(*by_split)))
    # Imported here: in a pipeline built elsewhere the name may be another package.
    from components.tfrecord_gen.equal_records import read_origins

    origins = read_origins(uri)
    shards = deque(_read(uri, *place, origins.get(place[1])) for place in in_turn)
    while shards:
        shard = shards.popleft()
        records = [*islice(shard, _RECORDS_PER_TURN)]
        yield from records
        if len(records) == _RECORDS_PER_TURN:
            shards.append(shard)


def split_names(item: Artifact) -> list[str]:
    """Returns the splits of an artifact, if any."""
    return json.loads(item.properties.get("split_names") or "[]")


def first_value(feature: Any) -> Any:
    """Returns a feature's first value; None if it has none or is missing."""
    return next(iter(values_of(feature)), None)


def as_text(value: Any) -> str | None:
    """Returns a value such as a label's as text; None for no value."""
    if isinstance(value, bytes):
        return value.decode("utf-8", errors="replace")[:MAX_TEXT_CHARS]
    return None if value is None else str(value)


def _read(
    uri: str, split: str, shard: str, origins: Iterator[tuple[str, int]] | None
) -> Iterator[ExampleRecord]:
    records = tfrecord.read(os.path.join(uri, shard))
    places = origins or ((shard, number) for number in count(1))
    for place, data in zip(places, records, strict=False):
        yield ExampleRecord(split, *place, data)


def _files(uri: str, split: str) -> list[str]:
    folder = f"{SPLIT_PREFIX}{split}"
    entries = storage_for(uri).list(os.path.join(uri, folder))
    return [
        f"{folder}/{entry.name}"
        for entry in entries
        if entry.size_bytes and not entry.name.startswith(".")
    ]


MAX_SECONDS = 1.0
_MIN_BATCH, _MAX_BATCH = 32, 512


@dataclass(frozen=True)
class ExportedModel:
    """A model that was loaded.

    Attributes:
      classes: their names; empty for a regression.
      features: the raw features that it reads; empty if they are not known.
      predict: returns predictions of serialized examples, as ``serving_default`` does.
      labels: returns their labels, as ``transform_features`` does.
      threshold: of two classes, from which on the second is predicted.
    """

    classes: list[str]
    features: list[str]
    predict: Callable[[list[bytes]], Any]
    labels: Callable[[list[bytes]], Any]
    threshold: float = THRESHOLD


def task_of(model_uri: str) -> str | None:
    """Returns the task of a ``Model`` artifact of our trainer; None for any other."""
    return read_facts(f"{model_uri}/{SERVING_DIR}").get("task")


def load_model(model_uri: str, label: str, opened: ExitStack) -> ExportedModel:
    """Loads a model of ours, local or remote, which ``opened`` closes."""
    # Imported here: in a pipeline built elsewhere the name may be another package.
    from pipeline.config.label import transformed_name

    folder = opened.enter_context(local_copy(f"{model_uri}/{SERVING_DIR}"))
    facts = read_facts(folder)
    classes = facts["classes"]
    session, signatures = _load(folder, opened)

    def call(signature: str, key: str, data: list[bytes]) -> Any:
        (examples,) = signatures[signature].inputs.values()
        found = signatures[signature].outputs[key].name
        return session.run(found, {examples.name: data})

    return ExportedModel(
        classes,
        [*facts.get("features", ())],
        partial(call, "serving_default", "probabilities" if classes else "prediction"),
        partial(call, "transform_features", transformed_name(label)),
        facts["threshold"],
    )


def _load(model_dir: Path, opened: ExitStack) -> tuple[Any, Any]:
    """Returns a session on the CPU and the signatures.

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
    return session, meta.signature_def


def predict(
    models: Sequence[ExportedModel], records: Iterator[ExampleRecord]
) -> Iterator[tuple[Any, ...]]:
    """Yields examples, with the first model's label and what each model predicts.

    It ends after ``MAX_SECONDS`` per model.
    """
    ends_at, size = math.inf, _MIN_BATCH
    while (began := time.monotonic()) < ends_at and (batch := [*islice(records, size)]):
        data = [record.data for record in batch]
        by_model = [_of_each_class(model.predict(data), model) for model in models]
        labels = models[0].labels(data)
        # The first batch takes the longest: TensorFlow prepares the graph.
        ended = time.monotonic()
        ends_at = min(ends_at, ended + MAX_SECONDS * len(models))
        if ended - began < MAX_SECONDS / 20:  # A quick model, which waits for Python.
            size = min(2 * size, _MAX_BATCH)
        yield from zip(batch, labels, *by_model, strict=True)


def _of_each_class(predictions: Any, model: ExportedModel) -> Any:
    """Returns probabilities of both classes where there are those of the second."""
    is_binary = len(model.classes) == 2 and predictions.shape[1] == 1
    return np.hstack([1 - predictions, predictions]) if is_binary else predictions


def predicted_class(probabilities: Any, threshold: float) -> int:
    """Returns the index of the class that the served model names.

    Of two classes it is the second from the threshold on, of more the first of the
    likeliest.
    """
    if len(probabilities) == 2:
        return int(probabilities[1] >= np.float32(threshold))
    return max(range(len(probabilities)), key=probabilities.__getitem__)
