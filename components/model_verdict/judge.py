"""Model gate decision: applies thresholds to metrics.

Bounds and changes are inclusive, as in TFMA's validator
(evaluators/metrics_validator.py). A slice that a threshold names must exist and be
large enough, otherwise the threshold fails. Of a threshold on every value of a feature,
values with too few examples pass and are listed as not judged.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from components.model_verdict.read_evaluation import Evaluation, SliceKey
from components.model_verdict.settings import Settings, Threshold
from sluice.config_section import Section
from sluice.numbers import number_text, signed_text
from sluice.record.verdict import BETTER_THAN_REFERENCE, Check, Comparator, Verdict
from sluice.uncertainty import (
    MIN_EXAMPLES,
    Interval,
    SliceEstimates,
    Uncertainty,
    examples_to_decide,
    may_be_chance,
)

_REFERENCE = "a constant prediction"
_MAX_NAMED = 3
# A number beyond which more examples are no advice.
_MAX_EXAMPLES = 1e9


class SkippedModel(Section):
    """A blessed model, newer than the baseline, that was skipped.

    Attributes:
      name: display name.
      why: such as ``retired: wrong labels``.
      retired: whether a person retired it; False if its files are gone.
    """

    name: str
    why: str
    retired: bool


class BaselineSummary(Section):
    """The model that the candidate is compared with, and newer ones that were skipped.

    Attributes:
      pipeline: name of the pipeline; empty where no driver made the summary.
      name: display name of the baseline; None if there is none.
      older: display names of models before it, the newest first.
      is_candidate: whether the latest blessed model is the candidate itself.
      skipped: newer blessed models, newest first.
      retired: the candidate and why a person retired it; empty if it is not retired.
    """

    pipeline: str = ""
    name: str | None = None
    older: tuple[str, ...] = ()
    is_candidate: bool = False
    skipped: tuple[SkippedModel, ...] = ()
    retired: str = ""

    @property
    def is_lost(self) -> bool:
        """Whether there is no baseline because its files are gone."""
        nothing = self.name is None and not self.is_candidate
        return nothing and any(not item.retired for item in self.skipped)

    @property
    def why_none(self) -> str:
        """The reason why there is no comparison with a baseline."""
        if self.is_candidate:
            return "not compared: this model is the latest blessed one itself"
        if self.name is not None:  # The Evaluator leaves it out.
            return "not compared: the baseline has other classes or targets"
        if self.is_lost:
            first = f"sluice models retire {self.pipeline} artifact:ID --reason WHY"
            if not self.pipeline:  # In a service: there is no driver.
                first = "leave the thresholds with change out of this run's config"
            return (
                "the baseline is lost; restore its files, or let this model be the "
                f"first: {first}"
            )
        if self.skipped:
            return "no baseline: all models blessed before are retired"
        return "no baseline: no model was blessed before this one"

    def row(self) -> Check | None:
        """Returns the verdict's row about the baseline, None without any."""
        if self.name is None and not self.skipped:
            return None
        skipped = "; ".join(f"{item.name} is {item.why}" for item in self.skipped)
        prefix = "an older model is used: " if self.name and skipped else ""
        name, _, artifact = (self.name or "none").partition(" (")
        name = "this model itself" if self.is_candidate else name
        older = ", ".join(self.older)
        parts = [artifact.removesuffix(")"), prefix + skipped]
        parts += [f"'over: best' also compares with {older}"] if older else []
        why = "; ".join(filter(None, parts))
        return Check(check="baseline", baseline=name, why=why)


def judge(
    settings: Settings,
    candidate: Evaluation,
    baseline: Evaluation | None,
    about: BaselineSummary,
) -> Verdict:
    """Returns the verdict of the model gate.

    Args:
      settings: with the thresholds, in the order of the config.
      candidate: metrics of the new model.
      baseline: metrics of the latest blessed model; None if there is none.
      about: summary of the baseline.
    """
    rows: list[Check] = []
    if about.retired:
        ways = "train another with new data, config or code, or with --force Trainer"
        why = f"{about.retired}; {ways}"
        rows.append(Check(check="retired model", result="FAIL", why=why))
    if settings.split != "test":
        why = f"there is no test split, so the model is judged on {settings.split!r}"
        rows.append(Check(check="split", actual=settings.split, why=why))
    if not settings.thresholds:
        why = "the config sets no threshold, so nothing holds a model back"
        rows.append(Check(check="thresholds", actual="none", why=why))
    for threshold in settings.thresholds:
        rows += _rows(threshold, candidate, baseline, about)
    # Where a threshold is missed, it says the same.
    is_new = all(row.passed for row in rows)
    if row := _one_class(candidate) or (_no_better(candidate) if is_new else None):
        rows.append(row)
    if row := _not_finite(candidate):
        rows.append(row)
    if row := about.row():
        rows.append(row)
    return Verdict("model", tuple(rows))


