"""Reads Parquet and CSV files: each row is a tf.Example, each column a feature.

pyarrow reads Parquet, the standard library CSV. A part of a file that cannot be read,
or a value that a tf.Example cannot hold, is an error of its rows; a column of a type
without a counterpart is an error of the file. ``tfrecords.row_encoding`` makes the
tf.Examples.

CSV has a header, commas, and text in UTF-8 (or bytes that are none). Its types are
those that the caller gives, or else the narrowest that store the first rows of all
files without loss, so postcodes with a leading zero are text.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from sluice.errors import DataError
from sluice.storage.storage import storage_for
from sluice.storage.storage_errors import explain_unreadable
from sluice.tfrecords.frame_reader import Batch, RecordError
from sluice.tfrecords.input_stream import InputStream
from sluice.tfrecords.row_encoding import (
    BYTES,
    FLOAT,
    FLOAT32_MAX,
    INT,
    Problems,
    encode_rows,
    kind_of,
    wrong_type,
)

if TYPE_CHECKING:
    import pyarrow as pa

SUFFIXES = (".parquet", ".csv", ".csv.gz")
MISSING = frozenset({"", "NA", "N/A", "NaN", "nan", "null", "NULL"})
_WIDTHS = (INT, FLOAT, BYTES)
_INTEGER = re.compile(r"[+-]?(0|[1-9]\d*)", re.ASCII)
_NUMBER = re.compile(
    r"[+-]?(0|[1-9]\d*|(?=\.\d))(\.\d*)?(e[+-]?\d+)?", re.ASCII | re.IGNORECASE
)
# The number of a row in the table that it was taken from, where pandas has kept it.
_PANDAS_INDEX = re.compile(r"__index_level_\d+__")
# The rows that decide about types, and the rows that are held at a time.
_HEAD_ROWS = 10_000
_HEAD_FILES = 40
_BATCH_ROWS = 4096
_BATCH_BYTES = 8 << 20
# The longest cell of a CSV file, in characters.
_CELL = 8 << 20


def is_table(path: str) -> bool:
    """Whether a file is Parquet or CSV, by its name."""
    return path.lower().endswith(SUFFIXES)


def column_types(paths: Sequence[str]) -> dict[str, str]:
    """Returns the kind of list that holds each column of some tables.

    Of a column that differs between files it is the wider: of whole numbers and numbers
    numbers, of text and anything text. At most 40 of the files are looked at. A file
    that cannot be parsed has no columns here.

    Raises:
      DataError: a column has no name, or a type that is not supported.
      UsageError: a file cannot be read.
    """
    found: dict[str, str] = {}
    count = min(len(paths), _HEAD_FILES)
    for index in range(count):
        path = paths[index * len(paths) // count]
        types = _csv_types(path) if _is_csv(path) else _parquet_types(path)
        for name, kind in types.items():
            if kind:
                found[name] = max(found.get(name, kind), kind, key=_WIDTHS.index)
    return found


def narrowest(cells: Iterable[str]) -> str | None:
    """Returns the kind that stores cells without loss; None if all are missing."""
    known = {*cells} - MISSING
    whole = {cell for cell in known if _INTEGER.fullmatch(cell)}
    if any(abs(int(cell)) >= 2**63 for cell in whole):
        return BYTES
    if whole == known:
        return INT if known else None
    if all(_NUMBER.fullmatch(x) and abs(float(x)) <= FLOAT32_MAX for x in known):
        return FLOAT
    return BYTES


def read_table(
    stream: InputStream, types: Mapping[str, str], max_record_bytes: int
) -> Iterator[Batch | RecordError]:
    """Yields the rows of a table as serialized tf.Examples, and its errors, in order.

    Args:
      stream: of the file; it is read to its end.
      types: the kind of list of each column; that of a column of Parquet that is not
        there is its own, that of one of CSV is text. See ``column_types``.
      max_record_bytes: a longer tf.Example is an error.

    Raises:
      DataError: a column has no name, or a type that is not supported.
      UsageError: the file cannot be read.
    """
    read = _read_csv if _is_csv(stream.path) else _read_parquet
    for item in read(stream, types):
        if isinstance(item, RecordError):
            yield item
            continue
        number, examples, columns, problems, row_of = item
        for index, data in enumerate(examples):
            if len(data) > max_record_bytes:
                allowed = f"examples.max_record_bytes allows {max_record_bytes:,}"
                why = f"a tf.Example of {len(data):,} bytes; {allowed}"
                problems.setdefault(index, ("too_large", why))
        batch = Batch.of(number, 0, examples, columns)
        for place in batch.split(sorted(problems)):
            if isinstance(place, Batch):
                yield place
                continue
            row = json.dumps(row_of(place), default=_as_text).encode()
            yield RecordError(stream.path, number + place, 0, *problems[place], row)


# The number of the first row, the tf.Examples, their columns, what is wrong with some
# of them, and a function that returns a row for people.
_Rows = tuple[int, list[bytes], Any, Problems, Callable[[int], Any]]


def _is_csv(path: str) -> bool:
    return not path.lower().endswith(".parquet")


def _as_text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _require_names(path: str, names: Sequence[str]) -> None:
    counts = Counter(names).items()
    if bad := [repr(x) for x, n in counts if n > 1 or not x.strip() or not _is_text(x)]:
        raise DataError("columns need unique names", where=path, examples=bad)


def _is_text(name: str) -> bool:
    return name.encode("utf-8", "replace").decode() == name


def _read_csv(
    stream: InputStream, types: Mapping[str, str]
) -> Iterator[_Rows | RecordError]:
    path, number = stream.path, 1
    names: list[str] = []
    rows: list[list[str]] = []
    room = _BATCH_BYTES
    for line, row, why, lost in _csv_rows(stream):
        if not names:
            if why:
                lost = stream.content_bytes + stream.lost_bytes
                yield RecordError(path, 0, 0, "not_csv", why, None, lost)
                return
            names = row
            _require_names(path, names)
            continue
        if not why and len(row) != len(names):
            why = f"{len(row)} cells, and {len(names)} in the header"
        if why or room <= 0 or len(rows) == _BATCH_ROWS:
            yield from _csv_batch(number, names, rows, types)
            number, rows, room = number + len(rows), [], _BATCH_BYTES
        if why:
            data = ",".join(row).encode("utf-8", "surrogateescape")
            at = path, number, 0
            yield RecordError(*at, "row", f"line {line:,}: {why}", data or None, lost)
            number += 1
        else:
            rows.append(row)
            room -= sum(map(len, row))
    if rows and stream.damage:
        rows.pop()  # It was cut, wherever the stream was damaged.
    yield from _csv_batch(number, names, rows, types)
    if stream.damage:
        at = path, number + len(rows), 0
        yield RecordError(*at, "compression", stream.damage, None, stream.lost_bytes)


def _csv_rows(stream: InputStream) -> Iterator[tuple[int, list[str], str, int]]:
    """Yields the last line, cells, flaw and lost bytes of each row, the header first.

    A quote that is not closed takes the lines up to the next one, at most ``_CELL``.
    """
    source = io.BufferedReader(_Blocks(stream.blocks()))
    csv.field_size_limit(_CELL)
    with io.TextIOWrapper(source, "utf-8-sig", "surrogateescape", newline="") as text:
        sizes: list[int] = []

        def lines() -> Iterator[str]:
            for line in text:
                sizes.append(len(line))
                yield line

        reader = csv.reader(lines(), strict=True)
        while True:
            sizes.clear()
            try:
                if row := next(reader):
                    yield reader.line_num, row, "", 0
            except StopIteration:
                return
            except csv.Error as error:
                why = f"cannot be parsed: {error}"
                yield reader.line_num, [], why, max(1, sum(sizes))


class _Blocks(io.RawIOBase):
    """Blocks of bytes as a file."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._rest and (block := next(self._blocks, None)) is not None:
            self._rest = block
        part = self._rest[: len(buffer)]
        self._rest = self._rest[len(part) :]
        buffer[: len(part)] = part
        return len(part)


