"""Conditions on the features of a record, in SQL: ``fare > 0 or tips == 0``.

DuckDB evaluates them on batches of records. A feature is a column of BIGINT, FLOAT or
VARCHAR, one of several values a list of these, and a missing feature is NULL: what SQL
does not know then is neither true nor false here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sluice.errors import DataError

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

TRUE, FALSE, UNKNOWN = 1, 0, -1


def column_types(types: Mapping[str, str], lists: Collection[str]) -> dict[str, Any]:
    """Returns the Arrow type of each column.

    Args:
      types: by feature its kind of list, as ``parse_tf_example.KINDS``.
      lists: features with more than one value.
    """
    import pyarrow as pa

    scalars = {
        "int64_list": pa.int64(),
        "float_list": pa.float32(),
        "bytes_list": pa.string(),
    }
    found = {name: scalars[kind] for name, kind in types.items()}
    return found | {x: pa.list_(found[x]) for x in lists if x in found}


class Conditions:
    """Conditions that are evaluated together.

    Args:
      texts: in SQL.
      types: of the columns, see ``column_types``.

    Attributes:
      types: of the columns that the conditions name.
    """

    def __init__(self, texts: Sequence[str], types: Mapping[str, Any]) -> None:
        self._connection = _connect()
        together = " ".join(texts).lower()
        self.types = {x: types[x] for x in types if x.lower() in together}
        # A line break ends a comment.
        chosen = ", ".join(f"({text}\n) AS c{i}" for i, text in enumerate(texts))
        self._query = f"SELECT {chosen} FROM records"

    def evaluate(self, batch: pa.RecordBatch) -> np.ndarray:
        """Returns the value of each condition for each record, int8.

        Args:
          batch: a column of lists per feature, as TFX decodes tf.Examples.

        Returns:
          ``[conditions, records]``, TRUE, FALSE or UNKNOWN.

        Raises:
          DataError: a condition cannot be evaluated for a record.
        """
        import duckdb
        import pyarrow as pa

        columns = {
            name: _column(batch, name, type_) for name, type_ in self.types.items()
        }
        # A table has at least one column.
        columns[""] = pa.nulls(batch.num_rows, pa.int8())
        self._connection.register("records", pa.table(columns))
        try:
            found = self._connection.execute(self._query).fetch_arrow_table()
        except duckdb.Error as error:
            text = f"a condition cannot be evaluated: {_explain(error)}"
            hint = "in validate.expect or examples.where, such as try_cast for ::"
            raise DataError(text, hint=hint) from error
        return np.stack(
            [
                column.cast(pa.int8()).fill_null(UNKNOWN).to_numpy()
                for column in found.columns
            ]
        )


def _connect() -> duckdb.DuckDBPyConnection:
    import duckdb

    options = {"threads": 1, "enable_external_access": "false"}
    return duckdb.connect(":memory:", config=options)


def _explain(error: Exception) -> str:
    what = str(error).partition("\nLINE ")[0]
    return " ".join(what.replace('"records.', '"').split())


def why_not(text: str, types: Mapping[str, Any]) -> str | None:
    """Returns why a text is no condition on a record; None if it is one."""
    import duckdb
    import pyarrow as pa

    names = Counter(name.lower() for name in types)
    if twice := [
        x for x in types if names[x.lower()] > 1 and x.lower() in text.lower()
    ]:
        return f"SQL does not tell apart the features {' and '.join(twice)}"
    with _connect() as connection:
        table = {name: pa.nulls(2, type_) for name, type_ in types.items()}
        connection.register("records", pa.table(table))
        try:
            found = connection.execute(f"SELECT ({text}\n) FROM records")
            rows = found.fetchall()
        except duckdb.Error as error:
            return _explain(error)
        kinds = [str(item[1]) for item in found.description or ()]
    if [kind.lower() for kind in kinds] not in (["bool"], ["boolean"]):
        return f"it is of the type {', '.join(kinds)}, not true or false"
    return None if len(rows) == 2 else "it is about all records, not about one"


def _column(batch: pa.RecordBatch, name: str, type_: pa.DataType) -> pa.Array:
    import pyarrow as pa

    at = batch.schema.get_field_index(name)
    if at < 0:
        return pa.nulls(batch.num_rows, type_)
    column = batch.column(at)
    if pa.types.is_list(type_):
        return _texts(column, type_)
    # More than one value is an anomaly of its own.
    is_single = column.value_lengths().fill_null(0).to_numpy() == 1
    firsts = _finite(column.filter(pa.array(is_single)).flatten())
    places = np.cumsum(is_single) - 1
    return _texts(firsts, type_).take(pa.array(places, mask=~is_single))


def _finite(values: pa.Array) -> pa.Array:
    """Returns values with null for NaN, which SQL takes for the largest number."""
    import pyarrow as pa
    from pyarrow import compute

    if not pa.types.is_floating(values.type):
        return values
    return compute.if_else(compute.is_finite(values), values, None)


def _texts(column: pa.Array, type_: pa.DataType) -> pa.Array:
    """Returns a column with bytes as text; what is not UTF-8 is replaced."""
    import pyarrow as pa

    try:
        return column.cast(type_)
    except pa.ArrowInvalid:
        return pa.array(_decoded(column.to_pylist()), type_)


def _decoded(value: Any) -> Any:
    if isinstance(value, list):
        return [_decoded(item) for item in value]
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
