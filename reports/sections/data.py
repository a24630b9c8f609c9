"""Section Data: examples, features, schema, anomalies, bad records, images."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup, escape

from reports import formats
from reports.feature_statistics import statistics
from reports.read_run import RunData
from reports.sections import features, images
from reports.sections.features import FeaturesView
from reports.sections.images import ImagesView
from reports.tables import Column, Header, Mark, Table, folded_examples, numbers
from sluice.record.verdict import Check

_SEVERITIES = {
    "fail": Mark("bad", "fail"),
    "warn": Mark("warn", "warn"),
    "ignore": Mark("quiet", "ignored"),
    "error": Mark("bad", "error"),
    "warning": Mark("warn", "warning"),
}
# Stages that TFDV does not validate.
_NOT_VALIDATED = ("PLANNED", "ALPHA", "DEPRECATED", "DEBUG_ONLY", "DISABLED")
_MAX_VALUES = 100
_MEASURES = {
    "infinity_norm": "L-infinity",
    "jensen_shannon_divergence": "Jensen-Shannon",
    "normalized_abs_difference": "normalized difference",
}


@dataclass(frozen=True)
class DataView:
    """What the section shows; None for what the record does not have.

    Attributes:
      examples: per split.
      spans: examples per span and split.
      baseline: what the data was compared with, in a sentence.
      anomalies: what misses the schema or the policy, worst first.
      bad_records: those in the quarantine.
      bad_summary: how many there are, by kind.
    """

    examples: Table
    spans: Table | None
    baseline: str
    anomalies: Table | None
    bad_records: Table | None
    bad_summary: str
    features: FeaturesView | None
    schema: Table | None
    images: ImagesView | None


def build(run: RunData) -> DataView | None:
    """Returns the view; None without statistics and ingestion."""
    ingestion = run.documents("ingestion")
    feature_view = features.build(run)
    if not ingestion and feature_view is None:
        return None
    bad_records, bad_summary = _bad_records(ingestion)
    return DataView(
        examples=_examples(run, ingestion),
        spans=_spans(ingestion),
        baseline=_baseline(run),
        anomalies=_anomalies(run),
        bad_records=bad_records,
        bad_summary=bad_summary,
        features=feature_view,
        schema=_schema(run),
        images=images.build(run),
    )


def _examples(run: RunData, ingestion: Sequence[dict[str, Any]]) -> Table:
    """Returns examples per split, of the statistics or else of the ingestion."""
    counts: dict[str, int] = {}
    for found in statistics(run):
        counts.setdefault(found.split, found.examples)
    for artifact in ingestion:
        for name, split in artifact["splits"].items():
            counts.setdefault(name, split["records"])
    accepted = statistics(run, "baseline_statistics")
    before = {split.split: split.examples for split in accepted}
    total = sum(count for name, count in counts.items() if name != "serving")
    columns: Header = [
        "Split",
        numbers("Examples"),
        numbers("Share", "%", formats.in_percent),
    ]
    if before:
        columns.append(numbers("Accepted data"))
        columns.append(numbers("Change", "%", formats.in_percent))
    rows: list[list[Any]] = []
    for name, count in counts.items():
        share = count / total if total and name != "serving" else None
        row = [name, count, share]
        if before:
            last = before.get(name)
            row += [last, (count - last) / last if last else None]
        rows.append(row)
    return Table("examples", "Examples per split", columns, rows)


def _spans(ingestion: Sequence[dict[str, Any]]) -> Table | None:
    """Returns examples per span and split; None where the data has no spans."""
    versions: dict[int, int | None] = {}
    splits: dict[str, None] = {}
    counts: Counter[tuple[int, str]] = Counter()
    for item in (item for artifact in ingestion for item in artifact["files"]):
        if (span := item["span"]) is None:
            continue
        split = str(item["split"] or "all")
        splits[split] = None
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
    columns = [numbers("Span"), numbers("Version"), *map(numbers, splits)]
    columns += [numbers("Files"), numbers("Size", "bytes"), numbers("Bad records")]
    keys = [*(f"records of {split}" for split in splits), "files", "bytes", "bad"]
    rows = [
        [span, version, *(counts.get((span, key)) for key in keys)]
        for span, version in sorted(versions.items(), reverse=True)
    ]
    return Table("spans", caption, columns, rows)


def _baseline(run: RunData) -> str:
    for artifact in run.documents("baseline_statistics"):
        known = artifact.get("baseline") or {}
        name, at = known.get("name"), formats.time(known.get("accepted_at"))
        text = f"Compared with the data accepted last: {name}, accepted {at}"
        if known.get("override"):
            text += f", by hand: {formats.shorten(known['override'], 200)}"
        return f"{text}."
    return ""


def _anomalies(run: RunData) -> Table | None:
    """Returns the misses at the data gate, or TFDV's anomalies without such a gate."""
    if any(gate["gate"] == "data" for gate in run.record.gates):
        rows = [
            [
                _SEVERITIES[row.severity],
                row.feature,
                row.slice,
                (row.kind or row.check).replace("_", " "),
                row.limit_text and formats.limit_text(row.limit_text),
                row.actual,
                _with_examples(row),
            ]
            for row in run.record.gate_rows("data")
            if row.severity
        ]
    else:
        rows = [
            [severity, feature, split, short, None, None, long]
            for document in run.documents("anomalies")
            for split, found in document["splits"].items()
            for severity, feature, short, long in _reasons(found)
        ]
    if not rows:
        return None
    order = list(_SEVERITIES.values())
    rows.sort(key=lambda row: order.index(row[0]) if row[0] else len(order))  # type: ignore[arg-type]
    columns = ("Result", "Feature", "Split", "Anomaly", "Expected", numbers("Actual"))
    caption = "Anomalies, the worst first"
    return Table("anomalies", caption, (*columns, "Explanation"), rows)


