"""Settles on the label: what was asked for, the likeliest, or what somebody answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pipeline.scaffold.label_candidates import (
    LabelCandidate,
    is_ambiguous,
    label_candidate,
    label_candidates,
    named_as_label,
    why_no_label,
)
from pipeline.scaffold.summarize import Summary
from sluice.errors import UsageError, did_you_mean

Ask = Callable[[list[LabelCandidate]], str]
Suggest = Callable[[str], str | None]

_SHOWN = 8


@dataclass(frozen=True)
class ChosenLabel:
    """The label and how it came to be that.

    Attributes:
      name: of the feature.
      why: the reasons; a clause without a full stop.
    """

    name: str
    why: str


def choose_label(
    summary: Summary, asked: str | None, ask: Ask | None, suggest: Suggest
) -> ChosenLabel:
    """Returns the label.

    Args:
      summary: of the records.
      asked: the feature that was named, or None.
      ask: shows features, the likeliest first, and returns the name of one; called
        only where there is a doubt. None: there is nobody to ask.
      suggest: returns the command that takes a feature as the label, for a hint; None
        where that would fail as well.

    Raises:
      UsageError: what was asked for cannot be a label, or there is no telling.
    """
    if asked is not None:
        return _asked(summary, asked, suggest)
    found = label_candidates(summary)
    ambiguous = is_ambiguous(found)
    if found and not (ambiguous and ask):
        why = ", ".join(found[0].reasons)
        if ambiguous:
            others = " or ".join(candidate.name for candidate in found[1:4])
            why += f"; it could also be {others}: say so with --label"
        return ChosenLabel(found[0].name, why)
    possible = found or _possible(summary)
    if ask is None or not possible:
        raise _no_label(summary, possible, suggest)
    return ChosenLabel(ask(possible), "you said so")


def _possible(summary: Summary) -> list[LabelCandidate]:
    """Returns all features that could be a label, the likeliest first."""
    features = summary.features.values()
    able = [label_candidate(f) for f in features if why_no_label(f) is None]
    return sorted(able, key=lambda candidate: (-candidate.score, candidate.name))


def _asked(summary: Summary, label: str, suggest: Suggest) -> ChosenLabel:
    feature = summary.features.get(label)
    if feature is None:
        raise UsageError(
            f"The records have no feature {label!r}.",
            expected="one of " + ", ".join(summary.features),
            hint=did_you_mean(label, summary.features),
        )
    if why := why_no_label(feature):
        raise UsageError(
            f"The feature {label!r} cannot be the label.",
            expected="one whole number or string in every record, from a few classes",
            actual=why,
            hint=_another(_possible(summary), suggest) or _write(label),
        )
    return ChosenLabel(label, "you said so")


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
        "No feature looks like the label.",
        expected="a feature named label, target or class, or with the values 0 and 1",
        actual=f"features that could be: {', '.join(names[:_SHOWN])}{more}"
        if names
        else "no feature with one of a few values in every record",
        examples=[f"{name}: {why}" for name, why in refused.items()],
        hint=hint,
    )


def _another(possible: list[LabelCandidate], suggest: Suggest) -> str | None:
    """Returns the command for the likeliest feature with which it does not fail."""
    commands = (suggest(candidate.name) for candidate in possible[:_SHOWN])
    return next(filter(None, commands), None)


def _write(label: str) -> str:
    return (
        f"write {label!r} into every record as one whole number or string, from a few "
        "classes"
    )
