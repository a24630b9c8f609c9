"""Reads input rows for prediction: tables by name, others by content.

Those are TFRecords, images and JSON lines. TensorFlow is not imported: it
refuses values of another type when the model is called.
"""

from __future__ import annotations

import base64
import json
import math
import os
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, Literal

from sluice.errors import DataError, UsageError, did_you_mean
from sluice.table_files import column_types, is_table, read_table
from sluice.tfrecords import tfrecord
from sluice.tfrecords.encoded_images import image_format
from sluice.tfrecords.frame_encoding import MAX_RECORD_BYTES
from sluice.tfrecords.frame_reader import RecordError
from sluice.tfrecords.input_stream import InputStream
from sluice.tfrecords.parse_tf_example import as_text, parse, values_of
from sluice.tfrecords.row_encoding import FLOAT

STDIN = "-"

_HEAD_BYTES = 512
_GZIP_MAGIC = b"\x1f\x8b"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Row:
    """One input row.

    Attributes:
      source: the file, or ``stdin``.
      index: of the row in its source, from 0.
      where: place for messages, such as ``new.jsonl, line 3`` (from 1).
      payload: a serialized tf.Example, or values by raw feature.
      id: the value that identifies it, if one was asked for; bytes if it is no text.
    """

    source: str
    index: int
    where: str
    payload: bytes | Mapping[str, Any]
    id: str | bytes | int | float | None = None

    def values(self) -> Mapping[str, Any]:
        """Returns the value of each feature, of several a list.

        Raises:
          DataError: the record is no tf.Example.
        """
        if not isinstance(self.payload, bytes):
            return self.payload
        try:
            features = parse(self.payload).features.feature.items()
        except ValueError as error:
            raise DataError(str(error), where=self.where) from error
        found = {name: list(values_of(feature)) for name, feature in features}
        return {name: x[0] if len(x) == 1 else x for name, x in found.items()}


def read_rows(
    paths: Sequence[str | Path],
    features: Mapping[str, str],
    max_row_bytes: int = MAX_RECORD_BYTES,
    id_feature: str | None = None,
) -> Iterator[Row]:
    """Yields the rows of all sources in order, with one row in memory.

    Args:
      paths: files of tf.Example TFRecords (gzip-compressed or not), Parquet or CSV,
        PNG, JPEG, GIF or BMP images, or JSON lines (one object per line: value by raw
        feature; null, absent, NaN and Infinity are missing; ``{"b64": "..."}`` gives
        bytes, a list a vector). ``-`` is JSON lines from the standard input.
      features: the raw features of the model, and the kind of list of each, as
        ``parse_tf_example.KINDS``.
      max_row_bytes: limit of a record, an image or a line.
      id_feature: whose value identifies a row; it need not be one of the model.

    Raises:
      UsageError: a path is no readable file (checked before the first row); an
        image for a model of several features.
      DataError: a file is empty or has another format, or a record or line is invalid
        or has no id, or ids of a table are floats. Rows before it have been yielded.
    """
    for path in paths:
        if str(path) != STDIN and not os.path.isfile(path):
            raise UsageError("there is no such input file", where=path)
    known = features if id_feature is None else [*features, id_feature]
    for path in paths:
        if str(path) == STDIN:
            rows = _json_rows("stdin", sys.stdin.buffer, known, max_row_bytes)
        elif is_table(str(path)):
            rows = _table_rows(str(path), features, max_row_bytes, id_feature)
        else:
            rows = _file_rows(Path(path), known, max_row_bytes)
        yield from rows if id_feature is None else _with_ids(rows, id_feature)


def _with_ids(rows: Iterator[Row], name: str) -> Iterator[Row]:
    for row in rows:
        value = row.values().get(name)
        if isinstance(value, bytes):
            value = as_text(value) or value
        if is_missing(value) or not isinstance(value, str | bytes | int | float):
            what = f"a row has no text or number in {name!r} that identifies it"
            raise DataError(what, where=row.where)
        yield replace(row, id=value)


