"""Decides whether to train, from the data of the run and that of the served model."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from components.data_baselines import Entry
from components.model_verdict.judge import BaselineSummary, judge
from components.model_verdict.read_evaluation import Evaluation
from components.model_verdict.settings import EFFECTIVE_EXAMPLES, Settings, Threshold
from components.retrain_decision.settings import Retrain
from components.serving_check.settings import PREDICTION
from components.tfrecord_gen.ingestion_report import FileReport, Report
from schemas.data_statistics import Statistics, features_of
from schemas.distances import Distance, distances_of_all, sizes, with_chance
from sluice.record.verdict import Check, Comparator, Result, Verdict
from sluice.splits import number_of_examples

_REQUEST_DRIFT = "request drift"
_NO_REQUESTS = "no requests since the push are recorded"
_NO_PREDICTIONS = "no answers of it are recorded, or it was pushed without predictions"
_DAY_S, _HOUR_S = 86_400, 3_600


@dataclass(frozen=True)
class Served:
    """The served version, and the data it was trained on.

    Attributes:
      name: such as ``version 3``.
      pushed_at: when.
      data: the entry of its data in the baseline store; None if it is not there.
      statistics: of that data, by split.
      metrics: of it when it was pushed, over all examples.
      newest: of it on the newest span; None if it was not evaluated.
      takes: the features that it takes and that requests are recorded with; one that
        no request has any more is a drift.
      predictions: statistics of its answers to requests, and of those to the split that
        it was judged on; None if one of both is not known.
    """

    name: str
    pushed_at: datetime
    data: Entry | None
    statistics: Mapping[str, Statistics]
    metrics: Mapping[str, float] = field(default_factory=dict)
    newest: Evaluation | None = None
    takes: Collection[str] = ()
    predictions: tuple[Statistics, Statistics] | None = None


def decide(
    settings: Retrain,
    report: Report,
    statistics: Statistics | None,
    served: Served | None,
    now: datetime,
    requests: Statistics | None = None,
) -> Verdict:
    """Returns the verdict: a row for each reason.

    Args:
      settings: the section ``retrain``.
      report: of the ingestion.
      statistics: of the train split.
      served: None if no model is served.
      now: for the age of the served version.
      requests: statistics of the serving requests, if there are any.
    """
    if served is None:
        why = "no model is served yet"
        row = Check(
            check="served model", limit="none", actual="none", result="yes", why=why
        )
        return Verdict("retrain", (row,))
    known = served.data.contents if served.data else ()
    new = [file for file in report.files if file.sha256 not in known]
    rows = [*_rows(settings, new, statistics, served, now, requests)]
    if not sum(file.records for file in new):
        why = f"{served.name} was trained on the same data"
        rows = [replace(row, result="no", why=why) for row in rows]
    hours = (now - served.pushed_at).total_seconds() / _HOUR_S
    if settings.min_interval_h is not None and hours < settings.min_interval_h:
        why = f"{hours:.1f} hours after the push, less than retrain.min_interval_h"
        rows = [replace(row, result="no", why=why) for row in rows]
    return Verdict("retrain", tuple(rows))


def _rows(
    settings: Retrain,
    new: Sequence[FileReport],
    statistics: Statistics | None,
    served: Served,
    now: datetime,
    requests: Statistics | None,
) -> Iterator[Check]:
    if settings.min_new_examples is not None:
        count = sum(file.records for file in new)
        yield _reason(
            "new examples",
            settings.min_new_examples,
            count,
            served.name,
            _spans(new, served) or f"in {len(new):,} files, all their records",
        )
    if settings.drift_above is not None:
        pair = statistics, served.statistics.get("train")
        yield _drift("drift", settings.drift_above, *pair, served.name)
    if (limits := settings.request_drift_above) is not None:
        named = {*limits} if isinstance(limits, dict) else set()
        if named != {PREDICTION}:
            pair = requests, served.statistics.get("train")
            yield _drift(_REQUEST_DRIFT, limits, *pair, served.name, served.takes)
        if served.predictions and (not named or PREDICTION in named):
            limit = limits[PREDICTION] if isinstance(limits, dict) else limits
            yield _drift(_REQUEST_DRIFT, limit, *served.predictions, served.name)
        elif PREDICTION in named:
            check, against = f"{_REQUEST_DRIFT} of {PREDICTION!r}", served.name
            yield Check(check=check, baseline=against, result="no", why=_NO_PREDICTIONS)
    if settings.metric_drop is not None:
        yield from _metrics(settings.metric_drop, served)
    if settings.max_age_days is not None:
        days = (now - served.pushed_at).total_seconds() / _DAY_S
        at = f"pushed on {served.pushed_at:%Y-%m-%d %H:%M} UTC"
        yield _reason(
            "days since the push", settings.max_age_days, days, served.name, at
        )


def _spans(files: Sequence[FileReport], served: Served) -> str:
    """Returns which spans are new, and which the served model has seen otherwise."""
    spans = sorted({file.span for file in files if file.span is not None})
    before = served.data.spans if served.data else ()
    again = [str(span) for span in spans if span in before]
    fresh = [str(span) for span in spans if span not in before]
    said = [f"new spans: {', '.join(fresh)}"] if fresh else []
    said += [f"delivered again: {', '.join(again)}"] if again else []
    return "; ".join(said)


def _drift(
    check: str,
    limits: float | dict[str, float],
    statistics: Statistics | None,
    before: Statistics | None,
    against: str,
    expected: Collection[str] = (),
) -> Check:
    """Returns a row of the feature that is closest to its limit, or furthest above.

    Requests need not have all features, such as the label, but the ``expected`` ones.
    """
    distances = []
    if check == _REQUEST_DRIFT and not number_of_examples(statistics):
        return Check(check=check, baseline=against, result="no", why=_NO_REQUESTS)
    if statistics is not None and before is not None:
        left_out: set[str] = set()
        if check == _REQUEST_DRIFT:
            left_out = {*features_of(before)} - {*features_of(statistics), *expected}
        distances = [*distances_of_all(statistics, before, left_out)]
    known = (
        limits if isinstance(limits, dict) else {x.feature: limits for x in distances}
    )
    distances = [
        with_chance(replace(item, limit=known[item.feature]), statistics, before)
        for item in distances
        if item.feature in known
    ]
    if statistics is None or before is None:
        why = f"the data of {against} is not known"
        limit = min(known.values(), default=1.0)
        return _reason(check, limit, 1.0, against, why)
    if not distances:
        why = "the data has none of the features that are to be compared"
        return Check(check=check, baseline=against, result="no", why=why)

    def rank(item: Distance) -> tuple[bool, float]:
        return not item.is_by_chance, item.distance / max(known[item.feature], 1e-9)

    worst = max(distances, key=rank)
    limit, name = known[worst.feature], f"{check} of {worst.feature!r}"
    why = f"{worst.measure}; {sizes(statistics, before, worst)}"
    row = _reason(name, limit, worst.distance, against, why)
    row = replace(row, feature=worst.feature)
    return replace(row, result="no") if worst.is_by_chance else row


def _metrics(thresholds: tuple[Threshold, ...], served: Served) -> Iterator[Check]:
    """Yields a row per limit of the served model: to miss it is a reason.

    A model that could not be evaluated, such as one that ``sluice gc`` has deleted, is
    one, too.
    """
    if served.newest is None or not served.newest.metrics:
        why = f"{served.name} could not be evaluated on the newest span"
        yield Check(check="metrics", baseline=served.name, result="yes", why=why)
        return
    settings = Settings(thresholds=thresholds, classes=(), split="test")
    newest = served.newest.metrics.get((), {})
    # Weighted now and not when it was pushed, or the other way round.
    differs = (EFFECTIVE_EXAMPLES in newest) != (EFFECTIVE_EXAMPLES in served.metrics)
    before = Evaluation({(): {} if differs else served.metrics})
    about = BaselineSummary(name=served.name)
    reverse: dict[str | None, Comparator] = {">=": "<=", "<=": ">="}
    # The last row is about the baseline.
    for row in judge(settings, served.newest, before, about).rows[:-1]:
        comparison = reverse.get(row.comparison)
        is_missed = comparison is not None and not row.passed
        result: Result = "yes" if is_missed else "no"
        yield replace(row, comparison=comparison, result=result)


def _reason(check: str, limit: float, actual: float, against: str, why: str) -> Check:
    return Check(
        check=check,
        limit=limit,
        comparison=">=",
        baseline=against,
        actual=actual,
        result="yes" if actual >= limit else "no",
        why=why,
    )