def _rows(
    threshold: Threshold,
    candidate: Evaluation,
    baseline: Evaluation | None,
    about: BaselineSummary,
) -> Iterator[Check]:
    metric, limits = threshold.metric, [*_limits(threshold)]
    on_each_value = isinstance(threshold.slice, tuple)
    for name, key in _slices(threshold, candidate):
        actual = candidate.metrics[key].get(metric) if key is not None else None
        small = "" if key is None else _too_small(threshold, candidate, key)
        counts = candidate.examples_per_class.get(key or (), {})
        lacking = ", ".join([x for x, count in counts.items() if not count][:5])
        lacks = f"; there is no example of class {lacking}" if lacking else ""
        if key is not None and not small and actual is not None:
            known = baseline.metrics.get(key, {}) if baseline else {}
            found = candidate.estimates.get(key or (), SliceEstimates())
            uncertain = found.known(metric, actual)
            if threshold.better_than:
                yield _better(metric, name, actual, uncertain, found.examples)
            for limit in limits:
                row = replace(limit, slice=name, actual=actual)
                model, before = "baseline", known.get(metric)
                is_over_best = threshold.change and threshold.change.over == "best"
                if row.measure and is_over_best and uncertain and before is not None:
                    model, before = uncertain.best(actual, before)
                row = _judged(row, before, baseline, about)
                if uncertain:
                    row = _with_chance(row, uncertain, found.examples, model)
                # TFMA's AUC of such a class is 0, and lowers the mean over classes.
                yield row if row.passed else replace(row, why=row.why + lacks)
            continue
        why = f"the metric has no value on this slice{lacks}"
        if key is None:
            why = "no example is in it"
        elif small:
            why = f"not judged: {small}" if on_each_value else small
        may_pass = bool(small) and on_each_value
        yield Check(
            check=metric,
            slice=name,
            limit=", ".join(row.limit_text or "" for row in limits),
            actual=actual if may_pass else None,
            result="pass" if may_pass else "FAIL",
            why=why,
        )


def _slices(
    threshold: Threshold, candidate: Evaluation
) -> Iterator[tuple[str, SliceKey | None]]:
    """Yields name and key of each slice of a threshold; no key if it has no example."""
    if isinstance(threshold.slice, tuple):
        wanted = set(threshold.slice)
        keys = [key for key in candidate.metrics if {name for name, _ in key} == wanted]
        for key in sorted(keys):
            yield slice_name(key), key
        if not keys:
            yield " x ".join(threshold.slice), None
        return
    named = (threshold.slice or {}).items()
    wanted_key = tuple(sorted((name, str(value)) for name, value in named))
    by_sorted_key = {tuple(sorted(key)): key for key in candidate.metrics}
    known = by_sorted_key.get(wanted_key)
    yield slice_name(wanted_key if known is None else known), known


def slice_name(key: SliceKey) -> str:
    """Returns the display name of a slice, such as ``payment_type: Cash``."""
    return ", ".join(f"{name}: {value}" for name, value in key) or "overall"


def _too_small(threshold: Threshold, candidate: Evaluation, key: SliceKey) -> str:
    """Returns why a slice is too small to be judged; empty if it is not."""
    minimum = threshold.min_examples_per_class
    if minimum is None:
        return ""
    counts = candidate.examples_per_class.get(key, {})
    few = [f"{n} of class {name}" for name, n in counts.items() if n < minimum]
    if not counts:
        return f"examples per class are unknown, {minimum} needed"
    return f"only {', '.join(few)}; {minimum} of each needed" if few else ""


def _limits(threshold: Threshold) -> Iterator[Check]:
    """Yields a row for each limit, without values."""
    metric, change = threshold.metric, threshold.change
    limits: list[tuple[float | None, Comparator, str | None]] = [
        (threshold.lower_bound, ">=", None),
        (threshold.upper_bound, "<=", None),
    ]
    if change is not None:
        sign: Comparator = ">=" if change.direction == "higher_is_better" else "<="
        limits += [(change.absolute, sign, "absolute")]
        limits += [(change.relative, sign, "relative")]
    for limit, comparison, measure in limits:
        if limit is not None:
            yield Check(
                check=f"{metric} change" if measure else metric,
                limit=limit,
                comparison=comparison,
                measure=measure,
            )


def _judged(
    row: Check,
    before: float | None,
    baseline: Evaluation | None,
    about: BaselineSummary,
) -> Check:
    """Returns a row with its outcome, given the baseline's value if there is one."""
    if row.measure and before is None:
        if baseline is None or not baseline.metrics:
            return replace(
                row, result="FAIL" if about.is_lost else "pass", why=about.why_none
            )
        return replace(row, why="the baseline has no value for it on this slice")
    row = replace(row, baseline=before)
    margin = row.margin or 0.0
    why = (
        f"{row.measure} change {signed_text(row.compared or 0)}" if row.measure else ""
    )
    if not row.measure and margin < 0:
        why = f"misses the limit by {number_text(-margin)}"
    return replace(row, result="pass" if row.is_within else "FAIL", why=why)


