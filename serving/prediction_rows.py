"""Reads input rows for prediction: TFRecords, images or JSON lines, by content.

tf.Examples are passed on serialized; image files and JSON lines are converted to values
of raw features. Formats are detected from the content, not the name. TensorFlow is not
imported.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

from serving.feature_values import (
    FeatureType,
    FeatureValue,
    json_type,
    names_of,
    to_feature_values,
)
from sluice.errors import DataError, UsageError
from sluice.tfrecords import tfrecord
from sluice.tfrecords.frame_encoding import MAX_RECORD_BYTES
from sluice.tfrecords.image_header import image_format

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
      payload: a serialized tf.Example, or one value per raw feature.
    """

    source: str
    index: int
    where: str
    payload: bytes | Mapping[str, FeatureValue]


def read_rows(
    paths: Sequence[str | Path],
    features: Mapping[str, FeatureType],
    max_row_bytes: int = MAX_RECORD_BYTES,
) -> Iterator[Row]:
    """Yields the rows of all sources in order, with one row in memory.

    Args:
      paths: files of tf.Example TFRecords (gzip-compressed or not), PNG, JPEG, GIF or
        BMP images, or JSON lines (one object per line: value by raw feature; null or
        absent is missing; ``{"b64": "..."}`` gives bytes, a list a vector). ``-`` is
        JSON lines from the standard input.
      features: the model's raw features and their types.
      max_row_bytes: limit of a record, an image or a line.

    Raises:
      UsageError: no path; a path is no readable file (checked before the first row); an
        image for a model whose input is not one image.
      DataError: a file is empty or has another format, or a record, line or value is
        invalid. Rows before it have been yielded.
    """
    if not paths:
        raise UsageError(
            "there is no input to predict from",
            expected="TFRecords, images, JSON lines, or - for JSON lines on stdin",
        )
    for path in paths:
        _check_is_file(path)
    for path in paths:
        if str(path) == STDIN:
            yield from _json_rows("stdin", sys.stdin.buffer, features, max_row_bytes)
        else:
            yield from _file_rows(Path(path), features, max_row_bytes)


def _check_is_file(path: str | Path) -> None:
    if str(path) == STDIN or os.path.isfile(path):
        return
    exists = os.path.exists(path)
    raise UsageError(
        "there is no such input file",
        where=path,
        expected="a file",
        actual="a directory or a special file" if exists else "nothing",
        hint="pass its files, or - for JSON lines on stdin" if exists else None,
    )


def _file_rows(
    path: Path, features: Mapping[str, FeatureType], max_bytes: int
) -> Iterator[Row]:
    try:
        with open(path, "rb") as file:
            head = file.read(_HEAD_BYTES)
            kind = _kind(head)
            if kind == "image":
                if (size := os.fstat(file.fileno()).st_size) > max_bytes:
                    raise tfrecord.too_large(path, f"{size:,} bytes", max_bytes)
                image = head + file.read()
                yield _image_row(path, image, features)
            elif kind == "json":
                file.seek(0)
                yield from _json_rows(str(path), file, features, max_bytes)
    except OSError as error:
        raise UsageError(
            "the file cannot be read", where=path, actual=str(error)
        ) from error
    if kind == "tfrecord":
        records = tfrecord.read(path, max_record_bytes=max_bytes)
        for index, record in enumerate(records):
            yield Row(str(path), index, f"{path}, record {index + 1}", record)
    elif kind is None:
        raise DataError(
            "the file is not TFRecords, an image or JSON lines"
            if head
            else "the file is empty",
            where=path,
            expected="TFRecords, a PNG, JPEG, GIF or BMP image, or one JSON object "
            "per line",
            actual=f"a file that starts with {head[:12]!r}" if head else "0 bytes",
        )


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


def _image_row(path: Path, image: bytes, features: Mapping[str, FeatureType]) -> Row:
    if list(features.values()) != [FeatureType("string")]:
        raise UsageError(
            "this model cannot predict from an image file",
            where=path,
            expected="a model whose only feature is an image",
            actual=f"a model of {names_of(features)}",
            hint="pass JSON lines or TFRecords",
        )
    return Row(str(path), 0, str(path), {next(iter(features)): image})


def _json_rows(
    source: str, file: IO[bytes], features: Mapping[str, FeatureType], max_bytes: int
) -> Iterator[Row]:
    index = -1
    lines = iter(lambda: file.readline(max_bytes + 1), b"")
    for number, line in enumerate(lines, start=1):
        if len(line) > max_bytes:
            where = f"{source}, line {number}"
            raise tfrecord.too_large(where, f"more than {max_bytes:,} bytes", max_bytes)
        text = line.removeprefix(_BYTE_ORDER_MARK) if number == 1 else line
        if not text.strip():
            continue
        index += 1
        where = f"{source}, line {number}"
        values = to_feature_values(_parse(text, where), features, where=where)
        yield Row(source, index, where, values)
    if index < 0:
        raise DataError(
            "there are no JSON lines to predict from",
            where=source,
            expected="one JSON object per line",
            actual="nothing, or blank lines only",
        )


def _parse(line: bytes, where: str) -> dict[str, Any]:
    try:
        value = json.loads(line)
        problem = f"a JSON {json_type(value)}"
    except (ValueError, RecursionError) as error:
        value, problem = None, f"{line[:40]!r}: {error}"
    if not isinstance(value, dict):
        raise DataError(
            "a line is not a JSON object",
            where=where,
            expected="one JSON object on each line: a value by feature",
            actual=problem,
        )
    return value
