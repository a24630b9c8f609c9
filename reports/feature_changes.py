"""Compares the statistics of each feature in two runs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reports.read_run import RunData
from reports.run_values import Change, changes, statistics

# Of the statistics of a feature, those that are compared, by their part of it.
_STATISTICS = {
    None: ("type", "present", "missing", "min_values", "max_values"),
    "numeric": ("zeros", "nan", "mean", "std_dev", "min", "median", "max"),
    "string": ("unique", "avg_length", "invalid_utf8"),
    "bytes": ("unique", "avg_length", "min_length", "max_length"),
}


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


def _by_feature(run: RunData) -> dict[tuple[str, str], Mapping[str, Any]]:
    found: dict[tuple[str, str], Mapping[str, Any]] = {}
    for _, split in statistics(run):
        for feature in split["features"]:
            found.setdefault((split["split"], feature["name"]), feature)
    return found


def _values(feature: Mapping[str, Any] | None) -> dict[str, Any]:
    if feature is None:
        return {}
    values: dict[str, Any] = {}
    for part, names in _STATISTICS.items():
        source = feature.get(part) if part else feature
        values |= {name: source.get(name) for name in names} if source else {}
    if top := next(iter(_fractions(feature)), None):
        values["top value"] = top
    return values


def _shift(before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> float:
    if before is None or after is None or before["type"] != after["type"]:
        return math.inf
    missing = [item["missing"] / max(1, _examples(item)) for item in (before, after)]
    shifts = [abs(missing[1] - missing[0])]
    fractions = [_fractions(item) for item in (before, after)]
    shifts += [
        abs(fractions[1].get(value, 0.0) - fractions[0].get(value, 0.0))
        for value in {**fractions[0], **fractions[1]}
    ]
    numbers = [item["numeric"] or {} for item in (before, after)]
    means: list[Any] = [item.get("mean") for item in numbers]
    deviation = numbers[0].get("std_dev")
    if None not in means and (moved := abs(float(means[1]) - float(means[0]))) > 0:
        shifts.append(moved / float(deviation) if deviation else math.inf)
    return max(shifts)


def _examples(feature: Mapping[str, Any]) -> int:
    return feature["present"] + feature["missing"]


def _fractions(feature: Mapping[str, Any]) -> dict[str, float]:
    """Returns the fraction of the examples that have each of the top values."""
    counts = (feature["string"] or {}).get("top_values", ())
    return {
        item["value"]: float(item["count"]) / max(1, _examples(feature))
        for item in counts
        if item["value"] is not None
    }
