"""Scans a file of TFRecords, or a table, into checked records and record errors.

Bad bytes never raise, and TensorFlow is imported only to decode images.

Of an image the size in the header is compared with the limits first, so a small file
that declares a huge image is not decoded. Images within the limits are decoded by
TensorFlow, as in training. Beyond what TensorFlow rejects, images over the limits or
without a size in the header are rejected.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from tensorflow_metadata.proto.v0 import schema_pb2

from components.tfrecord_gen.conditions import Conditions, column_types
from components.tfrecord_gen.equal_records import digest_of, digest_of_bytes
from components.tfrecord_gen.input_files import SourceFile
from components.tfrecord_gen.prediction_logs import unwrap
from components.tfrecord_gen.settings import (
    ImageCheck,
    Ingestion,
    LabelCheck,
    PixelsCheck,
)
from schemas.loader import LISTS_OF_TYPES
from sluice import table_files
from sluice.errors import SluiceError, bounded
from sluice.table_files import is_table, read_table
from sluice.tfrecords.encoded_images import (
    ImageHeader,
    image_format,
    image_header,
    why_undecodable,
)
from sluice.tfrecords.frame_encoding import MAX_RECORD_BYTES
from sluice.tfrecords.frame_reader import Batch, Record, RecordError, read_frames
from sluice.tfrecords.input_stream import InputStream
from sluice.tfrecords.parse_tf_example import (
    parse,
    show_values,
    types_of,
    values_of,
)

Checks = tuple[ImageCheck | PixelsCheck, ...]
_SHOWN_CLASSES = 12
# The kind of a record's error, and the reason.
_Problem = tuple[str, str]


def scan(
    path: str,
    max_record_bytes: int = MAX_RECORD_BYTES,
    types: Mapping[str, str] | None = None,
) -> Iterator[Record | RecordError]:
    """Yields the good records of a file and its errors, in order.

    The file may be uncompressed or gzip (also of several members), whatever its name.
    Memory is bounded by a few megabytes and one record.

    Args:
      path: a local path, or an address with "://".
      max_record_bytes: a longer record is a record error, and is not read.
      types: of the columns of a table, see ``read_table``.

    Raises:
      DataError: a table has columns that are not supported.
      UsageError: the file cannot be read.
    """
    with InputStream(path) as stream:
        of_columns = types if types and is_table(path) else {}
        for item in _examples(stream, max_record_bytes, types=of_columns):
            if isinstance(item, RecordError):
                yield item
            else:
                yield from item


def scan_batches(
    stream: InputStream, settings: Ingestion
) -> Iterator[Batch | RecordError]:
    """Yields the records that pass every check, in batches, and errors, in order.

    Raises:
      UsageError: the file cannot be read.
    """
    limit = settings.max_record_bytes
    items = _examples(
        stream, limit, settings, types=settings.types, are_logs=settings.are_logs
    )
    return _with_values(items, settings) if settings.conditions else items


def _with_values(
    items: Iterator[Batch | RecordError], settings: Ingestion
) -> Iterator[Batch | RecordError]:
    """Adds the values of the conditions to the batches."""
    evaluate = evaluator(settings.conditions, settings.types, settings.lists)
    for item in items:
        if isinstance(item, Batch):
            item = replace(item, values=evaluate(item.records, item.columns))
        yield item


def evaluator(
    conditions: Sequence[str], types: Mapping[str, str], lists: Collection[str]
) -> Callable[..., np.ndarray]:
    """Returns what evaluates conditions on records, see ``Conditions``.

    It takes serialized tf.Examples, and the same as columns where they are known.

    Args:
      conditions: in SQL.
      types: by feature its kind of list.
      lists: features with more than one value.
    """
    made = Conditions(conditions, column_types(types, lists))
    named = ((name, kind) for name, kind in types.items() if name in made.types)
    decode = _decoder(threading.get_ident(), *named)

    def evaluate(records: list[bytes], columns: Any = None) -> np.ndarray:
        return made.evaluate(decode(records) if columns is None else columns)

    return evaluate


def _examples(
    stream: InputStream,
    max_bytes: int,
    settings: Ingestion | None = None,
    *,
    types: Mapping[str, str],
    are_logs: bool = False,
) -> Iterator[Batch | RecordError]:
    images = settings.images + settings.pixels if settings else ()
    decode = None
    if is_table(stream.path):
        items = read_table(stream, types, max_bytes)
        if not (settings and (images or settings.label)):
            # Rows are tf.Examples of these types, in the deterministic serialization.
            for item in items:
                if isinstance(item, Batch):
                    item = replace(item, digests=[*map(digest_of_bytes, item.records)])
                yield item
            return
    else:
        items = read_frames(stream, max_bytes)
        decode = _decoder(threading.get_ident(), *types.items()) if types else None
    if are_logs:
        items = unwrap(stream.path, items)
    for item in items:
        if isinstance(item, RecordError):
            yield item
            continue
        found = [_check(data, settings, images) for data in item.records]
        problems, digests = map(list, zip(*found, strict=True))
        item = replace(item, digests=digests)
        pairs = [*zip(item.records, problems, strict=True)]
        try:
            if decode:
                columns = decode([data for data, bad in pairs if not bad])
                if columns.num_rows == len(pairs):
                    item = replace(item, columns=columns)
        except RuntimeError:
            problems = [bad or _wrong_type(data, types) for data, bad in pairs]
        if any(problems):
            yield from _filter(stream.path, item, problems)
        else:
            yield item


def _check(
    data: bytes, settings: Ingestion | None, images: Checks
) -> tuple[_Problem | None, bytes]:
    """Returns what is wrong with a record, None if nothing is, and its digest."""
    try:
        example = parse(data)
    except ValueError as error:
        return ("not_example", str(error)), b""
    if not settings:
        return None, b""
    if reason := check_images(example, images):
        return ("image", reason), b""
    if settings.label and (reason := check_label(example, settings.label)):
        return ("label", reason), b""
    return None, digest_of(example, [check.feature for check in images])


@functools.cache
def _decoder(_: int, *types: tuple[str, str]) -> Callable[[list[bytes]], Any]:
    """Returns TFX's decoder, which raises RuntimeError for features of other types.

    One per thread: in two at once, it corrupts the memory of the process. It takes half
    of the time of ``parse``; a loop over features in Python takes twice.
    """
    from tfx_bsl.coders.example_coder import ExamplesToRecordBatchDecoder

    schema = schema_pb2.Schema()
    type_of = {kind: value for value, kind in LISTS_OF_TYPES.items()}
    for name, kind in types:
        schema.feature.add(name=name, type=type_of[kind])
    return ExamplesToRecordBatchDecoder(schema.SerializeToString()).DecodeBatch


def _wrong_type(data: bytes, types: Mapping[str, str]) -> _Problem | None:
    for name, kind in sorted(types_of(parse(data)).items()):
        if (wanted := types.get(name, kind)) != kind:
            why = f"the schema, or else the first record, has {wanted}"
            return "type", f"feature {name!r} is a {kind}; {why}"
    return None


def check_label(example: Any, check: LabelCheck) -> str | None:
    """Returns what is wrong with the label of a tf.Example; None if nothing is.

    Missing labels are not errors here: the schema decides about them.
    """
    values = values_of(example.features.feature.get(check.feature))
    label = f"the label {check.feature!r}"
    if others := [value for value in values if value not in check.known]:
        known = ", ".join(bounded([*map(str, check.values)], _SHOWN_CLASSES))
        return f"{label} is {show_values(others[:1])}, none of {known}"
    if check.is_one_hot and values and sum(values) != 1:
        return f"{label} has {sum(values):g} ones, where one class has a 1"
    return None


def _filter(
    path: str, batch: Batch, problems: Sequence[_Problem | None]
) -> Iterator[Batch | RecordError]:
    """Yields the good records of a batch, and an error for each bad one, in order."""
    errors = {
        index: RecordError(path, record.number, record.offset, *problem, record.data)
        for index, (record, problem) in enumerate(zip(batch, problems, strict=True))
        if problem
    }
    for item in batch.split(errors):
        yield item if isinstance(item, Batch) else errors[item]


def valid_records(
    path: str,
    max_record_bytes: int = MAX_RECORD_BYTES,
    types: Mapping[str, str] | None = None,
) -> Iterator[Record]:
    """Yields the records that are tf.Examples.

    Some of them may be in quarantine, for an image or a missing partition feature. An
    unreadable file, such as one deleted since the ingestion, just ends the records.
    """
    with contextlib.suppress(SluiceError):
        for record in scan(path, max_record_bytes, types):
            if isinstance(record, Record):
                yield record


def first_types(
    files: Iterable[SourceFile], max_bytes: int, *, are_logs: bool
) -> dict[str, str]:
    """Returns the types of the features of the first record that can be read.

    Those of tables are of the first rows of all, see ``column_types``.
    """
    files = [*files]
    types = table_files.column_types(
        [file.path for file in files if is_table(file.path)]
    )
    for file in files:
        if is_table(file.path):
            continue
        with (
            contextlib.suppress(SluiceError),
            InputStream(file.path, generation=file.generation) as stream,
        ):
            for item in _examples(stream, max_bytes, types={}, are_logs=are_logs):
                if isinstance(item, Batch):
                    return types_of(parse(item.records[0])) | types
    return types


def check_images(example: Any, checks: Checks) -> str | None:
    """Returns what is wrong with the images of a tf.Example; None if nothing is.

    Missing features are not errors here: the schema decides about them.
    """
    features = example.features.feature
    for check in checks:
        if check.feature not in features:
            continue
        feature = features[check.feature]
        is_bytes = feature.WhichOneof("kind") in ("bytes_list", None)
        if not is_bytes and isinstance(check, ImageCheck):
            return f"feature {check.feature!r} contains numbers, not encoded images"
        for data in feature.bytes_list.value:
            if isinstance(check, PixelsCheck):
                reason = check_pixels(data, check)
            else:
                reason = check_image(data, check)
            if reason:
                return f"feature {check.feature!r}: {reason}"
    return None


def check_pixels(data: bytes, check: PixelsCheck) -> str | None:
    """Returns what is wrong with raw pixels, None if nothing is."""
    dtype = np.dtype(check.dtype).newbyteorder("<")
    expected = check.size * dtype.itemsize
    if len(data) != expected:
        return f"{len(data):,} bytes, not the {expected:,} of its pixels"
    if dtype.kind == "f" and not np.isfinite(np.frombuffer(data, dtype)).all():
        return "pixels that are NaN or infinite"
    return None


def check_image(data: bytes, check: ImageCheck) -> str | None:
    """Returns what is wrong with an encoded image, None if nothing is."""
    name, header = image_format(data), image_header(data)
    if name is None or name not in check.formats:
        allowed = " or ".join(item.upper() for item in check.formats)
        if name is not None:
            return f"a {name.upper()} image, where {allowed} is allowed"
        first = data[:8].hex(" ") or "none, it is empty"
        shown = "" if check.is_sensitive else f"; its first bytes: {first}"
        return f"not a {allowed} image{shown}"
    kind = f"a {name.upper()} image"
    if header is None or not header.channels:
        return f"{kind} that does not decode: its header cannot be read"
    if reason := _beyond_limits(header, check):
        return f"{kind} {reason}"
    if why := why_undecodable(data, check.decoded_channels):
        what = f"{kind} that does not decode with channels={check.decoded_channels}"
        return what if check.is_sensitive else f"{what}: {why}"
    return None


def _beyond_limits(header: ImageHeader, check: ImageCheck) -> str | None:
    width, height = header.width, header.height
    size = f"of {width:,} x {height:,} pixels"
    if min(width, height) < check.min_side:
        return f"{size}; the shortest side allowed is {check.min_side:,}"
    if max(width, height) > check.max_side:
        return f"{size}; the longest side allowed is {check.max_side:,}"
    if width * height > check.max_pixels:
        return f"{size}; at most {check.max_pixels:,} are allowed"
    if check.channels not in (None, header.channels):
        return f"with {header.channels} channels, not {check.channels}"
    return None
