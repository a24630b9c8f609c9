"""Encodes the rows of a table as serialized tf.Examples: each column is a feature.

The section "Parquet and CSV" of docs/guide.md has a table of what each type becomes. A
missing value is a missing feature. A value that a tf.Example cannot hold, such as a
float64 beyond float32, is a problem of its row.

Rows are serialized deterministically, as protobuf does it: tfx_bsl's
RecordBatchToExamplesEncoder writes the features of each in another order, and a feature
without values for what is missing (1.16.1).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sluice.tfrecords import tf_example_pb2

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

INT, FLOAT, BYTES = "int64_list", "float_list", "bytes_list"
FLOAT32_MAX = 3.4028234663852886e38
_SHOWN = {INT: "a whole number (int64)", FLOAT: "a number (float32)", BYTES: "text"}

_FEATURES: Any = tf_example_pb2.Features
# What is wrong with rows, by their index: the kind of problem, and the reason.
Problems = dict[int, tuple[str, str]]


def kind_of(type_: pa.DataType) -> str | None:
    """Returns the kind of list for a type; "" for none, None for the type of nulls."""
    from pyarrow import types as is_

    if is_.is_dictionary(type_) or _is_list(type_):
        return "" if _is_list(type_.value_type) else kind_of(type_.value_type)
    kinds: dict[str | None, tuple[Callable[[pa.DataType], bool], ...]] = {
        INT: (
            *(is_.is_boolean, is_.is_integer, is_.is_date, is_.is_timestamp),
            lambda x: is_.is_decimal(x) and x.scale <= 0,
        ),
        FLOAT: (is_.is_floating, is_.is_decimal),
        BYTES: (
            *(is_.is_string, is_.is_large_string, _is_image),
            *(is_.is_binary, is_.is_large_binary, is_.is_fixed_size_binary),
        ),
        None: (is_.is_null,),
    }
    for kind, checks in kinds.items():
        if any(check(type_) for check in checks):
            return kind
    return ""


def encode_rows(
    count: int,
    columns: Mapping[str, pa.Array],
    types: Mapping[str, str],
    problems: Problems,
) -> tuple[list[bytes], pa.RecordBatch | None]:
    """Returns rows as serialized tf.Examples, and their features as columns of lists.

    Args:
      count: number of rows.
      columns: by name; of types that ``kind_of`` knows.
      types: the kind of list of each column; of one that is not there, its own.
      problems: gets what is wrong with some of the rows.

    Returns:
      The tf.Examples, and the columns; None of rows without any feature.
    """
    import numpy as np
    import pyarrow as pa

    entries, lists = [], {}
    end = _end_of_name()
    for name, column in sorted(columns.items(), key=lambda x: x[0].encode() + end):
        if (kind := kind_of(column.type)) is None:
            continue
        kind = types.get(name, kind)
        values, lengths, is_null = _flat(column)
        values, is_bad = _converted(values, kind)
        for row in np.repeat(np.arange(count), lengths)[is_bad]:
            problems.setdefault(int(row), wrong_type(name, kind))
        entries.append(_entries(name, kind, values, lengths, is_null))
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        missing = np.append(is_null, False)
        places = pa.array(offsets, pa.int32(), mask=missing)
        lists[name] = pa.ListArray.from_arrays(places, values)
    bodies = map(b"".join, zip(*entries, strict=True)) if entries else [b""] * count
    examples = [b"\n" + _varint(len(body)) + body for body in bodies]
    batch = pa.RecordBatch.from_arrays([*lists.values()], [*lists]) if lists else None
    return examples, batch


def wrong_type(name: str, kind: str) -> tuple[str, str]:
    """Returns the problem of a row whose value is not of its column's kind."""
    declared = "as the schema, or else the first rows of the files, have it"
    return "type", f"column {name!r}: the value is not {_SHOWN[kind]}, {declared}"


def _is_list(type_: pa.DataType) -> bool:
    from pyarrow import types as is_

    checks = is_.is_list, is_.is_large_list, is_.is_fixed_size_list
    return any(check(type_) for check in checks)


def _is_image(type_: pa.DataType) -> bool:
    """Whether it is the image of Hugging Face's datasets: its bytes, and its path."""
    from pyarrow import types as is_

    return is_.is_struct(type_) and {field.name for field in type_} == {"bytes", "path"}


@functools.cache
def _end_of_name() -> bytes:
    """What is added to names so that they sort as protobuf sorts them.

    Of ``a`` and ``ab`` some versions write the latter first (6.33, not 3.20).
    """
    features = _FEATURES()
    for name in ("a", "ab"):
        features.feature[name].SetInParent()
    return (
        b"\xff" if b"ab" in features.SerializeToString(deterministic=True)[:6] else b""
    )


