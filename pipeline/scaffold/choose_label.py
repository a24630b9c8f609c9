"""Chooses the label: requested, or likely by its name and values."""

from __future__ import annotations

import re

from pipeline.scaffold.sample import Column, Sample
from sluice.errors import UsageError, did_you_mean

MAX_CLASSES = 1000

_NAMES = frozenset("label labels target targets class y outcome classlabel".split())
_HINTS = _NAMES | frozenset("will flag churn churned fraud spam species".split())
_EXPECTED = (
    f"one whole number or string in every record, from 2 to {MAX_CLASSES:,} classes"
)


def words(name: str) -> list[str]:
    """Returns the words of a feature's name: ``image/classLabel`` has three."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    return [word for word in re.split(r"[\W_]+", spaced.lower()) if word]


def choose_label(sample: Sample, requested: str | None) -> tuple[Column, str]:
    """Returns the label and why it was chosen: the one requested, or the likeliest.

    A name such as label, target or class counts most, then two values; without
    either it is the last feature that can be the label.

    Raises:
      UsageError: the requested feature, or any, cannot be the label.
    """
    columns = sample.columns
    possible = [column for column in columns.values() if _can_be_label(column)]
    names = [column.name for column in possible]
    if requested is not None and requested not in columns:
        raise UsageError(
            f"the records have no feature {requested!r}",
            examples=list(columns),
            hint=did_you_mean(requested, columns),
        )
    if requested in names:
        return columns[requested], "your choice"
    if requested is not None or not possible:
        which = "no feature" if requested is None else f"the feature {requested!r}"
        raise UsageError(
            f"{which} can{'' if requested is None else 'not'} be the label",
            expected=_EXPECTED,
            hint=f"choose another: --label {names[-1]}" if names else None,
        )
    ranks = [_rank(column) for column in possible]
    likeliest, why = max(ranks)
    *others, name = [
        name for name, (rank, _) in zip(names, ranks, strict=True) if rank == likeliest
    ]
    if others:
        shown = " or ".join(others[-3:])
        why += f"; it could also be {shown}: choose with --label"
    return columns[name], why


def _can_be_label(column: Column) -> bool:
    """Whether a feature has one of a few classes in every record."""
    if not column.is_required or column.type == "FLOAT" or column.images:
        return False
    classes = len(column.counts)
    if not 2 <= classes <= min(MAX_CLASSES, column.records / 2):
        return False
    if column.type == "BYTES":
        return column.is_text
    low, high = column.bounds
    return high - low < max(10 * classes, MAX_CLASSES)


def _rank(column: Column) -> tuple[int, str]:
    """Returns how likely a feature is the label, compared with others, and why."""
    named = words(column.name)
    if named and named[-1] in _NAMES:
        return 3, f"its name {'is' if len(named) == 1 else 'ends in'} {named[-1]!r}"
    if hit := next((word for word in named if word in _HINTS), None):
        return 2, f"its name has the word {hit!r}"
    if len(column.counts) == 2:
        return 1, "it has two values"
    return 0, "it is the last feature with a few classes"
