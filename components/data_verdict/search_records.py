"""Searches the ingested files for example records of the verdict's failed rows.

TFDV validates statistics and names no record. So the source files are read once more,
until each row has its examples. Some kinds of anomalies, such as a split with too few
examples, are not visible in any one record.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any

from tensorflow_metadata.proto.v0 import schema_pb2

from components.data_verdict.schema_rows import number_of_values
from components.tfrecord_gen.conditions import TRUE
from components.tfrecord_gen.ingestion_report import Report
from components.tfrecord_gen.scan import evaluator, valid_records
from components.tfrecord_gen.settings import HashSplits
from schemas.loader import (
    LISTS_OF_TYPES,
    list_features,
    list_types,
    number_bounds,
    string_domain,
)
from sluice.errors import MAX_EXAMPLES, printable
from sluice.record.verdict import Check
from sluice.splits import SERVING
from sluice.tfrecords.parse_tf_example import as_text, parse, show_values, values_of

MAX_SECONDS = 60.0

# Takes a record's feature, None if it is missing; returns what is wrong, or None.
RecordCheck = Callable[[Any], str | None]


def add_examples(
    rows: Sequence[Check],
    reports: Sequence[Report],
    schema: schema_pb2.Schema,
    *,
    hash_splits: HashSplits | None = None,
    sensitive: Collection[str] = (),
) -> list[Check]:
    """Returns the rows with example records, as far as any are found.

    Args:
      rows: those about a feature that fail or warn get examples.
      reports: of the ingestions, with the files.
      schema: to check records against.
      hash_splits: how records are divided into splits; None if files are.
      sensitive: features whose values are withheld.
    """
    declared = {feature.name: feature for feature in schema.feature}
    checks = {
        index: check
        for index, row in enumerate(rows)
        if row.result in ("FAIL", "warn") and row.feature and row.kind
        if (check := _record_check(row.kind, declared.get(row.feature), schema))
    }
    types = list_types(schema)
    places: dict[int, list[str]] = defaultdict(list)
    end = time.monotonic() + MAX_SECONDS
    conditions = {x.where: _is_kept(x.where, schema) for x in reports}
    for report, file in ((x, y) for x in reports for y in x.files):
        limit, is_kept = report.max_record_bytes, conditions[report.where]
        searched = [i for i in checks if _may_be_in(file.split, rows[i])]
        for record in valid_records(file.path, limit, types) if searched else ():
            searched = [i for i in searched if len(places[i]) < MAX_EXAMPLES]
            if not searched or time.monotonic() > end:
                break
            split = file.split
            if split is None and hash_splits:
                try:
                    split = hash_splits.split_of(record.data)
                except LookupError:
                    continue  # The record is in quarantine.
            features = parse(record.data).features.feature
            for i in searched:
                name = rows[i].feature or ""
                # Not features[name], which would add it.
                wrong = checks[i](features.get(name))
                in_split = wrong is not None and _may_be_in(split, rows[i])
                if in_split and is_kept(record.data):
                    shown = "" if name in sensitive else f": {printable(name)} {wrong}"
                    places[i].append(f"{file.path}, record {record.number:,}{shown}")
    return [
        replace(row, examples=(*row.examples, *places[i])) for i, row in enumerate(rows)
    ]


def _is_kept(where: str | None, schema: schema_pb2.Schema) -> Callable[[bytes], bool]:
    """Returns what tells whether ``examples.where`` has kept a record."""
    if where is None:
        return lambda data: True
    evaluate = evaluator((where,), list_types(schema), list_features(schema))

    def is_kept(data: bytes) -> bool:
        try:
            return bool(evaluate([data])[0, 0] == TRUE)
        except RuntimeError:  # It has another type, and is in quarantine.
            return False

    return is_kept


def _may_be_in(split: str | None, row: Check) -> bool:
    """Whether a row is about a split; None (hashed records) is any but serving."""
    return split == row.slice or (split is None and row.slice != SERVING)


def _record_check(
    kind: str, declared: schema_pb2.Feature | None, schema: schema_pb2.Schema
) -> RecordCheck | None:
    """Returns the check of a record; None for kinds not visible in one record.

    Args:
      kind: of the anomaly.
      declared: the feature in the schema; None for a new one.
      schema: with its domains.
    """
    if kind == "new_feature":
        return lambda seen: None if seen is None else show_values(values_of(seen))
    if declared is None:
        return None
    if kind == "missing":
        return lambda seen: None if values_of(seen) else "missing"
    if kind == "wrong_shape":
        least, most = number_of_values(declared)
        return lambda seen: (
            f"{len(values)} value{'s' * (len(values) != 1)}"
            if (values := values_of(seen))
            and not least <= len(values) <= (most or math.inf)
            else None
        )
    if kind == "wrong_type":
        expected = LISTS_OF_TYPES.get(declared.type)
        return lambda seen: (
            f"{seen.WhichOneof('kind')} {show_values(values_of(seen))}"
            if values_of(seen) and seen.WhichOneof("kind") != expected
            else None
        )
    if is_bad := _bad_value(kind, declared, schema):
        return lambda seen: (
            show_values(bad) if (bad := [*filter(is_bad, values_of(seen))]) else None
        )
    return None


def _bad_value(
    kind: str, declared: schema_pb2.Feature, schema: schema_pb2.Schema
) -> Callable[[Any], bool] | None:
    """Returns what tells a bad value; None for kinds without one."""
    if kind == "out_of_range" and (bounds := number_bounds(declared)):
        low, high = bounds
        least = -math.inf if low is None else low
        most = math.inf if high is None else high
        return lambda x: isinstance(x, int | float) and (x < least or x > most)
    if kind == "new_value" and (domain := string_domain(declared, schema)):
        known = {value.encode() for value in domain.value}
        return lambda x: isinstance(x, bytes) and x not in known
    if kind == "not_finite":
        return lambda x: isinstance(x, float) and not math.isfinite(x)
    if kind == "invalid_text":
        return lambda x: isinstance(x, bytes) and as_text(x) is None
    return None
