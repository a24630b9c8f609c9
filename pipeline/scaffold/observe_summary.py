"""Adapts counted records (``summarize``) to what ``schemas.diff`` compares."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipeline.scaffold.summarize import FeatureSummary, Summary
from schemas.diff.observed import (
    Observed,
    ObservedFeature,
    SplitPresence,
    merge_splits,
)

_TYPES = {"int": "INT", "float": "FLOAT", "bytes": "BYTES"}


def observe_summary(splits: Mapping[str, Summary]) -> Observed:
    """Returns what the summaries of all splits show."""
    return merge_splits(
        {
            split: (
                summary.records,
                {name: _feature(item) for name, item in summary.features.items()},
            )
            for split, summary in splits.items()
        }
    )


def _feature(summary: FeatureSummary) -> ObservedFeature:
    counts: dict[str, int] = {}
    not_text = 0
    for value, count in summary.counts.items():
        text = _text(value)
        if text is None:
            not_text += count
        else:
            counts[text] = count
    finite = summary.values - summary.nans - summary.infinities
    return ObservedFeature(
        name=summary.name,
        types={_TYPES[kind]: count for kind, count in summary.kinds.items()},
        presence=(SplitPresence("", summary.present, summary.records),),
        values=summary.values,
        min_values=summary.min_values,
        max_values=summary.max_values,
        low=summary.low,
        high=summary.high,
        nans=summary.nans,
        infinities=summary.infinities,
        counts=counts,
        distinct=summary.distinct,
        at_least=summary.many,
        unlisted=max(0, finite - sum(summary.counts.values())),
        not_text=not_text,
    )


def _text(value: Any) -> str | None:
    """Returns a value as statistics name it, None for bytes that are no text."""
    if not isinstance(value, bytes):
        return str(value)
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None
