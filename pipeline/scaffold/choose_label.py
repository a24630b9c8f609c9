"""Chooses the label: requested, or most likely.

A name such as label, target or class counts most. If no feature has such a name, a
required feature with the two values 0 and 1 is a candidate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pipeline.scaffold.semantic_type import share, unusable, words
from pipeline.scaffold.summarize import FeatureSummary, Summary
from sluice.errors import UsageError, did_you_mean

MAX_CLASSES = 1000
# Minimum score of a candidate, and its minimum lead over the next to be chosen.
ENOUGH = 30
CLEAR_LEAD = 15

_NAMES = frozenset("label labels target targets class y outcome classlabel".split())
_HINTS = frozenset("will flag churn churned fraud spam species".split())
# Weak evidence: is_fraud is a label, is_mobile a feature.
_QUESTIONS = frozenset("is has was".split())
_TEXTS = frozenset("text name names string str display".split())


@dataclass(frozen=True)
class LabelCandidate:
    """A feature that could be the label, with a score and what it is made of.

    Scores are comparable within one data set; ``classes`` is the number of values.
    """

    name: str
    score: int
    reasons: tuple[str, ...]
    classes: int


def label_candidates(summary: Summary, min_score: int = ENOUGH) -> list[LabelCandidate]:
    """Returns the features that can be the label, the likeliest first."""
    features = summary.features.values()
    found = [label_candidate(item) for item in features if why_no_label(item) is None]
    likely = [candidate for candidate in found if candidate.score >= min_score]
    return sorted(likely, key=lambda candidate: (-candidate.score, candidate.name))


def label_candidate(feature: FeatureSummary) -> LabelCandidate:
    """Returns a feature that can be a label, with its score and reasons."""
    score, reasons = _by_name(words(feature.name))
    if set(feature.counts) == {0, 1}:
        score += 30
        reasons.append("its values are 0 and 1")
    elif feature.distinct == 2:
        score += 20
        reasons.append("it has two values")
    elif feature.kind == "int" and feature.low in (0, 1) and _is_dense(feature):
        score += 15
        reasons.append(f"its values run from {feature.low} to {feature.high}")
    elif feature.distinct <= 20:
        score += 5
        reasons.append(f"it has few values ({feature.distinct})")
    return LabelCandidate(feature.name, score, tuple(reasons), feature.distinct)


def why_no_label(feature: FeatureSummary) -> str | None:
    """Returns why a feature cannot be the label, None if it can."""
    if feature.kind is None:
        return "no record has a value"
    if semantic_type := unusable(feature):
        return semantic_type.why
    if not feature.always:
        return f"it is in {share(feature)}, and the label must be in all"
    if feature.kind == "float":
        return "it is FLOAT; classes are whole numbers or strings"
    if feature.images:
        return "it is an image"
    if feature.many or feature.distinct > MAX_CLASSES:
        more = f"more than {min(feature.distinct, MAX_CLASSES):,} values"
        return f"it has {more}; the label must be categorical"
    if feature.distinct < 2:
        return "it has only one value"
    if feature.kind == "bytes":
        return "its values are not text" if feature.not_text else None
    width = _width(feature)
    if width > max(10 * feature.distinct, MAX_CLASSES):
        return f"its {feature.distinct:,} values are spread over {width:,} numbers"
    return None


def named_as_label(feature: FeatureSummary) -> bool:
    """Whether a feature has the name of a label, whatever its values."""
    return _by_name(words(feature.name))[0] >= ENOUGH


def _by_name(name: list[str]) -> tuple[int, list[str]]:
    if not name:
        return 0, []
    *before, last = name
    if last in _NAMES:
        verb = "ends in" if before else "is"
        return (40 if before else 60), [f"its name {verb} {last!r}"]
    if last in _TEXTS and _NAMES & set(before):
        # image/class/text beside image/class/label.
        return 30, ["it looks like the names of a label's classes"]
    if hit := next((word for word in name if word in _NAMES), None):
        return 30, [f"its name has the word {hit!r}"]
    if hit := next((word for word in name if word in _HINTS), None):
        return 15, [f"its name has the word {hit!r}"]
    if name[0] in _QUESTIONS:
        return 5, [f"its name begins with {name[0]!r}"]
    return 0, []


def _width(feature: FeatureSummary) -> int:
    return int(feature.high or 0) - int(feature.low or 0) + 1


def _is_dense(feature: FeatureSummary) -> bool:
    return feature.distinct >= 0.9 * _width(feature)


Suggest = Callable[[str], str | None]

_SHOWN = 8


@dataclass(frozen=True)
class ChosenLabel:
    """The label, and why it was chosen: a clause without a full stop."""

    name: str
    why: str


def choose_label(
    summary: Summary, requested: str | None, suggest: Suggest
) -> ChosenLabel:
    """Returns the label: the one requested, or else the likeliest.

    Hints have the command that takes a feature as the label, as ``suggest`` returns it;
    None where that would fail as well.

    Raises:
      UsageError: the requested feature cannot be the label, or no feature looks like
        one.
    """
    if requested is not None:
        return _check_requested(summary, requested, suggest)
    found = label_candidates(summary)
    if not found:
        raise _no_label(summary, label_candidates(summary, min_score=0), suggest)
    why = ", ".join(found[0].reasons)
    if len(found) > 1 and found[0].score - found[1].score < CLEAR_LEAD:
        others = " or ".join(candidate.name for candidate in found[1:4])
        why += f"; it could also be {others}: choose with --label"
    return ChosenLabel(found[0].name, why)


def _check_requested(summary: Summary, label: str, suggest: Suggest) -> ChosenLabel:
    feature = summary.features.get(label)
    if feature is None:
        raise UsageError(
            f"the records have no feature {label!r}",
            expected="one of " + ", ".join(summary.features),
            hint=did_you_mean(label, summary.features),
        )
    if why := why_no_label(feature):
        raise UsageError(
            f"the feature {label!r} cannot be the label",
            expected="one whole number or string in every record, from a few classes",
            actual=why,
            hint=_another(label_candidates(summary, min_score=0), suggest)
            or _write(label),
        )
    return ChosenLabel(label, "your choice")


def _no_label(
    summary: Summary, possible: list[LabelCandidate], suggest: Suggest
) -> UsageError:
    refused = {
        feature.name: why
        for feature in summary.features.values()
        if named_as_label(feature) and (why := why_no_label(feature))
    }
    names = [candidate.name for candidate in possible]
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    correct = _write(next(iter(refused), "label"))
    another = _another(possible, suggest)
    if another and refused:
        hint = f"{correct}; or predict another feature: {another}"
    else:
        hint = another or correct
    return UsageError(
        "no feature looks like the label",
        expected="a feature named label, target or class, or with the values 0 and 1",
        actual=f"features that could be: {', '.join(names[:_SHOWN])}{more}"
        if names
        else "no feature with one of a few values in every record",
        examples=[f"{name}: {why}" for name, why in refused.items()],
        hint=hint,
    )


def _another(possible: list[LabelCandidate], suggest: Suggest) -> str | None:
    """Returns the command for the likeliest feature that it works with."""
    commands = (suggest(candidate.name) for candidate in possible[:_SHOWN])
    return next(filter(None, commands), None)


def _write(label: str) -> str:
    return (
        f"write {label!r} into every record as one whole number or string, from a few "
        "classes"
    )
