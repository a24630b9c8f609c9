"""Finds the records that made a node downstream of ingestion fail.

TFX decodes a batch of records into one table, and TensorFlow a batch of images into one
tensor; their errors do not name the record. The search runs only after such a failure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

from components.tfrecord_gen.checking.scan import valid_records
from sluice.errors import MAX_EXAMPLES
from sluice.tfrecords.frame_encoding import MAX_RECORD_BYTES
from sluice.tfrecords.image_decoder import why_undecodable
from sluice.tfrecords.parse_tf_example import parse

MAX_RECORDS = 2_000_000


def find_mixed_types(
    files: Iterable[tuple[str, str | None]],
    *,
    max_records: int = MAX_RECORDS,
    max_record_bytes: int = MAX_RECORD_BYTES,
) -> tuple[str, ...]:
    """Returns two lines: a feature's first record, and the first of another type.

    Types may differ between splits, which are never in one table. The lines contain no
    values.

    Args:
      files: paths with their splits; None where records are hashed.
      max_records: limit of records to read.
      max_record_bytes: longer records are skipped, as in the ingestion.

    Returns:
      An empty tuple if no such feature was found.
    """
    first: dict[tuple[str | None, str], tuple[str, str]] = {}
    for split, place, data in islice(_records(files, max_record_bytes), max_records):
        for name, feature in parse(data).features.feature.items():
            kind = feature.WhichOneof("kind")
            if kind is None or not getattr(feature, kind).value:
                continue
            known, seen = first.setdefault((split, name), (kind, place))
            if known != kind:
                return _line(name, known, seen), _line(name, kind, place)
    return ()


def find_undecodable_images(
    files: Iterable[tuple[str, str | None]],
    channels: Mapping[str, int],
    *,
    max_records: int = MAX_RECORDS,
    max_record_bytes: int = MAX_RECORD_BYTES,
) -> tuple[str, ...]:
    """Returns a line for each of the first records whose image does not decode.

    Args:
      files: as ``find_mixed_types`` takes them.
      channels: that each feature's images are decoded to.
      max_records: limit of records to read.
      max_record_bytes: longer records are skipped, as in the ingestion.
    """
    bad = (
        f"feature {name!r} in {place}: {why}"
        for _, place, data in islice(_records(files, max_record_bytes), max_records)
        for name, feature in parse(data).features.feature.items()
        if name in channels
        for image in feature.bytes_list.value
        if (why := why_undecodable(image, channels[name]))
    )
    return tuple(islice(bad, MAX_EXAMPLES))


def _records(
    files: Iterable[tuple[str, str | None]], max_record_bytes: int
) -> Iterator[tuple[str | None, str, bytes]]:
    for path, split in files:
        for record in valid_records(path, max_record_bytes):
            yield split, f"{path}, record {record.number:,}", record.data


def _line(name: str, kind: str, place: str) -> str:
    return f"feature {name!r} holds {kind.removesuffix('_list')} in {place}"
