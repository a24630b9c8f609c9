"""Finds label leaks: features whose value alone determines the label.

Such a feature was mostly written down with the label, or after it, and is not known
when the model is asked.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from typing import Any

from pipeline.scaffold.summarize import Summary, Value
from sluice.records import tf_example_proto

# Of fewer records per value a feature that says nothing may look as if it did.
_RECORDS_PER_VALUE = 10
_PURE = 0.999


def find_leaks(
    records: Iterable[bytes], summary: Summary, label: str, names: Collection[str]
) -> dict[str, float]:
    """Returns the features that decide the label, and in what part of the records.

    Args:
      records: those that the summary is of.
      summary: says how many values a feature has.
      label: a feature with a value in every record.
      names: the features to look at.
    """
    majority = max(summary.features[label].counts.values()) / summary.records
    watched = [name for name in names if _is_repeated(summary, name)]
    if not watched or majority >= _PURE:
        return {}
    labels: dict[str, defaultdict[Value, Counter[Value]]] = {
        name: defaultdict(Counter) for name in watched
    }
    for data in records:
        features = tf_example_proto.parse(data).features.feature
        truth = _value(features[label])
        for name in watched:
            # Asking a map for a key that it lacks would add it.
            if name in features and (value := _value(features[name])) is not None:
                labels[name][value][truth] += 1
    leaks = {}
    for name in watched:
        by_value = labels[name].values()
        total = sum(counter.total() for counter in by_value)
        right = sum(max(counter.values()) for counter in by_value)
        share = right / total if total else 0.0
        if total >= summary.records / 2 and share >= _PURE:
            leaks[name] = share
    return leaks


def _is_repeated(summary: Summary, name: str) -> bool:
    feature = summary.features[name]
    enough = feature.distinct * _RECORDS_PER_VALUE <= feature.present
    return enough and not feature.many and feature.distinct > 1


def _value(feature: Any) -> Any:
    kind = feature.WhichOneof("kind")
    values = getattr(feature, kind).value if kind else None
    return values[0] if values else None
