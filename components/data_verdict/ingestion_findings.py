"""Findings of ingestion: damaged records beyond the limit, inconsistent files."""

from __future__ import annotations

from collections.abc import Iterable

from components.data_verdict.finding import Finding
from components.tfrecord_gen.report import FirstError, Problem, Report
from sluice.errors import MAX_EXAMPLES, bounded

CORRUPT = "damaged records"
_CHECKS = {
    "duplicate_shard": "same file twice",
    "missing_shard": "complete set of files",
    "manifest": "files as in the manifest",
}


def ingestion_findings(
    report: Report, max_corrupt_fraction: float, split: str
) -> list[Finding]:
    """Returns the findings about the files of an ingestion.

    Args:
      report: of the ingestion.
      max_corrupt_fraction: limit of damaged records, bytes or files, 0..1.
      split: of the findings, "overall" or "serving".
    """
    found = []
    if report.corrupt_fraction > max_corrupt_fraction:
        finding = Finding(
            kind="corrupt",
            split=split,
            check=CORRUPT,
            why=damage(report),
            limit=max_corrupt_fraction,
            comparison="<=",
            actual=report.corrupt_fraction,
            examples=describe_errors(report.first_errors),
        )
        found.append(finding)
    for kind in dict.fromkeys(problem.kind for problem in report.problems):
        problems = [item for item in report.problems if item.kind == kind]
        lines = [f"{item.path}: {_difference(item)}" for item in problems]
        finding = Finding(
            kind=kind,
            split=split,
            check=_CHECKS.get(kind, kind),
            why=_sentence(problems),
            limit="none",
            actual=len(problems),
            examples=tuple(bounded(lines)),
        )
        found.append(finding)
    return found


def damage(report: Report) -> str:
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


def describe_errors(errors: Iterable[FirstError]) -> tuple[str, ...]:
    """Returns the places of the first damaged records, at most five."""
    lines = [
        f"{error.path}, {_location(error)}: {error.kind}: {error.reason}"
        for error in errors
    ]
    return tuple(lines[:MAX_EXAMPLES])


def _location(error: FirstError) -> str:
    if not error.record:
        return "whole file"
    return f"record {error.record:,} at byte {error.offset:,}"


def _sentence(problems: list[Problem]) -> str:
    more = f", and {len(problems) - 1} more" if len(problems) > 1 else ""
    return f"{problems[0].what.rstrip('.')}{more}"


def _difference(problem: Problem) -> str:
    return f"expected {problem.expected}, found {problem.actual}"
