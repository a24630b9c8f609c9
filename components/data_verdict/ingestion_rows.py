"""Rows on the ingestion: damaged records beyond the limit, inconsistent files."""

from __future__ import annotations

from components.data_verdict.anomaly_kind import anomaly
from components.tfrecord_gen.report import FirstError, Problem, Report
from sluice.errors import MAX_EXAMPLES, bounded
from sluice.record.verdict import Check

_CHECKS = {
    "duplicate_shard": "same file twice",
    "missing_shard": "complete set of files",
    "manifest": "files as in the manifest",
}


def ingestion_rows(report: Report, limit: float, split: str) -> list[Check]:
    """Returns a row on damaged records, and one for each kind of inconsistency.

    Args:
      report: of the ingestion.
      limit: of damaged records, bytes or files, 0..1.
      split: ``overall`` or ``serving``.
    """
    actual = report.corrupt_fraction or 0
    damaged = Check(
        check="damaged records",
        slice=split,
        limit=limit,
        baseline=None,
        actual=actual,
        passed=actual <= limit,
        why=_damage(report),
        kind=None if actual <= limit else "corrupt",
        examples=tuple(map(_place, report.first_errors[:MAX_EXAMPLES])),
        comparison="<=",
    )
    rows = [damaged]
    for kind in dict.fromkeys(problem.kind for problem in report.problems):
        problems = [item for item in report.problems if item.kind == kind]
        row = anomaly(
            kind,
            split,
            _CHECKS.get(kind, kind),
            _sentence(problems),
            limit="none",
            actual=len(problems),
            examples=tuple(bounded([*map(_difference, problems)])),
        )
        rows.append(row)
    return rows


def _damage(report: Report) -> str:
    """Returns a description of the damaged records; empty if there are none."""
    if not report.quarantined:
        return ""
    kinds = ", ".join(f"{count} {kind}" for kind, count in report.errors.items())
    total = report.records + report.quarantined
    text = f"{report.quarantined:,} of {total:,} records quarantined ({kinds})"
    if report.lost_bytes:
        text += f", {report.lost_bytes:,} bytes cannot be read"
    if report.quarantine_cut:
        text += ", not all of them are kept"
    return text


def _place(error: FirstError) -> str:
    where = f"record {error.record:,} at byte {error.offset:,}"
    where = where if error.record else "whole file"
    return f"{error.path}, {where}: {error.kind}: {error.reason}"


def _sentence(problems: list[Problem]) -> str:
    more = f", and {len(problems) - 1} more" if len(problems) > 1 else ""
    return f"{problems[0].what.rstrip('.')}{more}"


def _difference(problem: Problem) -> str:
    return f"{problem.path}: expected {problem.expected}, found {problem.actual}"
