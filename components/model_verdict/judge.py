"""Model gate decision: applies thresholds to metrics.

Bounds and changes are inclusive, as in TFMA's validator
(evaluators/metrics_validator.py). A slice that a threshold names must exist and be
large enough, otherwise the threshold fails. Of a threshold on every value of a feature,
values with too few examples pass and are listed as not judged.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from components.model_verdict.baseline_summary import BaselineSummary
from components.model_verdict.threshold import Threshold
from sluice.record.verdict import Check, Verdict

SliceKey = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Evaluation:
    """Metrics of one model by slice.

    Attributes:
      metrics: slice -> metric name -> value.
      examples_per_class: slice -> class name -> number of examples.
    """

    metrics: Mapping[SliceKey, Mapping[str, float]]
    examples_per_class: Mapping[SliceKey, Mapping[str, int]] = field(
        default_factory=dict
    )


def judge(
    thresholds: Sequence[Threshold],
    candidate: Evaluation,
    baseline: Evaluation | None,
    split: str,
    compared_with: BaselineSummary | None = None,
) -> Verdict:
    """Returns the verdict of the model gate.

    Args:
      thresholds: the limits, in the order of the config.
      candidate: metrics of the new model.
      baseline: metrics of the latest blessed model; None if there is none.
      split: the split that was evaluated. Any but ``test`` is mentioned in the verdict,
        since ``eval`` also selected the model.
      compared_with: summary of the baseline; None if nothing is known of it.
    """
    rows: list[Check] = []
    compared_with = compared_with or BaselineSummary()
    if split != "test":
        why = f"there is no test split, so the model is judged on {split!r}"
        rows.append(Check("split", "overall", None, None, split, True, why))
    if not thresholds:
        why = "the config sets no threshold, so nothing holds a model back"
        rows.append(Check("thresholds", "overall", None, None, "none", True, why))
    for threshold in thresholds:
        rows += _rows(threshold, _Compared(candidate, baseline, compared_with))
    if row := compared_with.row():
        rows.append(row)
    return Verdict("model", tuple(rows))


def slice_name(key: SliceKey) -> str:
    """Returns the display name of a slice, such as ``payment_type: Cash``."""
    return ", ".join(f"{name}: {value}" for name, value in key) or "overall"


@dataclass(frozen=True)
class _Compared:
    """Metrics of both models, and the summary of the baseline; see ``judge``."""

    candidate: Evaluation
    baseline: Evaluation | None
    compared_with: BaselineSummary

    @property
    def why_none(self) -> str:
        """The reason why there is no baseline value."""
        if self.baseline is None:
            return self.compared_with.why_none
        return "the baseline has no value for it on this slice"


def _rows(threshold: Threshold, models: _Compared) -> Iterator[Check]:
    candidate = models.candidate
    if isinstance(threshold.slice, tuple):
        wanted = set(threshold.slice)
        keys = sorted(
            key for key in candidate.metrics if {name for name, _ in key} == wanted
        )
        if not keys:
            name = " x ".join(threshold.slice)
            yield _unmeasured(threshold, name, "no example has these features")
        for key in keys:
            if small := _too_small(threshold, candidate, key):
                actual = candidate.metrics[key].get(threshold.metric)
                why = f"not judged: {small}"
                limit, name = _limits(threshold), slice_name(key)
                yield Check(threshold.metric, name, limit, None, actual, True, why)
            else:
                yield from _judge_slice(threshold, key, models)
        return
    wanted_key = tuple(
        sorted((name, str(value)) for name, value in (threshold.slice or {}).items())
    )
    by_sorted_key = {tuple(sorted(key)): key for key in candidate.metrics}
    found = by_sorted_key.get(wanted_key)
    if found is None:
        yield _unmeasured(threshold, slice_name(wanted_key), "no example is in it")
    elif small := _too_small(threshold, candidate, found):
        yield _unmeasured(threshold, slice_name(found), small)
    else:
        yield from _judge_slice(threshold, found, models)


def _too_small(
    threshold: Threshold, candidate: Evaluation, key: SliceKey
) -> str | None:
    minimum = threshold.min_examples_per_class
    if minimum is None:
        return None
    counts = candidate.examples_per_class.get(key, {})
    few = [f"{n} of class {name}" for name, n in counts.items() if n < minimum]
    if not counts:
        return f"examples per class are unknown, {minimum} needed"
    return f"only {', '.join(few)}; {minimum} of each needed" if few else None


def _unmeasured(threshold: Threshold, name: str, why: str) -> Check:
    limit = _limits(threshold)
    return Check(threshold.metric, name, limit, None, None, False, why)


def _judge_slice(
    threshold: Threshold,
    key: SliceKey,
    models: _Compared,
) -> Iterator[Check]:
    actual = models.candidate.metrics[key].get(threshold.metric)
    name = slice_name(key)
    if actual is None or math.isnan(actual):
        yield _unmeasured(threshold, name, "the metric has no value on this slice")
        return
    before = None
    if models.baseline is not None:
        before = models.baseline.metrics.get(key, {}).get(threshold.metric)
    for bound in _bounds(threshold):
        row = replace(bound, slice=name, baseline=before, actual=actual)
        margin = row.margin or 0.0
        why = "" if margin >= 0 else f"misses the limit by {-margin:.4f}"
        yield replace(row, passed=margin >= 0, why=why)
    for bound in _change_limits(threshold):
        row = replace(bound, slice=name, actual=actual)
        if before is None or math.isnan(before):
            is_lost = models.baseline is None and models.compared_with.is_lost
            yield replace(row, passed=not is_lost, why=models.why_none)
            continue
        row = replace(row, baseline=before)
        why = f"{row.measure} change {row.compared:+.4f}"
        yield replace(row, passed=(row.margin or 0.0) >= 0, why=why)


def _limits(threshold: Threshold) -> str:
    """Returns all limits of a threshold that is not judged."""
    texts = [row.limit_text or "" for row in _bounds(threshold)]
    for row in _change_limits(threshold):
        texts.append(f"{row.measure} change {row.comparison} {row.limit:g}")
    return ", ".join(texts)


def _bounds(threshold: Threshold) -> Iterator[Check]:
    """Yields a row for each bound, without values."""
    bounds: tuple[tuple[float | None, str], ...] = (
        (threshold.lower_bound, ">="),
        (threshold.upper_bound, "<="),
    )
    for limit, comparison in bounds:
        if limit is not None:
            yield Check(
                threshold.metric, "", limit, None, None, True, comparison=comparison
            )


def _change_limits(threshold: Threshold) -> Iterator[Check]:
    """Yields a row for each limit on the change, without values."""
    if (change := threshold.change) is None:
        return
    for measure, limit in (
        ("absolute", change.absolute),
        ("relative", change.relative),
    ):
        if limit is not None:
            yield Check(
                check=f"{threshold.metric} change",
                slice="",
                limit=limit,
                baseline=None,
                actual=None,
                passed=True,
                comparison=">=" if change.direction == "higher_is_better" else "<=",
                measure=measure,
            )