def _entries(
    name: str, kind: str, values: pa.Array, lengths: np.ndarray, is_null: np.ndarray
) -> list[bytes]:
    """Returns a feature of each row in the wire format; nothing where it is missing."""
    import numpy as np

    known = np.flatnonzero(~is_null)
    if (lengths[known] != 1).any():
        listed, ends = values.to_pylist(), np.cumsum(lengths)
        pairs = zip(ends - lengths, ends, strict=True)
        made = [_entry(name, kind, listed[first:end]) for first, end in pairs]
        return [b"" if no else x for x, no in zip(made, is_null, strict=True)]
    if kind == FLOAT:
        # All but the four bytes of the number is the same.
        prefix = _entry(name, kind, [0.0])[:-4]
        data = values.to_numpy().astype("<f4").tobytes()
        found = [prefix + data[i : i + 4] for i in range(0, len(data), 4)]
    else:
        of_value: dict[Any, bytes] = {}
        found = [
            of_value.get(x) or of_value.setdefault(x, _entry(name, kind, [x]))
            for x in values.to_pylist()
        ]
    if len(found) == len(lengths):
        return found
    entries = [b""] * len(lengths)
    for row, entry in zip(known, found, strict=True):
        entries[row] = entry
    return entries


def _entry(name: str, kind: str, values: Sequence[Any]) -> bytes:
    features = _FEATURES()
    feature = getattr(features.feature[name], kind)
    feature.SetInParent()
    feature.value.extend(values)
    return features.SerializeToString(deterministic=True)


def _varint(size: int) -> bytes:
    data = bytearray()
    while size > 127:
        data.append(size & 127 | 128)
        size >>= 7
    return bytes([*data, size])


def _flat(column: pa.Array) -> tuple[pa.Array, np.ndarray, np.ndarray]:
    """Returns the values, how many each row has, and which rows have none at all."""
    import numpy as np
    from pyarrow import types as is_

    if is_.is_dictionary(column.type):
        column = column.dictionary_decode()
    if _is_image(column.type):
        column = column.flatten()[column.type.get_field_index("bytes")]
    is_null = column.is_null().to_numpy(zero_copy_only=False)
    if not _is_list(column.type):
        return column.drop_null(), (~is_null).astype(np.int64), is_null
    if is_.is_fixed_size_list(column.type):
        lengths = np.full(len(column), column.type.list_size) * ~is_null
        return column.drop_null().flatten(), lengths, is_null
    lengths = column.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    return column.flatten(), lengths.astype(np.int64), is_null


def _whole(values: pa.Array) -> pa.Array:
    """Returns decimals as int64, null where one is not whole, or too large."""
    import pyarrow as pa

    try:
        return values.cast(pa.int64())
    except pa.ArrowInvalid:
        decimals = values.to_pylist()
    fits = (
        x is not None and -(2**63) <= x < 2**63 and x == x.to_integral_value()
        for x in decimals
    )
    found = [int(x) if fit else None for x, fit in zip(decimals, fits, strict=True)]
    return pa.array(found, pa.int64())


def _converted(values: pa.Array, kind: str) -> tuple[pa.Array, np.ndarray]:
    """Returns values as those of a kind, and which of them cannot be."""
    import numpy as np
    import pyarrow as pa
    from pyarrow import compute
    from pyarrow import types as is_

    arrow_type = {INT: pa.int64(), FLOAT: pa.float32(), BYTES: pa.binary()}[kind]
    type_, is_bad = values.type, values.is_null().to_numpy(zero_copy_only=False)
    if is_.is_dictionary(type_):
        values = values.dictionary_decode()
        type_ = values.type
    if (kind_of(type_) == BYTES) != (kind == BYTES):
        nothing = [b"" if kind == BYTES else 0] * len(values)
        return pa.array(nothing, arrow_type), np.ones(len(values), bool)
    if kind == BYTES:
        if is_.is_fixed_size_binary(type_):
            return pa.array(values.to_pylist(), arrow_type).fill_null(b""), is_bad
        return values.cast(arrow_type).fill_null(b""), is_bad
    if is_.is_decimal(type_) and kind == INT:
        values, type_ = _whole(values), pa.int64()
        is_bad = values.is_null().to_numpy(zero_copy_only=False)
    if is_.is_timestamp(type_):  # In UTC: local times may be ambiguous.
        values = values.view(pa.timestamp(type_.unit))
    if is_.is_date(type_) or is_.is_timestamp(type_):
        seconds = compute.floor_temporal(values, unit="second")
        values = seconds.cast(pa.timestamp("s"), safe=False).cast(pa.int64())
    if is_.is_floating(type_) or is_.is_decimal(type_):
        numbers = (
            values.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False)
        )
        if kind == INT:
            is_bad = is_bad | (numbers != np.floor(numbers)) | (abs(numbers) >= 2**63)
        else:
            is_bad = is_bad | (np.isfinite(numbers) & (abs(numbers) > FLOAT32_MAX))
    else:
        known = values.cast(pa.uint64() if type_ == pa.uint64() else pa.int64())
        numbers = known.fill_null(0).to_numpy(zero_copy_only=False)
        if kind == INT and type_ == pa.uint64():
            is_bad = is_bad | (numbers >= 2**63)
    numbers = np.where(is_bad, 0, numbers)
    return pa.array(numbers.astype(arrow_type.to_pandas_dtype())), is_bad