def _csv_types(path: str) -> dict[str, str | None]:
    with InputStream(path) as stream:
        head = islice(_csv_rows(stream), _HEAD_ROWS)
        rows = [row for _, row, why, _ in head if not why]
    if not rows:
        return {}
    _require_names(path, rows[0])
    cells = [set[str]() for _ in rows[0]]
    for row in rows[1:]:
        if len(row) == len(cells):
            for found, cell in zip(cells, row, strict=True):
                found.add(cell.strip())
    return {name: narrowest(found) for name, found in zip(rows[0], cells, strict=True)}


def _csv_batch(
    number: int,
    names: Sequence[str],
    rows: Sequence[Sequence[str]],
    types: Mapping[str, str],
) -> Iterator[_Rows]:
    import pyarrow as pa

    if not rows:
        return
    problems: Problems = {}
    columns = {}
    for name, cells in zip(names, zip(*rows, strict=True), strict=True):
        kind = types.get(name, BYTES)
        values: list[Any] = []
        for index, cell in enumerate(cells):
            if kind == BYTES:
                known = cell.encode("utf-8", "surrogateescape") if cell else None
                values.append(known)
                continue
            values.append(None)
            if (cell := cell.strip()) not in MISSING:
                try:
                    values[-1] = _parse(cell, kind)
                except ValueError:
                    problems.setdefault(index, wrong_type(name, kind))
        arrow_type = {INT: pa.int64(), FLOAT: pa.float64(), BYTES: pa.binary()}[kind]
        columns[name] = pa.array(values, arrow_type)
    encoded = encode_rows(len(rows), columns, types, problems)
    yield number, *encoded, problems, lambda i: dict(zip(names, rows[i], strict=True))


