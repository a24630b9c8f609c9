"""Observed properties of features, from statistics or from records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class SplitPresence:
    """Number of records of one split in which a feature has a value."""

    split: str
    present: int
    records: int

    @property
    def fraction(self) -> float:
        """The fraction of records that have it, 0 to 1."""
        return self.present / self.records


@dataclass(frozen=True)
class ObservedFeature:
    """One feature over all splits.

    Attributes:
      name: of the feature.
      types: number of records by type: ``INT``, ``FLOAT``, ``BYTES``.
      presence: by split; splits without records are left out.
      values: number of values.
      min_values: the fewest values in a record that has it.
      max_values: the most.
      low: the smallest finite number; None for bytes or if unknown.
      high: the largest finite number.
      nans: number of NaN values.
      infinities: number of infinities; from statistics, a lower bound.
      counts: occurrences of each value, most frequent first; numbers as text. Empty if
        values are not counted.
      distinct: number of distinct values; None if unknown.
      at_least: whether ``distinct`` is only a lower bound.
      unlisted: number of values not in ``counts``, as too rare or too long.
      not_text: number of counted values that are not UTF-8.
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
        """The type of most records; None if no record has a value."""
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
    """Number of records by split, and the features by name."""

    splits: Mapping[str, int]
    features: Mapping[str, ObservedFeature]

    @property
    def records(self) -> int:
        return sum(self.splits.values())

    def absent(self, name: str) -> ObservedFeature:
        """Returns a feature that is in no record."""
        presence = [SplitPresence(split, 0, n) for split, n in self.splits.items() if n]
        return ObservedFeature(name, presence=tuple(presence))


def merge_splits(
    splits: Mapping[str, tuple[int, Mapping[str, ObservedFeature]]],
) -> ObservedData:
    """Returns the observed data over all splits.

    Args:
      splits: number of records and features of each split; of a feature's ``presence``
        only the number of records that have it is used.
    """
    records = {split: count for split, (count, _) in splits.items()}
    names = dict.fromkeys(name for _, features in splits.values() for name in features)
    features = {}
    for name in names:
        parts = {key: item[name] for key, (_, item) in splits.items() if name in item}
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
        # Unlisted values may be the same in several splits.
        distinct=max(max(known), len(counts)) if known else None,
        at_least=at_least and len(known) > 0,
        unlisted=unlisted,
        not_text=sum(part.not_text for part in parts),
    )
