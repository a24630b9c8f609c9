"""Features of the data: one table, and a chart of each feature's values.

The chart shows train against eval, against the data accepted last, and against serving
requests. Features with anomalies come first, then those closest to their drift limit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
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
from reports.charts.svg import is_finite
from reports.feature_statistics import Buckets, FeatureStatistics, statistics
from reports.read_run import RunData
from reports.tables import Header, Mark, Table, numbers
from sluice.record.verdict import Check

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
    statistics: dict[str, FeatureStatistics] = field(default_factory=dict)
    distances: list[Distance] = field(default_factory=list)
    misses: list[Check] = field(default_factory=list)

    @property
    def reference(self) -> FeatureStatistics:
        """The statistics of the first split, mostly ``train``."""
        return next(iter(self.statistics.values()))

    @property
    def mark(self) -> Mark | None:
        """The worst result of the data gate."""
        severities = [row.severity for row in self.misses]
        for severity, tone in _RESULTS:
            if severity in severities:
                word = "ignored" if severity == "ignore" else severity
                return Mark(tone, word)  # type: ignore[arg-type]
        return None

    @property
    def interest(self) -> tuple[float, float]:
        """Sorts what a reader should see first to the front."""
        severities = [severity for severity, _ in _RESULTS]
        ranks = [severities.index(row.severity or "") for row in self.misses]
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


def build(run: RunData) -> FeaturesView | None:
    """Returns the view; None without statistics."""
    found = read_features(run)
    if not found:
        return None
    ordered = sorted(found, key=lambda feature: feature.interest)
    cards = [_card(i, item) for i, item in enumerate(ordered[:MAX_CARDS])]
    return FeaturesView(
        table=_table(ordered),
        cards=cards[:MAX_OPEN],
        more_cards=cards[MAX_OPEN:],
        without_card=len(ordered) - len(cards),
    )


def read_features(run: RunData) -> list[Feature]:
    """Returns the features in the order of the statistics."""
    features: dict[str, Feature] = {}
    for name, found in _data_sets(run):
        for item in found:
            feature = features.setdefault(item.name, Feature(item.name))
            feature.statistics.setdefault(name, item)
    for artifact in run.documents("distances"):
        for comparison in artifact["comparisons"]:
            for moved in comparison["features"]:
                if known := features.get(moved["feature"]):
                    value, limit = float(moved["distance"]), float(moved["limit"])
                    compared = comparison["check"], comparison["split"]
                    distance = Distance(*compared, moved["measure"], value, limit)
                    known.distances.append(distance)
    for row in run.record.gate_rows("data"):
        if row.severity and (known := features.get(row.feature or "")):
            known.misses.append(row)
    for feature in features.values():
        feature.distances.sort(key=lambda distance: -distance.share)
    return list(features.values())


def _data_sets(run: RunData) -> list[tuple[str, list[FeatureStatistics]]]:
    """Returns the features of the splits, ``train`` first, then the baseline's."""
    splits: dict[str, list[FeatureStatistics]] = {}
    for split in statistics(run):
        splits.setdefault(split.split, split.features)
    names = sorted(splits, key=_place)
    found = [(name, splits[name]) for name in names]
    for split in statistics(run, "baseline_statistics"):
        if names and split.split == names[0]:
            found.append((BASELINE, split.features))
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
    total = statistics.present + statistics.missing
    name: Any = formats.shorten(feature.name, 80)
    if index < MAX_CARDS:
        name = Markup('<a href="#{}" class="value">{}</a>').format(
            _anchor(index), name or "(no name)"
        )
    typical, spark = None, None
    if statistics.kind == "num_stats":
        typical = formats.number(statistics.numbers.get("median"))
        if statistics.histogram:
            buckets = _whole(statistics.histogram, statistics.type)
            widths = (b - a for a, b in pairwise(buckets.edges))
            pairs = zip(buckets.counts, widths, strict=False)
            spark = mini_histogram([count / (width or 1.0) for count, width in pairs])
    elif statistics.top_values:
        typical = formats.shorten(next(iter(statistics.top_values)), 30)
        spark = mini_histogram([*statistics.top_values.values()])
    distance = feature.distances[0] if feature.distances else None
    return (
        name,
        kind_of(statistics) + (f" (of {own})" if own != first else ""),
        statistics.missing / total if total else None,
        statistics.numbers.get("unique"),
        spark,
        typical,
        distance.value if distance else None,
        distance.limit if distance else None,
        feature.mark,
    )


def kind_of(statistics: FeatureStatistics) -> str:
    """Returns the type as a reader knows it, such as ``float`` or ``text``."""
    name = statistics.type.lower()
    if statistics.kind == "string_stats":
        encoded = statistics.numbers.get("invalid_utf8")
        name = (
            "bytes" if encoded else "text" if name == "string" else f"{name}, category"
        )
    if statistics.max_values > 1:
        most, least = statistics.max_values, statistics.min_values
        name += f", {most:,}" if least == most else f", {least:,} to {most:,}"
        name += " values"
    return f"{name}, sensitive" if statistics.sensitive else name


