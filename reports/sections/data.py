"""Section Data: examples, spans, bad records, features, images, schema."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from google.protobuf import json_format
from tensorflow_metadata.proto.v0 import schema_pb2

from reports import formats
from reports.feature_statistics import statistics
from reports.read_run import RunData
from reports.sections import features
from reports.tables import Column, Header, Mark, Table, numbers
from schemas.show_schema import show_schema
from sluice.table_files import is_table


def build(run: RunData) -> dict[str, Any] | None:
    """Returns what the template shows; None without statistics and ingestion."""
    ingestion = run.documents("ingestion")
    feature_view = features.build(run)
    if not ingestion and feature_view is None:
        return None
    return {
        "baselines": [x["baseline"] for x in run.documents("baseline_statistics")],
        "examples": _examples(run, ingestion),
        "spans": _spans(ingestion),
        "equal": _equal(ingestion),
        "bad_records": _bad_records(ingestion),
        "ingestion": [item for item in ingestion if item["quarantined"]],
        "filtered": sum(item.get("filtered", 0) for item in ingestion),
        "features": feature_view,
        "samples": run.documents("samples"),
        "schema": _schema(run),
    }


def _examples(run: RunData, ingestion: Sequence[dict[str, Any]]) -> Table:
    """Returns examples per split, of the statistics or else of the ingestion."""
    counts: dict[str, int] = {}
    for found in statistics(run):
        counts.setdefault(found.split, found.examples)
    for artifact in ingestion:
        for name, records in artifact["splits"].items():
            counts.setdefault(name, records)
    accepted = statistics(run, "baseline_statistics")
    before = {split.split: split.examples for split in accepted}
    total = sum(count for name, count in counts.items() if name != "serving")
    share = numbers("Share", formats.percent)
    columns: Header = ["Split", numbers("Examples"), share]
    if before:
        columns += [numbers("Accepted data"), numbers("Change", formats.percent)]
    rows: list[list[Any]] = []
    for name, count in counts.items():
        row = [name, count, count / total if total and name != "serving" else None]
        if before:
            last = before.get(name)
            row += [last, (count - last) / last if last else None]
        rows.append(row)
    return Table("examples", "Examples per split", columns, rows)


def _spans(ingestion: Sequence[dict[str, Any]]) -> Table | None:
    """Returns examples per span and split; None where the data has no spans."""
    counts: Counter[tuple[int, str]] = Counter()
    versions: dict[int, int | None] = {}
    splits: dict[str, None] = {}
    for item in (item for artifact in ingestion for item in artifact["files"]):
        if (span := item["span"]) is None:
            continue
        split = str(item["split"] or "all")
        splits[f"records of {split}"] = None
        versions.setdefault(span, item["version"])
        counts[span, f"records of {split}"] += item["records"]
        counts[span, "files"] += 1
        counts[span, "bytes"] += item["size_bytes"]
        counts[span, "bad"] += item["quarantined"]
    if not versions:
        return None
    left_out = sum(artifact["files_left_out"] for artifact in ingestion)
    caption = "Examples per span"
    if left_out:
        caption += f", without {formats.plural(left_out, 'file')} that the record lacks"
    columns = [numbers("Span"), numbers("Version")]
    columns += [numbers(name.removeprefix("records of ")) for name in splits]
    columns += [numbers("Files"), numbers("Size", formats.size), numbers("Bad records")]
    keys = (*splits, "files", "bytes", "bad")
    rows = [
        [span, version, *(counts[span, key] for key in keys)]
        for span, version in sorted(versions.items(), reverse=True)
    ]
    return Table("spans", caption, columns, rows)


def _equal(ingestion: Sequence[dict[str, Any]]) -> Table | None:
    """Returns the records that are there more than once, across splits first."""
    found = [item for artifact in ingestion for item in artifact.get("equal", ())]
    found.sort(key=lambda item: item["split"] == item["other"])
    rows = []
    for item in found:
        is_leak = item["other"] != item["split"]
        mark = Mark("warn", "leak") if is_leak else Mark("quiet", "duplicate")
        where = f"{item['split']}, as in {item['other']}" if is_leak else item["split"]
        rows.append([mark, where, item["records"], "; ".join(item["examples"])])
    columns: Header = [
        "",
        "Split",
        numbers("Records"),
        Column("The first five", code=True),
    ]
    return Table("equal", "Equal records", columns, rows, limit=10) if rows else None


def _bad_records(ingestion: Sequence[dict[str, Any]]) -> Table | None:
    rows = []
    for item in (item for artifact in ingestion for item in artifact["first_errors"]):
        path, number, why = item["path"], item["number"], item["reason"]
        offset = None if is_table(path) else item["offset"]
        rows.append([item["kind"], path, number, offset, why])
    for item in (item for artifact in ingestion for item in artifact["problems"]):
        rows.append([item["kind"], item["path"], None, None, item["what"]])
    if not rows:
        return None
    place = Column("File", code=True), numbers("Record"), numbers("Offset in bytes")
    columns = ("Kind", *place, "Reason")
    return Table("bad-records", "First bad records of each kind", columns, rows)


def _schema(run: RunData) -> list[Any]:
    """Returns a row per feature of the schema that the data was checked against."""
    for document in run.documents("schema"):
        schema = json_format.ParseDict(document["schema"], schema_pb2.Schema())
        return show_schema(schema, document["privacy"]["sensitive"])
    return []