def _reasons(found: dict[str, Any]) -> Iterator[tuple[Any, ...]]:
    """Yields severity, feature, and a short and a long text of TFDV's anomalies."""
    if found.get("data_missing"):
        yield _SEVERITIES["error"], None, "Data missing", "There are no examples."
    for name, info in sorted(found.get("anomaly_info", {}).items()):
        severity = _SEVERITIES.get(info.get("severity", "UNKNOWN").lower())
        feature = ".".join(info.get("path", {}).get("step", ())) or name
        for reason in info.get("reason", ()):
            short = reason.get("short_description", "")
            yield severity, feature, short, reason.get("description", "")


def _with_examples(row: Check) -> str | Markup:
    if not row.examples:
        return row.why
    return escape(formats.shorten(row.why, 600)) + folded_examples(row.examples)


def _bad_records(ingestion: Sequence[dict[str, Any]]) -> tuple[Table | None, str]:
    count = sum(artifact["quarantined"] for artifact in ingestion)
    errors: Counter[str] = Counter()
    for artifact in ingestion:
        errors.update(artifact["errors"])
    rows = [
        [item["kind"], item["path"], item["record"], item["offset"], item["reason"]]
        for artifact in ingestion
        for item in artifact["first_errors"]
    ]
    for item in (item for artifact in ingestion for item in artifact["problems"]):
        expected = f"expected {item['expected']}, found {item['actual']}"
        reason = f"{item['what'].rstrip('.')}: {expected}"
        rows.append([item["kind"], item["path"], None, None, reason])
    if not rows and not count:
        return None, ""
    kinds = ", ".join(f"{kind}: {n:,}" for kind, n in errors.most_common())
    lost = sum(artifact["lost_bytes"] for artifact in ingestion)
    summary = f"{formats.plural(count, 'record')} in the quarantine"
    summary += f" ({kinds})" if kinds else ""
    summary += f", {formats.size(lost)} lost" if lost else ""
    if any(artifact["quarantine_cut"] for artifact in ingestion):
        summary += "; the quarantine is full and holds only some of them"
    path, place = (
        Column("File", code=True),
        (numbers("Record"), numbers("Offset", "byte")),
    )
    columns = ("Kind", path, *place, "Reason")
    table = Table("bad-records", "First bad records of each kind", columns, rows)
    return table, f"{summary}."


