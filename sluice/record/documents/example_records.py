"""Reads the records of an ``Examples`` artifact, a part of each shard in turn.

So the first records that are read come from all splits and from several shards, also
where the records are sorted. Only tf.Examples in TFRecord files are read.
"""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from google.protobuf.message import DecodeError

from sluice.errors import SluiceError
from sluice.splits import SPLIT_PREFIX
from sluice.storage.storage import storage_for
from sluice.tfrecords import tf_example_pb2, tfrecord

MAX_TEXT_CHARS = 200
# Shards of a split that are open at the same time.
_OPEN_SHARDS = 8
_RECORDS_PER_TURN = 32
# TFX's payload format; artifacts without one hold tf.Examples.
_TF_EXAMPLE = "FORMAT_TF_EXAMPLE"


class ExampleRecord(NamedTuple):
    """A serialized tf.Example, with its split, file, and number there, from 1."""

    split: str
    file: str
    number: int
    data: bytes

    def features(self) -> Mapping[str, Any] | None:
        """Returns the features by name; None if it is no tf.Example."""
        message: Any = tf_example_pb2.Example
        try:
            return message.FromString(self.data).features.feature
        except DecodeError:
            return None


def first_value(feature: Any) -> Any:
    """Returns a feature's first value; None if it has none or is missing."""
    values = values_of(feature)
    return values[0] if values else None


def values_of(feature: Any) -> Sequence[Any]:
    """Returns a feature's values; none if it is missing."""
    kind = feature.WhichOneof("kind") if feature is not None else None
    return getattr(feature, kind).value if kind else ()


def class_name(value: Any) -> str | None:
    """Returns a label's value as text; None for no value."""
    if isinstance(value, bytes):
        return value.decode("utf-8", errors="replace")[:MAX_TEXT_CHARS]
    return None if value is None else str(value)


def split_names(properties: Mapping[str, Any]) -> list[str]:
    """Returns the splits of an artifact of examples that can be read, if any."""
    if properties.get("payload_format", _TF_EXAMPLE) != _TF_EXAMPLE:
        return []
    return json.loads(properties.get("split_names") or "[]")


class ExampleReader:
    """Iterates over the records of some splits.

    Attributes:
      splits: their names, in order.
      incomplete: splits with records that have not been read, or cannot be.
    """

    def __init__(self, uri: str, splits: Collection[str]) -> None:
        """Lists the files of an artifact, local or remote; OSError if that fails."""
        self.splits = tuple(splits)
        self._uri = uri
        self._waiting = {split: deque(_files(uri, split)) for split in splits}
        # The number of files of each split that have not been read to their end.
        self._left = {split: len(files) for split, files in self._waiting.items()}
        self._stopped: set[str] = set()

    @property
    def incomplete(self) -> set[str]:
        return {split for split, left in self._left.items() if left}

    def __iter__(self) -> Iterator[ExampleRecord]:
        # By split, files that are open; the splits take turns, and the files of each.
        opened = {split: deque[Iterator[ExampleRecord]]() for split in self.splits}
        while any(opened.values()) or any(self._waiting.values()):
            for split in self.splits:
                files, waiting = opened[split], self._waiting[split]
                while waiting and len(files) < _OPEN_SHARDS:
                    files.append(self._read(split, waiting.popleft()))
                if files:
                    yield from self._turn(split, files)

    def _turn(
        self, split: str, files: deque[Iterator[ExampleRecord]]
    ) -> Iterator[ExampleRecord]:
        records = files.popleft()
        try:
            for _ in range(_RECORDS_PER_TURN):
                if split in self._stopped:
                    files.clear()
                    self._waiting[split].clear()
                    return
                yield next(records)
            files.append(records)
        except StopIteration:
            self._left[split] -= 1
        except (SluiceError, OSError):
            pass  # It counts as left; what depends on it reports the error.

    def stop(self, split: str) -> None:
        """Reads no further record of a split."""
        self._stopped.add(split)

    def _read(self, split: str, file: str) -> Iterator[ExampleRecord]:
        path = os.path.join(self._uri, file)
        for number, data in enumerate(tfrecord.read(path, any_name=True), start=1):
            yield ExampleRecord(split, file, number, data)


def _files(uri: str, split: str) -> list[str]:
    folder = f"{SPLIT_PREFIX}{split}"
    entries = storage_for(uri).list(os.path.join(uri, folder))
    return [
        f"{folder}/{entry.name}"
        for entry in entries
        if entry.size_bytes and not entry.name.startswith(".")
    ]
