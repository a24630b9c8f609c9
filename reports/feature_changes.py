"""Compares the statistics of each feature in two runs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from reports.feature_statistics import FeatureStatistics, statistics
from reports.read_run import RunData
from reports.run_values import Change, changes


@dataclass(frozen=True)
class FeatureChange:
    """A feature of a split whose statistics differ.

    Attributes:
      split: its split.
      feature: its name.
      shift: how far the values have moved, for the order of a table: the largest of
        the change of the mean in standard deviations, of the fraction of examples
        without the feature, and of the fraction of a value; infinite for a feature that
        only one run has or that has another type.
      statistics: the statistics that differ; ``top value`` is the most frequent one.
    """

    split: str
    feature: str
    shift: float
    statistics: tuple[Change, ...]


def feature_changes(before: RunData, after: RunData) -> tuple[FeatureChange, ...]:
    """Returns the features whose statistics differ, the largest shift first."""
    old, new = _by_feature(before), _by_feature(after)
    if not old or not new:
        return ()
    found = []
    for key in {**old, **new}:
        was, now = old.get(key), new.get(key)
        values = changes(_values(was), _values(now))
        if values:
            found.append(FeatureChange(*key, _shift(was, now), values))
    return tuple(sorted(found, key=lambda item: -item.shift))


def _by_feature(run: RunData) -> dict[tuple[str, str], FeatureStatistics]:
    found: dict[tuple[str, str], FeatureStatistics] = {}
    for split in statistics(run):
        for feature in split.features:
            found.setdefault((split.split, feature.name), feature)
    return found


def _values(feature: FeatureStatistics | None) -> dict[str, Any]:
    if feature is None:
        return {}
    names = ("type", "present", "missing", "min_values", "max_values")
    values = {name: getattr(feature, name) for name in names} | feature.numbers
    if top := next(iter(feature.top_values), None):
        values["top value"] = top
    return values


def _shift(before: FeatureStatistics | None, after: FeatureStatistics | None) -> float:
    if before is None or after is None or before.type != after.type:
        return math.inf
    missing = [item.missing / _examples(item) for item in (before, after)]
    shifts = [abs(missing[1] - missing[0])]
    shares = [_shares(item) for item in (before, after)]
    shifts += [
        abs(shares[1].get(value, 0.0) - shares[0].get(value, 0.0))
        for value in {**shares[0], **shares[1]}
    ]
    means = [item.numbers.get("mean") for item in (before, after)]
    deviation = before.numbers.get("std_dev")
    if None not in means and (moved := abs(means[1] - means[0])) > 0:  # type: ignore[operator]
        shifts.append(moved / deviation if deviation else math.inf)
    return max(shifts)


def _examples(feature: FeatureStatistics) -> int:
    return max(1, feature.present + feature.missing)


def _shares(feature: FeatureStatistics) -> dict[str, float]:
    """Returns the fraction of the examples that have each of the top values."""
    examples = _examples(feature)
    return {value: count / examples for value, count in feature.top_values.items()}
