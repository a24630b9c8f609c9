"""Data gate decision: a row for each check, to which the policy is applied.

Nothing is read here. Checks that pass have a row too. A split without examples or
statistics and a missing report fail whatever the policy says, because nothing could be
trained.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tensorflow_metadata.proto.v0 import anomalies_pb2, schema_pb2

from components.data_baselines import Entry
from components.data_verdict.drift import Comparison, Pair, compare
from components.data_verdict.schema_rows import schema_rows
from components.data_verdict.settings import Policy, Settings, anomaly
from components.tfrecord_gen.ingestion_report import Expected, Report
from schemas.data_statistics import Statistics, features_of
from sluice.errors import MAX_EXAMPLES, bounded
from sluice.record.verdict import Check, Comparator
from sluice.splits import SERVING, number_of_examples
from sluice.table_files import is_table
from sluice.tfrecords.frame_reader import RecordError

_EXAMPLES = "number of examples"
_ANOMALIES = "anomalies against the schema"
_CORRECT = "correct the records, or what the schema and the classes say"
_CHECKS = {
    "duplicate_shard": "same file twice",
    "missing_shard": "complete set of files",
    "manifest": "files as in the manifest",
}


@dataclass(frozen=True)
class Evidence:
    """Input of the data gate's decision.

    Attributes:
      schema: the reviewed one.
      statistics: of StatisticsGen, by split; with ``serving`` if there are any.
      anomalies: of TFDV against the schema, by split.
      reports: of the ingestions, by ``overall`` and ``serving``.
      baseline: the data accepted last; None if there is none.
      baseline_statistics: of that data, by split.
    """

    schema: schema_pb2.Schema
    statistics: Mapping[str, Statistics | None]
    anomalies: Mapping[str, anomalies_pb2.Anomalies]
    reports: Mapping[str, Report] = field(default_factory=dict)
    baseline: Entry | None = None
    baseline_statistics: Mapping[str, Statistics] = field(default_factory=dict)


def judge(
    evidence: Evidence, comparisons: Sequence[Comparison], settings: Settings
) -> list[Check]:
    """Returns the rows of the verdict, with the policy applied."""
    policy = settings.policy
    rows = [
        row
        for split, report in evidence.reports.items()
        for row in _ingestion_rows(report, policy, split)
    ]
    for split in settings.splits:
        rows += _split_rows(split, evidence, settings)
    if (serving := evidence.statistics.get(SERVING)) is not None:
        if number_of_examples(serving):
            rows += _schema_rows(SERVING, evidence, settings)
        else:
            rows.append(_count_row(SERVING, ">=", settings.min_requests, 0))
    rows += [row for comparison in comparisons for row in comparison.rows]
    rows = [policy.apply(row) for row in rows]
    if all(row.passed for row in rows if row.kind == "corrupt"):
        return rows
    # What else was found may come from the damage, and goes with it.
    return [
        row if row.kind == "corrupt" else replace(row, remedy=None, command=None)
        for row in rows
    ]


def compare_all(evidence: Evidence, settings: Settings) -> Iterator[Comparison]:
    """Yields the comparisons of the data with other data."""
    for pair in _pairs(evidence):
        # An empty split has a row of its own.
        if number_of_examples(pair.current) and number_of_examples(pair.control):
            yield compare(evidence.schema, pair, settings.sensitive)


def _pairs(evidence: Evidence) -> Iterator[Pair]:
    statistics = {split: found for split, found in evidence.statistics.items() if found}
    if evidence.baseline:
        for split, current in statistics.items():
            if control := evidence.baseline_statistics.get(split):
                yield Pair("drift", split, evidence.baseline.name, current, control)
    if train := statistics.get("train"):
        if control := statistics.get("eval"):
            yield Pair("split_drift", "train", "split eval", train, control)
        if control := statistics.get(SERVING):
            yield Pair("skew", "train", "serving examples", train, control)


def _split_rows(split: str, evidence: Evidence, settings: Settings) -> list[Check]:
    policy = settings.policy
    least: Mapping[Any, int] = policy.min_examples
    most: Mapping[Any, int] = policy.max_examples
    count = number_of_examples(evidence.statistics.get(split))
    rows = [_count_row(split, ">=", least.get(split, 1), count)]
    if not count:
        # An empty split is one failure, not one per feature that is missing from it.
        why = f"the split {split!r} holds no examples"
        return [_always(replace(rows[0], why=why))]
    if split in most:
        rows.append(_count_row(split, "<=", most[split], count))
    rows += _count_change(split, count, evidence, policy)
    return rows + _schema_rows(split, evidence, settings)


def _count_row(split: str, comparison: Comparator, limit: int, count: int) -> Check:
    row = Check(
        check=_EXAMPLES, slice=split, limit=limit, comparison=comparison, actual=count
    )
    if row.is_within:
        return row
    examples = "1 example" if count == 1 else f"{count:,} examples"
    why = f"the split {split!r} holds {examples}, limit {comparison} {limit:,}"
    return replace(row, result="FAIL", kind="count", why=why)


def _count_change(
    split: str, count: int, evidence: Evidence, policy: Policy
) -> list[Check]:
    baseline, limit = evidence.baseline, policy.max_count_change
    last = baseline.splits.get(split) if baseline else None
    if limit is None or not baseline or not last:
        return []
    change = abs(count - last) / last
    row = Check(
        check="change in examples",
        slice=split,
        limit=limit,
        baseline=last,
        actual=change,
        result="pass" if change <= limit else "FAIL",
        why=f"the split {split!r} holds {count:,} examples, {last:,} in "
        f"{baseline.name}: {_percent(change)} away, limit {_percent(limit)}",
        kind=None if change <= limit else "count_change",
        comparison="<=",
    )
    return [row]


def _schema_rows(split: str, evidence: Evidence, settings: Settings) -> list[Check]:
    """Returns the rows of a split against the schema."""
    passed = Check(check=_ANOMALIES, slice=split, limit="none", actual=0)
    anomalies = evidence.anomalies[split]
    statistics, sensitive = evidence.statistics.get(split), settings.sensitive
    rows = schema_rows(split, anomalies, statistics, evidence.schema, sensitive)
    if split != SERVING:
        named = {row.feature for row in rows if row.kind == "invalid_text"}
        rows += _slice_rows(split, statistics, {*settings.sliced} - named)
    return [*rows, passed] if all(row.passed for row in rows) else rows


def _slice_rows(
    split: str, statistics: Statistics | None, sliced: Collection[str]
) -> Iterator[Check]:
    """Yields an anomaly for each feature whose values cannot be names of slices.

    TFMA decodes them after the training. TFDV finds text that is not UTF-8 only where
    the schema has a domain.
    """
    for name, found in features_of(statistics).items():
        if name in sliced and (count := found.string_stats.invalid_utf8_count):
            why = f"{count:,} values are not UTF-8, which evaluate.slices needs"
            remedy = "write the text as UTF-8, or leave it out of evaluate.slices"
            row = {"feature": name, "limit": "UTF-8", "remedy": remedy}
            yield anomaly("invalid_text", split, f"feature {name!r}", why, **row)


def _always(row: Check) -> Check:
    """Returns a row that fails whatever the policy says."""
    return replace(row, result="FAIL", kind=None, policy="always: fail")


def _ingestion_rows(report: Report, policy: Policy, split: str) -> list[Check]:
    """Returns a row on damaged records, and one for each kind of inconsistency.

    Args:
      report: of the ingestion.
      policy: with the limits.
      split: ``overall`` or ``serving``.
    """
    limit = policy.max_corrupt_fraction
    allowed = {item.rule: item.max_fraction for item in policy.expect}
    actual = report.corrupt_fraction or 0
    damaged = Check(
        check="damaged records",
        slice=split,
        limit=limit,
        actual=actual,
        result="pass" if actual <= limit else "FAIL",
        why=_damage(report, limit),
        kind=None if actual <= limit else "corrupt",
        remedy=_CORRECT if {"type", "label"} & {*report.errors} else None,
        examples=tuple(map(_place, report.first_errors[:MAX_EXAMPLES])),
        comparison="<=",
    )
    rows = [damaged]
    if empty := report.empty_files:
        row = Check(
            check="files without records",
            slice=split,
            limit="any",
            actual=len(empty),
            examples=tuple(bounded(empty)),
        )
        rows.append(row)
    for kind in dict.fromkeys(problem.kind for problem in report.problems):
        problems = [item for item in report.problems if item.kind == kind]
        row = anomaly(
            kind,
            split,
            _CHECKS.get(kind, kind),
            f"{os.path.basename(problems[0].path)} {problems[0].what}",
            limit="none",
            actual=len(problems),
            examples=tuple(bounded([f"{x.path}: {x.what}" for x in problems])),
        )
        rows.append(row)
    rows += [_expectation_row(x, allowed.get(x.rule, 0.0)) for x in report.expected]
    for found in report.equal:
        if found.other == "train" != found.split:
            total = report.splits[found.split]
            why = f"{found.records:,} of {total:,} records are in train as well"
            fields = {"limit": "none", "examples": found.examples}
            check = "records that are in train"
            row = anomaly("leak", found.split, check, why, **fields)
            rows.append(replace(row, actual=found.records))
    return rows


def _expectation_row(found: Expected, limit: float) -> Check:
    actual = found.broken / max(1, found.records)
    of = f"of {found.records:,} records"
    why = f"false for {found.broken:,} {of}" if found.broken else ""
    if found.unknown:
        unknown = f"not known for {found.unknown:,} {of}, as values are missing"
        why = f"{why}; {unknown}" if why else unknown
    is_met = actual <= limit
    return Check(
        check=found.rule,
        slice=found.split,
        limit=limit,
        comparison="<=",
        actual=actual,
        result="pass" if is_met else "FAIL",
        why=why,
        kind=None if is_met else "expectation",
        examples=found.examples,
        remedy=None if is_met else "correct the records, or the rule",
    )


def _damage(report: Report, limit: float) -> str:
    """Returns a description of the damaged records; empty if there are none."""
    bad = report.quarantined
    if not bad:
        return ""
    is_ = "is" if bad == 1 else "are"
    text = f"{bad:,} of {report.records + bad:,} records {is_} damaged"
    if report.lost_bytes:
        text += f" and {report.lost_bytes:,} bytes cannot be read"
    cut = ", not all of them are kept" if report.quarantine_cut else ""
    share = _percent(report.corrupt_fraction)
    return f"{text} ({share}), limit {_percent(limit)}{cut}"


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %" if share else "0"


def _place(error: RecordError) -> str:
    where = f"record {error.number:,}, byte {error.offset:,}"
    where = f"row {error.number:,}" if is_table(error.path) else where
    where = where if error.number else "whole file"
    return f"{error.path}, {where}: {error.kind}: {error.reason}"
