"""Features of the data: one table, and a chart of each feature's values.

The chart shows train against eval, against the data accepted last, and against serving
requests. Features with anomalies come first, then those closest to their drift limit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress, pairwise
from typing import Any

from markupsafe import Markup

from reports import formats
from reports.charts.bars import (
    MAX_WHOLE,
    Histogram,
    Values,
    histogram_chart,
    mini_histogram,
    top_values_chart,
)
from reports.charts.scale import Axis
from reports.read_run import RunData
from reports.run_values import statistics
from reports.tables import Header, Mark, Table, numbers

BASELINE = "accepted data"
COMPARISONS = {
    "drift": "since the accepted data",
    "split_drift": "train against eval",
    "skew": "against serving requests",
}
MAX_OPEN = 24
MAX_CARDS = 200
_MAX_VALUES = 10
_STYLES = {"train": 0, "eval": 1, BASELINE: 2, "serving": 3}
# Where a bucket has more of the values, the histogram shows those in the middle.
_DOMINANT = 0.9
_RESULTS = (("fail", "bad"), ("warn", "warn"), ("ignore", "quiet"))


@dataclass(frozen=True)
class Distance:
    """How far a feature's values in a split are from others, with the limit."""

    check: str
    split: str
    measure: str
    value: float
    limit: float

    @property
    def share(self) -> float:
        """The distance relative to its limit."""
        return self.value / self.limit if self.limit else self.value

    def __str__(self) -> str:
        name = COMPARISONS.get(self.check, self.check)
        if self.check != "split_drift":
            name = f"{self.split} {name}"
        value, limit = formats.number(self.value), formats.number(self.limit)
        return f"{name}: {self.measure} {value}, limit {limit}"


@dataclass
class Feature:
    """What the record has on one feature.

    Attributes:
      name: of the feature.
      statistics: by data set: the splits, and ``accepted data``.
      distances: the largest share of its limit first.
      misses: rows of the data gate that miss.
    """

    name: str
    statistics: dict[str, dict[str, Any]] = field(default_factory=dict)
    distances: list[Distance] = field(default_factory=list)
    misses: list[dict[str, Any]] = field(default_factory=list)

    @property
    def reference(self) -> dict[str, Any]:
        """The statistics of the first split, mostly ``train``."""
        return next(iter(self.statistics.values()))

    @property
    def mark(self) -> Mark | None:
        """The worst result of the data gate."""
        severities = [row["severity"] for row in self.misses]
        for severity, tone in _RESULTS:
            if severity in severities:
                word = "ignored" if severity == "ignore" else severity
                return Mark(tone, word)  # type: ignore[arg-type]
        return None

    @property
    def interest(self) -> tuple[float, float]:
        """Sorts what a reader should see first to the front."""
        severities = [severity for severity, _ in _RESULTS]
        ranks = [severities.index(row["severity"]) for row in self.misses]
        share = self.distances[0].share if self.distances else 0.0
        return min(ranks, default=len(severities)), -share


@dataclass(frozen=True)
class Card:
    """One feature in detail: a chart, and a table of its numbers by data set."""

    anchor: str
    name: str
    kind: str
    mark: Mark | None
    chart: Markup | None
    remarks: list[str]
    header: list[str]
    rows: list[list[str]]


@dataclass(frozen=True)
class FeaturesView:
    """The table of all features, and the first ones in detail."""

    table: Table
    cards: list[Card]
    more_cards: list[Card]
    without_card: int
    left_out: int


def build(run: RunData) -> FeaturesView | None:
    """Returns the view; None without statistics."""
    found, left_out = read_features(run)
    if not found:
        return None
    ordered = sorted(found, key=lambda feature: feature.interest)
    cards = [_card(i, item) for i, item in enumerate(ordered[:MAX_CARDS])]
    return FeaturesView(
        table=_table(ordered),
        cards=cards[:MAX_OPEN],
        more_cards=cards[MAX_OPEN:],
        without_card=len(ordered) - len(cards),
        left_out=left_out,
    )


def read_features(run: RunData) -> tuple[list[Feature], int]:
    """Returns the features in the order of the statistics, and how many they lack."""
    features: dict[str, Feature] = {}
    left_out = 0
    for name, split in _data_sets(run):
        left_out = max(left_out, split.get("features_left_out", 0))
        for item in split["features"]:
            feature = features.setdefault(item["name"], Feature(item["name"]))
            feature.statistics.setdefault(name, item)
    for artifact in run.artifacts("distances"):
        for comparison in artifact["comparisons"]:
            for item in comparison["features"]:
                if known := features.get(item["feature"]):
                    value, limit = float(item["distance"]), float(item["limit"])
                    compared = comparison["check"], comparison["split"]
                    distance = Distance(*compared, item["measure"], value, limit)
                    known.distances.append(distance)
    for row in run.record.gate_rows("data"):
        if row.get("severity") and (known := features.get(row.get("feature") or "")):
            known.misses.append(row)
    for feature in features.values():
        feature.distances.sort(key=lambda distance: -distance.share)
    return list(features.values()), left_out


