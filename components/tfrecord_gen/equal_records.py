"""Finds equal records, within a split and across splits, by 8-byte digests of them all.

A record has the digest of its encoded images or raw pixels, whatever else is in it; a
record without any, that of all its features, the label included. Features are sorted by
name first: those of equal tf.Examples may be serialized in different orders.
"""

from __future__ import annotations

import io
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from components.tfrecord_gen.ingestion_report import EqualRecords
from sluice.errors import MAX_EXAMPLES
from sluice.storage.storage import storage_for

# Where a record of the output is from: the index of the file, and its number there.
ORIGIN = np.dtype([("digest", "<u8"), ("file", "<u4"), ("record", "<u4")])
ORIGINS_FILE = "origins.npz"
_FILES = "files"


def digest_of(example: Any, images: Collection[str]) -> bytes:
    """Returns the digest of a tf.Example.

    Args:
      example: as ``parse`` returns it.
      images: features with encoded images or raw pixels.
    """
    features = example.features.feature
    found = (features.get(name) for name in images)  # features[name] would add it.
    data = [x for feature in found if feature for x in feature.bytes_list.value]
    content = b"".join(data) or example.SerializeToString(deterministic=True)
    return digest_of_bytes(content)


def digest_of_bytes(content: bytes) -> bytes:
    """Returns the digest of a tf.Example in the deterministic serialization."""
    return blake2b(content, digest_size=8).digest()


def find_equal(
    origins: Mapping[str, np.ndarray], paths: Sequence[str]
) -> Iterator[EqualRecords]:
    """Yields for each pair of splits the records of the later that the earlier has.

    Of a split with itself those that it has before. Pairs without any are left out.

    Args:
      origins: of the records by split, in order.
      paths: of the files.
    """
    for other, split in combinations_with_replacement(origins, 2):
        digests, others = (origins[x]["digest"] for x in (split, other))
        if split == other:
            is_equal = np.ones(len(digests), bool)
            is_equal[np.unique(digests, return_index=True)[1]] = False
        else:
            is_equal = np.isin(digests, others)
        found = np.flatnonzero(is_equal)
        places = []
        for i in found[:MAX_EXAMPLES]:
            first = np.flatnonzero(others == digests[i])[0]
            at = origins[split][i], origins[other][first]
            places.append([f"{paths[x['file']]}, record {x['record']:,}" for x in at])
        if places:
            examples = tuple(": equal to ".join(pair) for pair in places)
            yield EqualRecords(split, other, len(found), examples)


def write_origins(
    uri: str, paths: Sequence[str], shards: Mapping[str, np.ndarray]
) -> None:
    """Writes where the records of each shard are from into an ``Examples`` artifact.

    Args:
      uri: of the artifact.
      paths: of the files.
      shards: the origins of their records, by path below the artifact.
    """
    pairs = {x: np.stack([y["file"], y["record"]], 1) for x, y in shards.items()}
    content = io.BytesIO()
    np.savez_compressed(content, **{_FILES: np.array(paths, str), **pairs})
    path = os.path.join(uri, ORIGINS_FILE)
    storage_for(path).write_atomically(path, content.getvalue())


def read_origins(uri: str) -> dict[str, Iterator[tuple[str, int]]]:
    """Returns the file and the number there of each record, by shard.

    Empty for an ``Examples`` artifact of another component.
    """
    path = os.path.join(uri, ORIGINS_FILE)
    if not storage_for(path).exists(path):
        return {}
    found = np.load(io.BytesIO(storage_for(path).read(path)))
    files, shards = found[_FILES], {*found.files} - {_FILES}
    return {x: ((str(files[i]), int(n)) for i, n in found[x]) for x in shards}
