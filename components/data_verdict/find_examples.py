"""Adds records that show what is wrong to a verdict: at most five for each row.

How many records and seconds the search may take is bounded, so a rare anomaly in large
data can stay without an example. Only what fails or warns is looked for. Of a sensitive
feature the place is told, never the value.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from tensorflow_metadata.proto.v0 import schema_pb2

from components.data_verdict.expectation import expectation
from components.data_verdict.search_records import Search, Source, search_records
from sluice.verdict import Verdict

MAX_RECORDS = 2_000_000
MAX_SECONDS = 60.0


def find_examples(
    verdict: Verdict,
    source: Source,
    schema: schema_pb2.Schema,
    *,
    sensitive: Collection[str] = (),
    max_records: int = MAX_RECORDS,
    max_seconds: float = MAX_SECONDS,
) -> Verdict:
    """Returns the verdict with examples in its rows, as far as they can be found.

    Args:
      verdict: rows that fail or warn about a feature are looked for.
      source: the files that have been judged.
      schema: what a record is held against.
      sensitive: features whose values are not shown.
      max_records: how many records are read at most.
      max_seconds: how long is looked for them at most.
    """
    searches = dict(_searches(verdict, schema, sensitive))
    search_records([*searches.values()], source, max_records, max_seconds)
    rows = [
        replace(row, examples=tuple(searches[index].found))
        if index in searches and searches[index].found
        else row
        for index, row in enumerate(verdict.rows)
    ]
    return replace(verdict, rows=tuple(rows))


def _searches(
    verdict: Verdict, schema: schema_pb2.Schema, sensitive: Collection[str]
) -> Iterator[tuple[int, Search]]:
    """Yields what is looked for on behalf of a row, with the row's index."""
    for index, row in enumerate(verdict.rows):
        if row.severity not in ("fail", "warn") or not (row.feature and row.kind):
            continue
        if breaks := expectation(row.kind, row.feature, schema):
            is_sensitive = row.feature in sensitive
            yield index, Search(row.slice, row.feature, breaks, is_sensitive)