def _data_sets(run: RunData) -> list[tuple[str, Mapping[str, Any]]]:
    """Returns the statistics of the splits, ``train`` first, then the baseline's."""
    splits: dict[str, Mapping[str, Any]] = {}
    for _, split in statistics(run):
        splits.setdefault(split["split"], split)
    names = sorted(splits, key=_place)
    found = [(name, splits[name]) for name in names]
    for artifact in run.artifacts("baseline_statistics"):
        found += [
            (BASELINE, split)
            for split in artifact["splits"]
            if names and split["split"] == names[0]
        ]
    return found


def _table(features: Sequence[Feature]) -> Table:
    missing = numbers("Missing", "%", formats.in_percent)
    columns: Header = ["Feature", "Type", missing, numbers("Distinct values")]
    columns += ["Distribution", "Median, or most frequent"]
    columns += [numbers("Distance"), numbers("Limit"), "Data gate"]
    first = min((name for item in features for name in item.statistics), key=_place)
    rows = [_row(i, feature, first) for i, feature in enumerate(features)]
    used = [any(row[i] is not None for row in rows) for i in range(len(columns))]
    return Table(
        id="features",
        caption=f"Features, as they are in {first}",
        header=list(compress(columns, used)),
        rows=[list(compress(row, used)) for row in rows],
        limit=100,
    )


def _place(name: str) -> int:
    """Orders data sets as their styles; splits of other names are last."""
    return [*_STYLES, name].index(name)


def _row(index: int, feature: Feature, first: str) -> tuple[Any, ...]:
    statistics = feature.reference
    own = next(iter(feature.statistics))
    numeric, string = statistics["numeric"], statistics["string"]
    total = statistics["present"] + statistics["missing"]
    name: Any = formats.shorten(feature.name, 80)
    if index < MAX_CARDS:
        name = Markup('<a href="#{}" class="value">{}</a>').format(
            _anchor(index), name or "(no name)"
        )
    typical, spark = None, None
    if numeric:
        typical = formats.number(numeric["median"])
        if numeric["histogram"]:
            buckets = _whole(numeric["histogram"], statistics["type"])
            widths = (float(b) - float(a) for a, b in pairwise(buckets["edges"]))
            pairs = zip(buckets["counts"], widths, strict=False)
            spark = mini_histogram(
                [float(count) / (width or 1.0) for count, width in pairs]
            )
    elif string and string["top_values"]:
        typical = formats.shorten(string["top_values"][0]["value"], 30)
        spark = mini_histogram([item["count"] for item in string["top_values"]])
    distance = feature.distances[0] if feature.distances else None
    return (
        name,
        kind_of(statistics) + (f" (of {own})" if own != first else ""),
        statistics["missing"] / total if total else None,
        (string or statistics["bytes"] or {}).get("unique"),
        spark,
        typical,
        distance.value if distance else None,
        distance.limit if distance else None,
        feature.mark,
    )


def kind_of(statistics: dict[str, Any]) -> str:
    """Returns the type as a reader knows it, such as ``float`` or ``text``."""
    name = statistics["type"].lower()
    if statistics["string"]:
        encoded = statistics["string"]["invalid_utf8"]
        name = (
            "bytes" if encoded else "text" if name == "string" else f"{name}, category"
        )
    if statistics["max_values"] > 1:
        most, least = statistics["max_values"], statistics["min_values"]
        name += f", {most:,}" if least == most else f", {least:,} to {most:,}"
        name += " values"
    return f"{name}, sensitive" if statistics["sensitive"] else name


def _anchor(index: int) -> str:
    return f"feature-{index + 1}"


def _card(index: int, feature: Feature) -> Card:
    chart, remark = _chart(feature)
    remarks = [
        f"{row['kind'] or row['check']} in {row['slice']}: {row['why']}"
        for row in feature.misses
    ]
    return Card(
        anchor=_anchor(index),
        name=feature.name,
        kind=kind_of(feature.reference),
        mark=feature.mark,
        chart=chart,
        remarks=[*remarks, *map(str, feature.distances), *filter(None, [remark])],
        header=list(feature.statistics),
        rows=_numbers(feature),
    )


