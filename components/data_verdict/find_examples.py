"""Adds records that show what is wrong to a verdict: at most five for each finding.

A feature that is wrong in one way in several splits is one finding. How many records
and seconds the search may take is bounded, so a rare anomaly in large data can stay
without an example. Only what fails or warns is looked for. Of a sensitive feature the
place is told, never the value.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import replace

from tensorflow_metadata.proto.v0 import schema_pb2

from components.data_verdict.expectation import expectation
from components.data_verdict.search_records import Search, Source, search_records
from sluice.errors import MAX_EXAMPLES
from sluice.record.verdict import Verdict

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
    alike: dict[tuple[str, str], list[int]] = defaultdict(list)
    for index, row in enumerate(verdict.rows):
        if row.severity in ("fail", "warn") and row.feature and row.kind:
            alike[row.kind, row.feature].append(index)
    for (kind, feature), indices in alike.items():
        breaks = expectation(kind, feature, schema)
        if breaks is None:
            continue
        for place, index in enumerate(indices):
            # Shares of what one finding may have, the larger ones first.
            most = (MAX_EXAMPLES + len(indices) - 1 - place) // len(indices)
            split = verdict.rows[index].slice
            search = Search(split, feature, breaks, feature in sensitive, most)
            yield index, search
