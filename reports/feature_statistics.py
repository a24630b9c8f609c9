"""Reads statistics of features from the JSON form of TFDV's protos.

Fields that are 0 or empty are missing there, and 64-bit integers are text:
https://protobuf.dev/programming-guides/json/
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, NamedTuple

from reports.charts.svg import clamp, is_finite
from reports.read_run import RunData

# By the kind of statistics the fields that are shown, with their names on the page.
_FIELDS = {
    "num_stats": {"num_zeros": "zeros", "std_dev": "std dev"}
    | {name: name for name in ("min", "mean", "median", "max")},
    "string_stats": {
        "unique": "unique",
        "avg_length": "mean length",
        "invalid_utf8_count": "invalid utf8",
    },
    "bytes_stats": {
        "unique": "unique",
        "avg_num_bytes": "mean length",
        "min_num_bytes": "min length",
        "max_num_bytes": "max length",
    },
}
# TFDV's stand-ins for bytes that are no text and for long text (its constants.py).
_PLACEHOLDERS = ("__BYTES_VALUE__", "__LARGE_BYTES__")


@dataclass(frozen=True)
class FeatureStatistics:
    """The statistics of a feature in a split.

    Attributes:
      kind: ``num_stats``, ``string_stats``, ``bytes_stats`` or ``struct_stats``.
      type: ``INT``, ``FLOAT``, ``STRING``, ``BYTES`` or ``STRUCT``.
      min_values, max_values: values per example that has it.
      sensitive: if true, only counts are known.
      numbers: by name; ``present`` and ``missing`` are numbers of examples.
      values: the number of values in all examples.
      buckets: of TFDV's histograms: low, high and count, by the histogram's type.
      top_values: the most frequent text values, with their frequency.
    """

    name: str
    kind: str
    type: str
    min_values: int
    max_values: int
    sensitive: bool
    numbers: dict[str, float]
    values: float
    buckets: dict[str, list[tuple[float, float, float]]]
    top_values: dict[str, float]

    @property
    def is_whole(self) -> bool:
        """Whether all values are whole numbers."""
        return self.type == "INT"

    @property
    def examples(self) -> float:
        """The number of examples with and without it; 1 if there are none."""
        return self.numbers["present"] + self.numbers["missing"] or 1

    def cumulative(self) -> tuple[list[float], list[float]] | None:
        """Returns values, ascending, and the share of all values at most each.

        None without values. The share at most a whole number is that below the next
        half: quantiles do not say what is between two of them.
        """
        rows = self.buckets.get("QUANTILES") or self.buckets.get("STANDARD") or []
        counts = [clamp(max(n, 0.0)) if is_finite(n) else 0.0 for *_, n in rows]
        total = sum(counts) or 1.0
        points: list[tuple[float, float]] = []
        for end, (low, high, _), count in zip(
            accumulate(counts), rows, counts, strict=True
        ):
            points += [(low, (end - count) / total), (high, end / total)]
        # Histograms are estimates: none may go down.
        points = sorted((clamp(x), share) for x, share in points if is_finite(x))
        if not points:
            return None
        x, below = [x for x, _ in points], [*accumulate((y for _, y in points), max)]
        if self.is_whole:
            x = [x[0] - 0.5, *(value + 0.5 for value in x[1:])]
        return x, below

    def shares(self) -> dict[str, float]:
        """Returns the shares of all values that are the most frequent ones.

        Of whole numbers, quantiles tell: each value is as frequent among them.
        """
        if self.top_values or not self.is_whole:
            values = self.values or 1
            shares = {text: count / values for text, count in self.top_values.items()}
            return {text: share for text, share in shares.items() if is_finite(share)}
        rows = self.buckets.get("QUANTILES", [])
        found = Counter([low for low, *_ in rows[:1]] + [high for _, high, _ in rows])
        return {
            f"{value:.0f}": count / found.total()
            for value, count in found.most_common()
            if count > 1
        }


class SplitStatistics(NamedTuple):
    """The statistics of a split, and the node that computed them."""

    node: str
    split: str
    examples: int
    features: list[FeatureStatistics]


def statistics(run: RunData, kind: str = "statistics") -> list[SplitStatistics]:
    """Returns the statistics in the documents of a kind, by split."""
    if kind not in run.statistics:
        run.statistics[kind] = [*_read(run, kind)]
    return run.statistics[kind]


def _read(run: RunData, kind: str) -> Iterator[SplitStatistics]:
    for document in run.documents(kind):
        sensitive = document.get("privacy", {}).get("sensitive", ())
        for split, found in document["splits"].items():
            features = [_feature(x, sensitive) for x in found.get("features", ())]
            examples = int(found.get("num_examples", 0))
            yield SplitStatistics(document["node"], split, examples, features)


def kind_of(feature: FeatureStatistics) -> str:
    """Returns the type as a reader knows it, such as ``float`` or ``text``."""
    name = feature.type.lower()
    if feature.kind == "string_stats":
        category = "text" if name == "string" else f"{name}, category"
        name = "bytes" if feature.numbers.get("invalid utf8") else category
    if feature.max_values > 1:
        most, least = f"{feature.max_values:,}", f"{feature.min_values:,}"
        name += f", {most if least == most else f'{least} to {most}'} values"
    return f"{name}, sensitive" if feature.sensitive else name


def _feature(
    feature: Mapping[str, Any], sensitive: Collection[str]
) -> FeatureStatistics:
    name = ".".join(feature.get("path", {}).get("step", ())) or feature.get("name", "")
    kind = next((key for key in feature if key.endswith("_stats")), "struct_stats")
    stats = feature.get(kind, {})
    common = stats.get("common_stats", {})
    histograms = stats.get("histograms", ())
    nan = max((_number(x.get("num_nan", 0)) for x in histograms), default=0)
    present = int(common.get("num_non_missing", 0))
    fields = _FIELDS.get(kind, {})
    if name in sensitive or _number(common.get("tot_num_values", present)) <= nan:
        fields = {key: label for key, label in fields.items() if key == "unique"}
    numbers: dict[str, float] = {
        "present": present,
        "missing": int(common.get("num_missing", 0)),
    }
    numbers |= {label: _number(stats.get(key, 0)) for key, label in fields.items()}
    if kind == "num_stats":
        numbers["NaN"] = nan
    return FeatureStatistics(
        name=name,
        kind=kind,
        type=feature.get("type", "INT"),
        min_values=int(common.get("min_num_values", 0)),
        max_values=int(common.get("max_num_values", 0)),
        sensitive=name in sensitive,
        numbers=numbers,
        values=_number(common.get("tot_num_values", present)),
        buckets={
            item.get("type", "STANDARD"): [_bucket(x) for x in item["buckets"]]
            for item in histograms
            if item.get("buckets")
        },
        top_values={
            item.get("value", ""): _number(item["frequency"])
            for item in stats.get("top_values", ())
            if item.get("value") not in _PLACEHOLDERS
        },
    )


def _bucket(bucket: Mapping[str, Any]) -> tuple[float, float, float]:
    low, high, count = (
        float(bucket.get(key, 0)) for key in ("low_value", "high_value", "sample_count")
    )
    return low, high, count


def _number(value: float | str) -> float:
    """Returns a number of JSON, or of its text: an integer, NaN or an infinity."""
    try:
        return int(value) if isinstance(value, str) else value
    except ValueError:
        return float(value)
