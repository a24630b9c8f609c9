"""Data gate decision: applies the policy to all findings, one row each.

Nothing is read or measured here. Checks that pass have a row too. A split without
examples or statistics and a missing report fail whatever the policy says, because
nothing could be trained.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tensorflow_metadata.proto.v0 import anomalies_pb2, schema_pb2, statistics_pb2

from components.data_verdict.anomaly_kind import COMPARISON_NAMES, remedy
from components.data_verdict.drift import Comparison
from components.data_verdict.finding import Finding
from components.data_verdict.ingestion_findings import (
    CORRUPT,
    damage,
    describe_errors,
    ingestion_findings,
)
from components.data_verdict.int_range import Breaches, int_range_findings
from components.data_verdict.policy import Policy
from components.data_verdict.schema_findings import (
    not_finite_findings,
    schema_findings,
    unmeasured_findings,
)
from components.tfrecord_gen.report import Report
from sluice.record.verdict import Check, Verdict
from sluice.splits import SERVING, number_of_examples

_OVERALL = "overall"
_ANOMALIES = "anomalies against the schema"
_EXAMPLES = "number of examples"
_ALWAYS = "always: fail"
_BASELINES = "accepted data"


@dataclass(frozen=True)
class Evidence:
    """Input of the data gate's decision.

    Attributes:
      splits: the splits that the pipeline declares, in order.
      statistics: of StatisticsGen, by split; with ``serving`` if there are any.
      anomalies: of TFDV against the schema, by split.
      schema: the reviewed one.
      report: of the ingestion; None if there is none.
      serving_report: of the ingestion of serving requests, likewise.
      int_breaches: see ``int_range``.
      comparisons: drift and skew.
      baseline: the name of the data accepted last; None if there is none.
      baseline_counts: its number of examples by split.
      damaged: a line for each data baseline that cannot be read.
      sensitive: features whose values are withheld.
    """

    splits: Sequence[str]
    statistics: Mapping[str, statistics_pb2.DatasetFeatureStatisticsList | None]
    anomalies: Mapping[str, anomalies_pb2.Anomalies | None]
    schema: schema_pb2.Schema = field(default_factory=schema_pb2.Schema)
    report: Report | None = None
    serving_report: Report | None = None
    int_breaches: Breaches = field(default_factory=dict)
    comparisons: Sequence[Comparison] = ()
    baseline: str | None = None
    baseline_counts: Mapping[str, int] = field(default_factory=dict)
    damaged: Sequence[str] = ()
    sensitive: Collection[str] = ()


def judge(evidence: Evidence, policy: Policy, override: str | None = None) -> Verdict:
    """Returns the verdict.

    Args:
      evidence: the measurements.
      policy: the config's ``validate``.
      override: a person's reason to accept the data anyway; recorded only if the
        verdict fails.
    """
    rows = _ingestion_rows(evidence.report, _OVERALL, policy)
    rows += _ingestion_rows(evidence.serving_report, SERVING, policy)
    rows += _rule(unmeasured_findings(evidence.schema), policy)
    for split in evidence.splits:
        rows += _split_rows(split, evidence, policy)
    if (serving := evidence.statistics.get(SERVING)) is not None:
        if number_of_examples(serving):
            rows += _schema_rows(SERVING, evidence, policy)
        else:
            why = "the files of data.serving hold no examples"
            empty = Finding(
                "count", SERVING, _EXAMPLES, why, limit=1, actual=0, comparison=">="
            )
            rows += _rule([empty], policy)
    for comparison in evidence.comparisons:
        rows += _comparison_rows(comparison, policy)
    rows += [
        Check(_BASELINES, _OVERALL, "readable", None, "damaged", True, why, "warn")
        for why in evidence.damaged
    ]
    verdict = Verdict("data", tuple(rows))
    if verdict.passed or not override:
        return verdict
    return Verdict("data", verdict.rows, override=override)


def _ingestion_rows(report: Report | None, split: str, policy: Policy) -> list[Check]:
    if report is None:
        return []
    findings = ingestion_findings(report, policy.max_corrupt_fraction, split)
    rows = _rule(findings, policy)
    if not any(finding.kind == "corrupt" for finding in findings):
        row = Check(
            check=CORRUPT,
            slice=split,
            limit=policy.max_corrupt_fraction,
            comparison="<=",
            baseline=None,
            actual=report.corrupt_fraction or 0,
            passed=True,
            why=damage(report),
            examples=describe_errors(report.first_errors),
        )
        rows.insert(0, row)
    return rows


def _split_rows(split: str, evidence: Evidence, policy: Policy) -> list[Check]:
    count = number_of_examples(evidence.statistics.get(split))
    least, most = policy.count_range(split)
    if not count:
        # An empty split is one failure, not one per feature that is missing from it.
        why = f"the split {split!r} holds no examples"
        return [replace(_always(_EXAMPLES, split, least, 0, why), comparison=">=")]
    rows = []
    for comparison, limit in ((">=", least), ("<=", most)):
        if limit is None:
            continue
        row = Check(_EXAMPLES, split, limit, None, count, True, comparison=comparison)
        if (row.margin or 0) >= 0:
            rows.append(row)
            continue
        why = f"the split {split!r} holds {count:,} examples"
        finding = Finding(
            "count",
            split,
            _EXAMPLES,
            why,
            limit=limit,
            actual=count,
            comparison=comparison,
        )
        rows += _rule([finding], policy)
    rows += _count_change_rows(split, count, evidence, policy)
    return rows + _schema_rows(split, evidence, policy)


def _count_change_rows(
    split: str, count: int, evidence: Evidence, policy: Policy
) -> list[Check]:
    last = evidence.baseline_counts.get(split)
    if policy.max_count_change is None or not last:
        return []
    check, limit = "change in examples", policy.max_count_change
    change = (count - last) / last
    why = f"{count:,} examples, {last:,} in {evidence.baseline}"
    if abs(change) <= policy.max_count_change:
        row = Check(check, split, limit, last, abs(change), True, why, comparison="<=")
        return [row]
    finding = Finding(
        "count_change",
        split,
        check,
        why,
        limit=limit,
        baseline=last,
        actual=abs(change),
        comparison="<=",
    )
    return _rule([finding], policy)


def _schema_rows(split: str, evidence: Evidence, policy: Policy) -> list[Check]:
    """Returns the rows of a split against the schema."""
    anomalies = evidence.anomalies.get(split)
    if anomalies is None:
        why = "ExampleValidator has left no report on this split"
        return [_always(_ANOMALIES, split, "none", None, why)]
    statistics = evidence.statistics.get(split)
    not_finite = not_finite_findings(split, statistics, evidence.schema)
    breaches = evidence.int_breaches.get(split, {})
    # TFDV's own findings about these are inexact or incomplete.
    counted = {("not_finite", finding.feature) for finding in not_finite}
    counted |= {("out_of_range", name) for name in breaches}
    findings = [
        finding
        for finding in schema_findings(
            split, anomalies, statistics, evidence.sensitive, evidence.schema
        )
        if (finding.kind, finding.feature) not in counted
    ]
    findings += int_range_findings(
        split, breaches, statistics, evidence.sensitive, evidence.schema
    )
    rows = _rule([*findings, *not_finite], policy)
    if anomalies.data_missing:
        rows.append(_always("data", split, "present", "missing", "no data was read"))
    return rows or [Check(_ANOMALIES, split, "none", None, 0, True)]


def _comparison_rows(comparison: Comparison, policy: Policy) -> list[Check]:
    if comparison.findings:
        return _rule(comparison.findings, policy)
    count = comparison.features
    row = Check(
        check=COMPARISON_NAMES[comparison.kind],
        slice=comparison.split,
        limit="as in the schema",
        baseline=comparison.against,
        actual=f"{count} {'feature' if count == 1 else 'features'} compared",
        passed=True,
        why=comparison.closest,
    )
    return [row]


def _rule(findings: Sequence[Finding], policy: Policy) -> list[Check]:
    """Returns a row for each finding, with the policy line that applies."""
    rows = []
    for finding in findings:
        ruling = policy.ruling(finding.kind, finding.feature)
        text, command = remedy(finding.kind)
        found = dict(vars(finding))
        row = Check(
            slice=found.pop("split"),
            **found,
            passed=ruling.action != "fail",
            severity=ruling.action,
            policy=ruling.line,
            remedy=text,
            command=command,
        )
        rows.append(row)
    return rows


def _always(
    check: str, split: str, limit: float | str, actual: float | str | None, why: str
) -> Check:
    return Check(check, split, limit, None, actual, False, why, "fail", _ALWAYS)