def _parse(cell: str, kind: str) -> int | float:
    """Returns the number in a cell.

    Raises:
      ValueError: it is none.
    """
    if "_" in cell:  # Python's own, as in 1_000.
        raise ValueError(cell)
    if kind == FLOAT:
        number = float(cell)
        if math.isinf(number) and "inf" not in cell.lower():  # Such as 1e999.
            raise ValueError(cell)
        return number
    if -(2**63) <= (value := int(cell)) < 2**63:
        return value
    raise ValueError(cell)


def _open_parquet(file: Any) -> Any:
    from pyarrow import parquet

    # Spark's timestamps; as nanoseconds, those from 2262 on would be others.
    return parquet.ParquetFile(file, coerce_int96_timestamp_unit="us")


def _parquet_types(path: str) -> dict[str, str | None]:
    import pyarrow as pa

    with explain_unreadable(path), storage_for(path).open(path, "rb") as file:
        try:
            schema = _open_parquet(file).schema_arrow
        except (pa.ArrowInvalid, OSError):  # The ingestion reports it.
            return {}
    return _kinds(path, schema)


def _kinds(path: str, schema: pa.Schema) -> dict[str, str | None]:
    _require_names(path, schema.names)
    kinds = {
        field.name: kind_of(field.type)
        for field in schema
        if not _PANDAS_INDEX.fullmatch(field.name)
    }
    if bad := [str(field) for field in schema if kinds.get(field.name) == ""]:
        raise DataError(
            "columns have types that no tf.Example holds",
            where=path,
            examples=bad,
            hint="write the files without them, or as numbers, text or lists of these",
        )
    return kinds


def _read_parquet(
    stream: InputStream, types: Mapping[str, str]
) -> Iterator[_Rows | RecordError]:
    import pyarrow as pa

    path, number = stream.path, 1
    for _ in stream.blocks():  # For the digest of the file.
        pass
    if not stream.size_bytes:
        return
    with explain_unreadable(path), storage_for(path).open(path, "rb") as source:
        try:
            file = _open_parquet(source)
        except (pa.ArrowInvalid, OSError) as error:
            why = f"not a Parquet file, or one that was cut: {error}"
            at = path, 0, 0
            yield RecordError(*at, "not_parquet", why, None, stream.size_bytes)
            return
        _kinds(path, file.schema_arrow)
        for index in range(file.num_row_groups):
            group = file.metadata.row_group(index)
            row_bytes = max(1, group.total_byte_size // max(1, group.num_rows))
            size = min(_BATCH_ROWS, max(1, _BATCH_BYTES // row_bytes))
            end = number + group.num_rows
            batches = file.iter_batches(size, [index], use_threads=False)
            while number < end:
                try:
                    batch = next(batches)
                except (pa.ArrowInvalid, OSError) as error:
                    why = f"row group {index}, rows {number:,} to {end - 1:,}: {error}"
                    stored = [group.column(i) for i in range(group.num_columns)]
                    lost = sum(column.total_compressed_size for column in stored)
                    lost = max(1, lost * (end - number) // group.num_rows)
                    yield RecordError(path, number, 0, "row_group", why, None, lost)
                    number = end
                else:
                    yield _parquet_batch(number, batch, types)
                    number += batch.num_rows


def _parquet_batch(
    number: int, batch: pa.RecordBatch, types: Mapping[str, str]
) -> _Rows:
    def row_of(index: int) -> Any:
        try:
            return batch.slice(index, 1).to_pylist()[0]
        except UnicodeDecodeError:  # A column of text has other bytes.
            return {}

    problems: Problems = {}
    columns = {
        name: column
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
        if not _PANDAS_INDEX.fullmatch(name)
    }
    encoded = encode_rows(batch.num_rows, columns, types, problems)
    return number, *encoded, problems, row_of