def _chart(feature: Feature) -> tuple[Markup | None, str]:
    """Returns the chart, and a remark on what it does not show."""
    if feature.reference["sensitive"]:
        return None, "sensitive: counts only"
    shown = {n: s for n, s in feature.statistics.items() if n in _STYLES}
    shown = shown or dict(list(feature.statistics.items())[:1])
    if any(s["numeric"] and s["numeric"]["histogram"] for s in shown.values()):
        return _histograms(feature, shown)
    return _top_values(feature, shown)


def _histograms(feature: Feature, shown: dict[str, Any]) -> tuple[Markup, str]:
    numeric = {n: s["numeric"] for n, s in shown.items() if s["numeric"]}
    numeric = {n: s for n, s in numeric.items() if s["histogram"]}
    first = next(iter(numeric.values()))
    is_cut = _is_cut(first)
    histograms = []
    for name, item in numeric.items():
        buckets, quantiles = item["histogram"], None
        if not is_cut:
            buckets = _whole(buckets, shown[name]["type"])
        if buckets is item["histogram"] and item["quantiles"]:
            quantiles = item["quantiles"]["edges"], item["quantiles"]["counts"]
        edges, counts, style = buckets["edges"], buckets["counts"], _STYLES.get(name, 0)
        histograms.append(Histogram(name, edges, counts, style, quantiles))
    ends = first["quantiles"]["edges"][1:-1] if is_cut else [None]
    is_whole = feature.reference["type"] == "INT"
    axis = Axis(low=ends[0], high=ends[-1], whole=is_whole)
    remark = "The lowest and the highest tenth of the values are not in the chart."
    chart = histogram_chart(f"Values of {feature.name}", histograms, axis)
    return chart, remark if is_cut else ""


def _top_values(feature: Feature, shown: dict[str, Any]) -> tuple[Markup | None, str]:
    values = [
        Values(name, _frequencies(item), _STYLES.get(name, 0))
        for name, item in shown.items()
        if item["string"]
    ]
    if not values or not values[0].shares:
        return None, ""
    first, *others = (list(item.shares) for item in values)
    names = first[:_MAX_VALUES]
    new = dict.fromkeys(name for item in others for name in item[:_MAX_VALUES])
    new_names = [name for name in new if name not in values[0].shares][:3]
    chart = top_values_chart(f"Values of {feature.name}", names + new_names, values)
    more = feature.reference["string"]["unique"] - len(names)
    return chart, f"{more:,} more distinct values" if more > 0 else ""


def _whole(histogram: dict[str, Any], kind: str) -> dict[str, Any]:
    """Returns buckets with edges between the whole numbers that each of them holds.

    TFDV's edges cut whole numbers unevenly: of ten buckets over 0 to 12, three hold two
    of them and seven hold one. Each has its upper edge; what TFDV's interpolation puts
    into a bucket without a whole number is that of the next one.
    """
    edges = [float(edge) for edge in histogram["edges"]]
    low, high = edges[0], edges[-1]
    if kind != "INT" or not 0 < high - low < MAX_WHOLE:
        return histogram
    between, counts, carried = [low - 0.5], [], 0.0
    for end, count in zip(edges[1:], histogram["counts"], strict=False):
        carried += float(count)
        last = math.floor(end + 1e-6) + 0.5
        if last > between[-1]:
            between.append(last)
            counts.append(carried)
            carried = 0.0
    return {"edges": between, "counts": counts}


def _is_cut(numeric: dict[str, Any]) -> bool:
    """Whether nearly all values are in one bucket, and quantiles show them better."""
    counts = [float(count) for count in numeric["histogram"]["counts"]]
    edges = (numeric["quantiles"] or {}).get("edges", [])[1:-1]
    return (
        max(counts, default=0.0) > _DOMINANT * sum(counts)
        and len(edges) > 3
        and float(edges[0]) < float(edges[-1])
    )


def _frequencies(statistics: dict[str, Any]) -> dict[str, float]:
    """Returns the share of the examples with each of the most frequent values."""
    present = statistics["present"] or 1
    return {
        item["value"]: float(item["count"]) / present
        for item in statistics["string"]["top_values"]
        if item["value"] is not None
    }


def _numbers(feature: Feature) -> list[list[str]]:
    """Returns the table of a card: a row per number, a column per data set."""
    keys = (
        ("numeric", ("zeros", "nan", "min", "mean", "median", "max", "std_dev")),
        ("string", ("unique", "avg_length", "invalid_utf8")),
        ("bytes", ("unique", "avg_length", "min_length", "max_length")),
    )
    data = feature.statistics
    rows = [
        [key, *(formats.number(item[key]) for item in data.values())]
        for key in ("present", "missing")
    ]
    for part, names in keys:
        for name in names:
            values = [(item[part] or {}).get(name) for item in data.values()]
            if any(value is not None for value in values):
                label = name.replace("_", " ").replace("avg", "mean")
                rows.append([label, *map(formats.number, values)])
    return rows
