"""Observed properties of features, from statistics or from records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class SplitPresence:
    """In how many records of one split a feature has a value."""

    split: str
    present: int
    records: int

    @property
    def fraction(self) -> float:
        """The part of the records that have it, 0 to 1; there is at least one."""
        return self.present / self.records


@dataclass(frozen=True)
class ObservedFeature:
    """One feature over all splits.

    Attributes:
      name: in the records.
      types: in how many records it has which type: ``INT``, ``FLOAT``, ``BYTES``.
      presence: by split; splits without records are left out.
      values: how many values there are.
      min_values: the fewest values in a record that has it.
      max_values: the most.
      low: the smallest finite number; None for bytes or where it is not known.
      high: the largest finite number.
      nans: how many values are not a number.
      infinities: how many values are infinite; of statistics, at least so many.
      counts: how often each value occurs, of numbers by their text; the most frequent
        first. Empty where values are not told apart.
      distinct: how many different values there are; None where it is not known.
      at_least: there are more than ``distinct``.
      unlisted: how many values are not in ``counts``, as they are too rare or too long.
      not_text: how many values are not UTF-8, of those that are told apart.
    """

    name: str
    types: Mapping[str, int] = field(default_factory=dict)
    presence: tuple[SplitPresence, ...] = ()
    values: int = 0
    min_values: int = 0
    max_values: int = 0
    low: int | float | None = None
    high: int | float | None = None
    nans: int = 0
    infinities: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)
    distinct: int | None = None
    at_least: bool = False
    unlisted: int = 0
    not_text: int = 0

    @property
    def type(self) -> str | None:
        """What most records have; None where no record has a value."""
        return max(self.types, key=self.types.__getitem__) if self.types else None

    @property
    def present(self) -> int:
        return sum(item.present for item in self.presence)

    @property
    def records(self) -> int:
        return sum(item.records for item in self.presence)

    @property
    def always(self) -> bool:
        """Whether every record has it."""
        return 0 < self.records == self.present


@dataclass(frozen=True)
class ObservedData:
    """What was counted.

    Attributes:
      splits: the records of each.
      features: by name.
    """

    splits: Mapping[str, int]
    features: Mapping[str, ObservedFeature]

    @property
    def records(self) -> int:
        return sum(self.splits.values())

    def absent(self, name: str) -> ObservedFeature:
        """Returns a feature that no record has."""
        return ObservedFeature(
            name,
            presence=tuple(
                SplitPresence(split, 0, records)
                for split, records in self.splits.items()
                if records
            ),
        )


def merge_splits(
    splits: Mapping[str, tuple[int, Mapping[str, ObservedFeature]]],
) -> ObservedData:
    """Returns what all splits together show.

    Args:
      splits: the records of each split, and its features; their ``presence`` is not
        read but for the records that have them.
    """
    records = {split: count for split, (count, _) in splits.items()}
    names = dict.fromkeys(name for _, features in splits.values() for name in features)
    features = {}
    for name in names:
        parts = {
            split: found[name] for split, (_, found) in splits.items() if name in found
        }
        presence = tuple(
            SplitPresence(split, parts[split].present if split in parts else 0, count)
            for split, count in records.items()
            if count
        )
        features[name] = replace(_merged(name, list(parts.values())), presence=presence)
    return ObservedData(records, features)


def _merged(name: str, parts: list[ObservedFeature]) -> ObservedFeature:
    types: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    for part in parts:
        types.update(part.types)
        counts.update(part.counts)
    seen = [part for part in parts if part.values]
    lows = [part.low for part in seen if part.low is not None]
    highs = [part.high for part in seen if part.high is not None]
    unlisted = sum(part.unlisted for part in parts)
    known = [part.distinct for part in parts if part.distinct is not None]
    at_least = unlisted > 0 or any(part.at_least for part in parts)
    return ObservedFeature(
        name=name,
        types=types,
        values=sum(part.values for part in parts),
        min_values=min((part.min_values for part in seen), default=0),
        max_values=max((part.max_values for part in seen), default=0),
        low=min(lows, default=None),
        high=max(highs, default=None),
        nans=sum(part.nans for part in parts),
        infinities=sum(part.infinities for part in parts),
        counts=dict(counts.most_common()),
        # Values that are not listed may be the same in two splits.
        distinct=max(max(known), len(counts)) if known else None,
        at_least=at_least and len(known) > 0,
        unlisted=unlisted,
        not_text=sum(part.not_text for part in parts),
    )