def _anchor(index: int) -> str:
    return f"feature-{index + 1}"


def _card(index: int, feature: Feature) -> Card:
    chart, remark = _chart(feature)
    remarks = [
        f"{row.kind or row.check} in {row.slice}: {row.why}" for row in feature.misses
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
    if feature.reference.sensitive:
        return None, "sensitive: counts only"
    shown = {n: s for n, s in feature.statistics.items() if n in _STYLES}
    shown = shown or dict(list(feature.statistics.items())[:1])
    if any(item.histogram for item in shown.values()):
        return _histograms(feature, shown)
    return _top_values(feature, shown)


def _histograms(
    feature: Feature, shown: dict[str, FeatureStatistics]
) -> tuple[Markup, str]:
    numeric = {name: item for name, item in shown.items() if item.histogram}
    middle = _middle(next(iter(numeric.values())))
    is_cut = middle is not None
    histograms = []
    for name, item in numeric.items():
        assert item.histogram is not None
        buckets, quantiles = item.histogram, None
        if not is_cut:
            buckets = _whole(buckets, item.type)
        if buckets is item.histogram and item.quantiles:
            quantiles = item.quantiles.edges, item.quantiles.counts
        style = _STYLES.get(name, 0)
        histogram = Histogram(name, buckets.edges, buckets.counts, style, quantiles)
        histograms.append(histogram)
    low, high = middle or (None, None)
    is_whole = feature.reference.type == "INT"
    axis = Axis(low=low, high=high, whole=is_whole)
    remark = "The lowest and the highest tenth of the values are not in the chart."
    chart = histogram_chart(f"Values of {feature.name}", histograms, axis)
    return chart, remark if is_cut else ""


def _top_values(
    feature: Feature, shown: dict[str, FeatureStatistics]
) -> tuple[Markup | None, str]:
    values = [
        Values(name, _shares(item), _STYLES.get(name, 0))
        for name, item in shown.items()
        if item.kind == "string_stats"
    ]
    if not values or not values[0].shares:
        return None, ""
    first, *others = (list(item.shares) for item in values)
    names = first[:_MAX_VALUES]
    new = dict.fromkeys(name for item in others for name in item[:_MAX_VALUES])
    new_names = [name for name in new if name not in values[0].shares][:3]
    chart = top_values_chart(f"Values of {feature.name}", names + new_names, values)
    more = feature.reference.numbers.get("unique", 0) - len(names)
    return chart, f"{more:,} more distinct values" if more > 0 else ""


def _whole(histogram: Buckets, kind: str) -> Buckets:
    """Returns buckets with edges between the whole numbers that each of them holds.

    TFDV's edges cut whole numbers unevenly: of ten buckets over 0 to 12, three hold two
    of them and seven hold one. Each has its upper edge; what TFDV's interpolation puts
    into a bucket without a whole number is that of the next one.
    """
    edges = histogram.edges
    low, high = edges[0], edges[-1]
    if kind != "INT" or not 0 < high - low < MAX_WHOLE:
        return histogram
    between, counts, carried = [low - 0.5], [], 0.0
    for end, count in zip(edges[1:], histogram.counts, strict=False):
        carried += count
        last = math.floor(end + 1e-6) + 0.5
        if last > between[-1]:
            between.append(last)
            counts.append(carried)
            carried = 0.0
    return Buckets(between, counts)


def _middle(statistics: FeatureStatistics) -> tuple[float, float] | None:
    """Returns the limits of the values but the lowest and the highest tenth.

    None unless nearly all values are in one bucket, so that these show them better.
    """
    counts = statistics.histogram.counts if statistics.histogram else []
    edges = statistics.quantiles.edges[1:-1] if statistics.quantiles else []
    is_dominant = max(counts, default=0.0) > _DOMINANT * sum(counts)
    if is_dominant and len(edges) > 3 and edges[0] < edges[-1]:
        return edges[0], edges[-1]
    return None


def _shares(statistics: FeatureStatistics) -> dict[str, float]:
    """Returns the share of the examples with each of the most frequent values."""
    present = statistics.present or 1
    shares = {name: count / present for name, count in statistics.top_values.items()}
    return {name: share for name, share in shares.items() if is_finite(share)}


def _numbers(feature: Feature) -> list[list[str]]:
    """Returns the table of a card: a row per number, a column per data set."""
    data = list(feature.statistics.values())
    rows = [
        ["present", *(formats.number(item.present) for item in data)],
        ["missing", *(formats.number(item.missing) for item in data)],
    ]
    for name in dict.fromkeys(name for item in data for name in item.numbers):
        label = name.replace("_", " ").replace("avg", "mean")
        values = [formats.number(item.numbers.get(name)) for item in data]
        rows.append([label, *values])
    return rows
