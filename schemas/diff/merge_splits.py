"""Puts together what was counted in each split."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from schemas.diff.observed import Observed, ObservedFeature, SplitPresence


def merge_splits(
    splits: Mapping[str, tuple[int, Mapping[str, ObservedFeature]]],
) -> Observed:
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
    return Observed(records, features)


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