def _schema(run: RunData) -> Table | None:
    documents = run.documents("schema")
    if not documents:
        return None
    columns = ("Feature", "Type", "Values per example", "Required in", "Domain")
    schema, sensitive = documents[0]["schema"], documents[0]["privacy"]["sensitive"]
    domains = {item["name"]: item for item in schema.get("string_domain", ())}
    rows = [
        [
            name,
            feature.get("type", "unknown").lower() + _unless_validated(feature),
            _values_per_example(feature),
            _required(feature.get("presence", {})),
            "sensitive" if name in sensitive else _domain(feature, domains),
            _environments(feature),
            _comparators(feature),
        ]
        for name, feature in _features(schema.get("feature", ()))
    ]
    caption = "The schema that the data was checked against"
    return Table("schema", caption, (*columns, "Environments", "Comparators"), rows)


def _features(features: Any, prefix: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields each feature with its name, those of a struct after it."""
    for feature in features:
        name = f"{prefix}{feature['name']}"
        yield name, feature
        inner = feature.get("struct_domain", {}).get("feature", ())
        yield from _features(inner, f"{name}.")


def _unless_validated(feature: dict[str, Any]) -> str:
    stage = feature.get("lifecycle_stage")
    is_validated = stage not in _NOT_VALIDATED and not feature.get("deprecated")
    return "" if is_validated else ", not validated"


def _values_per_example(feature: dict[str, Any]) -> str:
    if "shape" in feature:
        sizes = [item.get("size", "any") for item in feature["shape"].get("dim", ())]
        return f"shape [{', '.join(sizes)}]"
    count = feature.get("value_count", {})
    least, most = int(count.get("min", 0)), int(count.get("max", 0))
    if not least and not most:
        return "any"
    if least == most:
        return f"{least:,}"
    return f"{least:,} to {most or 'any'}"


def _required(presence: dict[str, Any]) -> str:
    parts = []
    if "min_fraction" in presence:
        parts.append(f"{formats.percent(presence['min_fraction'])} of the examples")
    if count := int(presence.get("min_count", 0)):
        parts.append(formats.plural(count, "example"))
    return ", ".join(parts)


def _domain(feature: dict[str, Any], shared: dict[str, dict[str, Any]]) -> str:
    kind = next((key for key in feature if key.endswith("_domain")), "")
    domain, name = feature.get(kind, {}), feature.get("domain")
    if name:
        kind, domain = "string_domain", shared.get(name, {})
    if kind in ("", "struct_domain"):
        return ""
    text = kind.removesuffix("_domain") + (f" {name}" if name else "")
    if "min" in domain or "max" in domain:
        low, high = (formats.number(domain.get(key)) for key in ("min", "max"))
        text += f", {low} to {high}"
    values = domain.get("value", [])
    if values:
        more = len(values) - _MAX_VALUES
        text += f": {', '.join(values[:_MAX_VALUES])}"
        text += f" and {more:,} more" if more > 0 else ""
    return text


def _environments(feature: dict[str, Any]) -> str:
    return "; ".join(
        f"{text} {', '.join(feature[key])}"
        for key, text in (
            ("in_environment", "only in"),
            ("not_in_environment", "not in"),
        )
        if feature.get(key)
    )


def _comparators(feature: dict[str, Any]) -> str:
    return "; ".join(
        f"{check}: {_MEASURES.get(measure, measure)} "
        f"≤ {formats.number(found.get('threshold', 0.0))}"
        for check in ("drift", "skew")
        for measure, found in feature.get(f"{check}_comparator", {}).items()
    )
