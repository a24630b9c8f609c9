"""Reads statistics of features from the JSON form of TFDV's protos.

Fields that are 0 or empty are missing there, and 64-bit integers are text:
https://protobuf.dev/programming-guides/json/
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from reports.read_run import RunData

_MAX_BUCKETS = 100
# By the kind of statistics the fields that are shown, with their names on the page.
_FIELDS = {
    "num_stats": {
        "num_zeros": "zeros",
        "min": "min",
        "mean": "mean",
        "median": "median",
        "max": "max",
        "std_dev": "std_dev",
    },
    "string_stats": {
        "unique": "unique",
        "avg_length": "avg_length",
        "invalid_utf8_count": "invalid_utf8",
    },
    "bytes_stats": {
        "unique": "unique",
        "avg_num_bytes": "avg_length",
        "min_num_bytes": "min_length",
        "max_num_bytes": "max_length",
    },
}
# TFDV's stand-ins for bytes that are no text and for long text (its constants.py).
_PLACEHOLDERS = ("__BYTES_VALUE__", "__LARGE_BYTES__")


@dataclass(frozen=True)
class Buckets:
    """A histogram: bucket i lies between the edges i and i + 1."""

    edges: list[float]
    counts: list[float]


@dataclass(frozen=True)
class FeatureStatistics:
    """The statistics of a feature in a split.

    Attributes:
      kind: ``num_stats``, ``string_stats``, ``bytes_stats`` or ``struct_stats``.
      type: ``INT``, ``FLOAT``, ``STRING``, ``BYTES`` or ``STRUCT``.
      present, missing: the number of examples with and without it.
      min_values, max_values: values per example that has it.
      sensitive: if true, only counts are known.
      numbers: by name; without values only counts.
      top_values: the most frequent text values, with their frequency.
    """

    name: str
    kind: str
    type: str
    present: int
    missing: int
    min_values: int
    max_values: int
    sensitive: bool
    numbers: dict[str, float] = field(default_factory=dict)
    histogram: Buckets | None = None
    quantiles: Buckets | None = None
    top_values: dict[str, float] = field(default_factory=dict)


class SplitStatistics(NamedTuple):
    """The statistics of a split, and the node that computed them."""

    node: str
    split: str
    examples: int
    features: list[FeatureStatistics]


def statistics(run: RunData, kind: str = "statistics") -> Iterator[SplitStatistics]:
    """Yields the statistics in the documents of a kind, by split."""
    for document in run.documents(kind):
        sensitive = document.get("privacy", {}).get("sensitive", ())
        for split, found in document["splits"].items():
            features = [_feature(x, sensitive) for x in found.get("features", ())]
            examples = int(found.get("num_examples", 0))
            yield SplitStatistics(document["node"], split, examples, features)


def _feature(
    feature: Mapping[str, Any], sensitive: Collection[str]
) -> FeatureStatistics:
    name = ".".join(feature.get("path", {}).get("step", ())) or feature.get("name", "")
    kind = next((key for key in feature if key.endswith("_stats")), "struct_stats")
    stats = feature.get(kind, {})
    common = stats.get("common_stats", {})
    histograms = {
        item.get("type", "STANDARD"): item for item in stats.get("histograms", ())
    }
    nan = max((_number(x.get("num_nan", 0)) for x in histograms.values()), default=0)
    counted = common.get("tot_num_values") or common.get("num_non_missing", 0)
    is_sensitive = name in sensitive
    numbers = {}
    if _number(counted) > nan and not is_sensitive:
        fields = _FIELDS.get(kind, {})
        numbers = {label: _number(stats.get(key, 0)) for key, label in fields.items()}
    elif kind in ("string_stats", "bytes_stats"):
        numbers = {"unique": _number(stats.get("unique", 0))}
    if kind == "num_stats":
        numbers["nan"] = nan
    return FeatureStatistics(
        name=name,
        kind=kind,
        type=feature.get("type", "INT"),
        present=int(common.get("num_non_missing", 0)),
        missing=int(common.get("num_missing", 0)),
        min_values=int(common.get("min_num_values", 0)),
        max_values=int(common.get("max_num_values", 0)),
        sensitive=is_sensitive,
        numbers=numbers,
        histogram=_buckets(histograms.get("STANDARD")),
        quantiles=_buckets(histograms.get("QUANTILES")),
        top_values={
            item.get("value", ""): _number(item["frequency"])
            for item in stats.get("top_values", ())
            if item.get("value") not in _PLACEHOLDERS
        },
    )


def _number(value: float | str) -> float:
    """Returns a number of JSON, or of its text: an integer, NaN or an infinity."""
    try:
        return int(value) if isinstance(value, str) else value
    except ValueError:
        return float(value)


def _buckets(histogram: Mapping[str, Any] | None) -> Buckets | None:
    found = (histogram or {}).get("buckets", ())
    if not 0 < len(found) <= _MAX_BUCKETS:
        return None
    lows = [float(item.get("low_value", 0)) for item in found]
    highs = [float(item.get("high_value", 0)) for item in found]
    edges = [
        lows[0],
        # TFDV counts infinite values in buckets from infinity to infinity.
        *(
            high if math.isfinite(high) else low
            for high, low in itertools.zip_longest(highs[:-1], lows[1:])
        ),
        highs[-1],
    ]
    return Buckets(edges, [float(item.get("sample_count", 0)) for item in found])