def _file_rows(path: Path, features: Collection[str], max_bytes: int) -> Iterator[Row]:
    try:
        with open(path, "rb") as file:
            head = file.read(_HEAD_BYTES)
            kind = _kind(head)
            if kind == "image":
                if (size := os.fstat(file.fileno()).st_size) > max_bytes:
                    raise tfrecord.too_large(path, f"{size:,} bytes", max_bytes)
                yield _image_row(path, head + file.read(), features)
            elif kind == "json":
                file.seek(0)
                yield from _json_rows(str(path), file, features, max_bytes)
    except OSError as error:
        raise UsageError(f"the file cannot be read: {error}", where=path) from error
    if kind == "tfrecord":
        records = tfrecord.read(path, max_record_bytes=max_bytes)
        for index, record in enumerate(records):
            yield Row(str(path), index, f"{path}, record {index + 1}", record)
    elif kind is None:
        raise DataError(
            "the file is not TFRecords, Parquet, CSV, an image or JSON lines"
            if head
            else "the file is empty",
            where=path,
        )


def _table_rows(
    path: str, types: Mapping[str, str], max_bytes: int, id_feature: str | None
) -> Iterator[Row]:
    known = {**column_types([path]), **types}
    if id_feature is not None and known.get(id_feature) == FLOAT:
        what = f"the column {id_feature!r} has numbers with a fraction or decimals"
        hint = "as ids they would lose digits: write them as whole numbers or text"
        raise DataError(what, where=path, hint=hint)
    with InputStream(path) as stream:
        for item in read_table(stream, known, max_bytes):
            if isinstance(item, RecordError):
                raise DataError(item.reason, where=f"{path}, row {item.number:,}")
            for number, _, record in item:
                yield Row(path, number - 1, f"{path}, row {number:,}", record)


def _kind(head: bytes) -> Literal["tfrecord", "image", "json"] | None:
    image = image_format(head)
    if image in ("png", "jpeg", "gif") or (image == "bmp" and head[6:10] == bytes(4)):
        return "image"
    # A record's length is 8 bytes, little-endian, and below 4 GiB for any proto.
    if head[4:8] == bytes(4) or head.startswith(_GZIP_MAGIC):
        return "tfrecord"
    if head.removeprefix(_BYTE_ORDER_MARK).lstrip().startswith(b"{"):
        return "json"
    return None


def _image_row(path: Path, image: bytes, features: Collection[str]) -> Row:
    if len(features) != 1:
        raise UsageError(
            "this model cannot predict from an image file: its features are "
            + ", ".join(features),
            where=path,
        )
    return Row(str(path), 0, str(path), {next(iter(features)): image})


def _json_rows(
    source: str, file: IO[bytes], features: Collection[str], max_bytes: int
) -> Iterator[Row]:
    index = -1
    lines = iter(lambda: file.readline(max_bytes + 1), b"")
    for number, line in enumerate(lines, start=1):
        where = f"{source}, line {number}"
        if len(line) > max_bytes:
            raise tfrecord.too_large(where, f"more than {max_bytes:,} bytes", max_bytes)
        if not line.removeprefix(_BYTE_ORDER_MARK).strip():
            continue
        index += 1
        yield Row(source, index, where, _parse(line, features, where))
    if index < 0:
        raise DataError("there are no JSON lines to predict from", where=source)


def _parse(line: bytes, features: Collection[str], where: str) -> dict[str, Any]:
    """Returns the values of a line, by name; bytes are decoded."""
    try:
        values = json.loads(line, object_hook=_decoded, parse_float=_finite)
    except (ValueError, TypeError, RecursionError) as error:
        raise DataError(f"a line is not JSON: {error}", where=where) from error
    if not isinstance(values, dict):
        raise DataError("a line is not a JSON object: a value by feature", where=where)
    for name in values:
        if name not in features:
            raise DataError(
                f"the model has no feature {name!r}",
                where=where,
                expected=", ".join(features),
                hint=did_you_mean(name, features),
            )
    return values


def is_missing(value: Any) -> bool:
    """Whether it is nothing, empty, NaN (as data frames write it) or an infinity."""
    is_infinite = isinstance(value, float) and not math.isfinite(value)
    return is_infinite or value in (None, "", b"", [])


def _finite(text: str) -> float:
    """Returns a number; not called for ``NaN`` and ``Infinity``."""
    if math.isinf(number := float(text)):
        raise ValueError(f"{text} is beyond 64 bits")
    return number


def _decoded(item: dict[str, Any]) -> Any:
    is_bytes = list(item) == ["b64"]
    return base64.b64decode(item["b64"], validate=True) if is_bytes else item