def _with_chance(row: Check, known: Uncertainty, examples: int, model: str) -> Check:
    """Returns a judged row with its interval, and what may be chance.

    Args:
      row: of a bound or a change.
      known: of the metric.
      examples: of the slice.
      model: from which the change is.
    """
    if row.measure and model != "baseline":
        row = replace(row, why=f"{row.why} from the best served model ({model})")
    row = replace(row, reference=None if row.measure else known.reference)
    offsets = known.changes.get(model) if row.measure else known.interval
    value, limit = row.compared, row.limit
    if offsets is None or value is None or not isinstance(limit, int | float):
        return row
    unit = 1.0
    if row.measure == "relative":
        unit = abs(row.baseline) if isinstance(row.baseline, float) else 0.0
    if not unit:
        return row
    offsets = offsets[0] / unit, offsets[1] / unit
    low, high = value + offsets[0], value + offsets[1]
    row = replace(row, interval=(low, high))
    if row.measure:
        is_worse = value < 0 if row.comparison == ">=" else value > 0
        if is_worse and may_be_chance(value, offsets, examples):
            text = _examples(examples)
            row = replace(row, why=f"{row.why}, which may be chance with {text}")
        return row
    if not low <= limit <= high:
        return row
    result = "warn" if row.passed else row.result
    why = "; ".join(
        filter(None, (row.why, _undecided(value, (low, high), limit, examples)))
    )
    return replace(row, result=result, why=why)


def _undecided(value: float, interval: Interval, limit: float, examples: int) -> str:
    low, high = map(number_text, interval)
    text = f"the limit {limit:g} lies within the 95 % interval {low} to {high}"
    needed = examples_to_decide(value, interval, limit, examples)
    if needed < _MAX_EXAMPLES:
        text += f": about {_examples(int(float(f'{needed:.2g}')))} would decide"
    return text


def _examples(count: int) -> str:
    return f"{count:,} example{'' if count == 1 else 's'}"


def _better(
    metric: str,
    where: str,
    actual: float,
    known: Uncertainty | None,
    examples: int,
) -> Check:
    """Returns the row of ``better_than``, which warns of too few examples."""
    row = Check(check=metric, slice=where, limit=BETTER_THAN_REFERENCE, actual=actual)
    if known is None or known.reference is None:
        few = f"only {_examples(examples)}, {MIN_EXAMPLES} are needed"
        why = few if examples < MIN_EXAMPLES else f"{_REFERENCE} has no value for it"
        return replace(row, result="warn", why=f"not judged: {why}")
    row = replace(row, reference=known.reference)
    if known.beats_reference(actual):
        return row
    return replace(row, result="FAIL", why=_against(known, actual))


def _against(known: Uncertainty, actual: float) -> str:
    """Says how a value that is not better stands against the reference."""
    is_worse = (actual - (known.reference or 0.0)) * known.sign <= 0
    why = "no better" if is_worse else "the difference may be chance"
    reference = number_text(known.reference or 0.0)
    return f"{number_text(actual)} against {reference} of {_REFERENCE}: {why}"


def _not_finite(candidate: Evaluation) -> Check | None:
    """Returns a failure if there are examples that all metrics leave out."""
    known = candidate.estimates.get((), SliceEstimates())
    if not known.not_finite:
        return None
    total = _examples(known.not_finite + known.examples)
    why = f"NaN or infinity is predicted for {known.not_finite:,} of {total}"
    return Check(check="predictions", result="FAIL", why=why)


def _one_class(candidate: Evaluation) -> Check | None:
    """Returns a warning of a model that predicts one of several classes for all."""
    known = candidate.estimates.get((), SliceEstimates())
    counts = [*candidate.examples_per_class.get((), {}).items()]
    predicted = [i for i, count in enumerate(known.predicted) if count]
    if len(predicted) != 1 or len([n for _, n in counts if n]) < 2:
        return None
    name = counts[predicted[0]][0]
    others = [f"{x!r} is 0 of {n:,}" for x, n in counts if n and x != name]
    what = f"predicts {name!r} for all {_examples(known.examples)}"
    why = f"{what}; recall of {', '.join(others[:_MAX_NAMED])}"
    return Check(check="model", result="warn", why=why)


def _no_better(candidate: Evaluation) -> Check | None:
    """Returns a warning if no metric is better than the reference's beyond chance."""
    known = candidate.estimates.get((), SliceEstimates())
    values = candidate.metrics.get((), {})
    judged = {
        name: item
        for name in known.metrics
        if (item := known.known(name, values.get(name))) and item.gain is not None
    }
    if not judged or any(x.beats_reference(values[name]) for name, x in judged.items()):
        return None
    texts = [f"{name} {_against(item, values[name])}" for name, item in judged.items()]
    why = "; ".join(texts[:_MAX_NAMED])
    return Check(check="reference", result="warn", why=why)
