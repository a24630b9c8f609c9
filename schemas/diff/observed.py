"""What data shows of its features, wherever that was counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


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
class Observed:
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
