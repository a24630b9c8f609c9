"""Reads the records of an ``Examples`` artifact, a part of each shard in turn.

So the first records come from all splits and from several shards, also where the
records are sorted.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain, islice, zip_longest
from typing import Any, NamedTuple

from sluice.mlmd_items import Artifact
from sluice.splits import SPLIT_PREFIX
from sluice.storage.storage import storage_for
from sluice.tfrecords import tf_example_pb2, tfrecord

MAX_TEXT_CHARS = 200
_RECORDS_PER_TURN = 128
_DIGEST_CHARS = 12


class ExampleRecord(NamedTuple):
    """A serialized tf.Example, with its split, file, and number there, from 1."""

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
    shards = deque(_read(uri, *place) for place in in_turn)
    while shards:
        shard = shards.popleft()
        records = [*islice(shard, _RECORDS_PER_TURN)]
        yield from records
        if len(records) == _RECORDS_PER_TURN:
            shards.append(shard)


def split_names(item: Artifact) -> list[str]:
    """Returns the splits of an artifact, if any."""
    return json.loads(item.properties.get("split_names") or "[]")


def values_of(feature: Any) -> Sequence[Any]:
    """Returns a feature's values; none if it is missing."""
    kind = feature.WhichOneof("kind") if feature is not None else None
    return getattr(feature, kind).value if kind else ()


def first_value(feature: Any) -> Any:
    """Returns a feature's first value; None if it has none or is missing."""
    return next(iter(values_of(feature)), None)


def as_text(value: Any) -> str | None:
    """Returns a value such as a label's as text; None for no value."""
    if isinstance(value, bytes):
        return value.decode("utf-8", errors="replace")[:MAX_TEXT_CHARS]
    return None if value is None else str(value)


def _read(uri: str, split: str, file: str) -> Iterator[ExampleRecord]:
    path = os.path.join(uri, file)
    for number, data in enumerate(tfrecord.read(path), start=1):
        yield ExampleRecord(split, file, number, data)


def _files(uri: str, split: str) -> list[str]:
    folder = f"{SPLIT_PREFIX}{split}"
    entries = storage_for(uri).list(os.path.join(uri, folder))
    return [
        f"{folder}/{entry.name}"
        for entry in entries
        if entry.size_bytes and not entry.name.startswith(".")
    ]
