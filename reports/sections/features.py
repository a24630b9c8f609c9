"""Features of the data: one table, and a chart of each feature's values.

The chart shows the splits, the data accepted last, and serving requests. Features with
anomalies come first, then those whose values are distributed most differently.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from markupsafe import Markup

from reports import formats
from reports.charts.bars import (
    MAX_WHOLE,
    Distribution,
    histogram_chart,
    top_values_chart,
)
from reports.feature_statistics import FeatureStatistics, kind_of, statistics
from reports.read_run import RunData
from reports.run_table import label_task
from reports.tables import Header, Mark, Table, numbers
from sluice.record.verdict import Check

BASELINE = "accepted data"
MAX_CARDS = 200
# By comparison: its column, and what it says of a split.
_COMPARISONS = {
    "drift": ("Since the accepted data", "{split} since the accepted data"),
    "split_drift": ("Train against eval", "train against eval"),
    "skew": ("Against serving", "{split} against serving requests"),
}
_MISSING = "missing or NaN"
_MAX_VALUES = 10
# The others have no bar if they are fewer.
_MIN_SHARE = 0.0005
_OTHERS = "all others"
# Kinds of features in the config whose whole numbers are names.
_CATEGORIES = ("vocabulary", "hashed", "multi_hot")
# Each has a colour of its own.
_DATA_SETS = ("train", "eval", "test", BASELINE, "serving")
_RESULTS = {
    "FAIL": Mark("bad", "fail"),
    "warn": Mark("warn", "warn"),
    "ignored": Mark("quiet", "ignored"),
}


@dataclass(frozen=True)
class Distance:
    """A distance of a feature from other data, grey in tables if it has no limit.

    Attributes:
      check: which comparison: ``drift``, ``split_drift`` or ``skew``.
      split: that is compared.
      measure: the kind of distance, or ``missing or NaN``: the change of that share.
      value: the distance.
      limit: the schema's; None without one.
      chance: what chance gives, of one above its limit.
    """

    check: str
    split: str
    measure: str
    value: float
    limit: float | None
    chance: float | None = None

    @property
    def tone(self) -> str:
        return "quiet" if self.limit is None else ""

    @property
    def text(self) -> str:
        """A line of the feature's card."""
        _, words = _COMPARISONS.get(self.check, ("", f"{{split}} {self.check}"))
        where = words.replace("{split}", self.split)
        if self.measure == _MISSING:
            return f"{where}: {_MISSING} changes by {formats.percent(self.value)}"
        limit = "no limit"
        if self.limit is not None:
            limit = f"limit {formats.number(self.limit, 3)}"
        if self.chance is not None:
            limit += f", by chance up to {formats.number(self.chance, 3)}"
        return f"{where}: {self.measure} {formats.number(self.value, 3)}, {limit}"

    def __str__(self) -> str:
        value = formats.number(self.value, 3)
        if self.limit is None:
            return value
        sign = ">" if self.value > self.limit else "≤"
        by_chance = ", by chance" if self.value <= (self.chance or -1) else ""
        return f"{value} {sign} {formats.number(self.limit, 3)}{by_chance}"


@dataclass
class Feature:
    """What the record has on one feature.

    Attributes:
      statistics: by data set: the splits, and ``accepted data``.
      distances: from other data, the largest first.
      misses: rows of the data gate that miss.
      is_category: whether whole numbers are names, by the config or the schema.
      is_label: whether it is what is predicted.
    """

    name: str
    statistics: dict[str, FeatureStatistics] = field(default_factory=dict)
    distances: list[Distance] = field(default_factory=list)
    misses: list[Check] = field(default_factory=list)
    is_category: bool = False
    is_label: bool = False

    @property
    def first(self) -> FeatureStatistics:
        """The statistics of the first split, mostly ``train``."""
        return next(iter(self.statistics.values()))

    @property
    def mark(self) -> Mark | None:
        """The worst result of the data gate."""
        results = [row.result for row in self.misses]
        return next((mark for name, mark in _RESULTS.items() if name in results), None)

    @property
    def interest(self) -> tuple[float, float]:
        """Sorts what a reader should see first to the front."""
        ranks = [[*_RESULTS].index(row.result) for row in self.misses]
        largest = self.largest()
        return min(ranks, default=len(_RESULTS)), -(largest.value if largest else 0.0)

    def largest(self, check: str | None = None) -> Distance | None:
        """Returns the largest distance, of one comparison or of all."""
        return next((x for x in self.distances if check in (None, x.check)), None)

    @property
    def rows(self) -> dict[str, list[float | None]]:
        """The numbers of each data set, by name."""
        data = self.statistics.values()
        names = dict.fromkeys(name for item in data for name in item.numbers)
        return {name: [item.numbers.get(name) for item in data] for name in names}


def build(run: RunData) -> dict[str, Any] | None:
    """Returns the table, and each feature with its chart and the values left out."""
    features = sorted(read_features(run), key=lambda feature: feature.interest)
    if not features:
        return None
    cards = [
        (index, feature, *chart(feature))
        for index, feature in enumerate(features, start=1)
        if _has_card(index, feature)
    ]
    return {
        "table": _table(features),
        "cards": sorted(cards, key=lambda card: not card[1].is_label),
        "without_card": len(features) - len(cards),
    }


def _has_card(index: int, feature: Feature) -> bool:
    return index <= MAX_CARDS or feature.is_label


def read_features(run: RunData) -> list[Feature]:
    """Returns the features in the order of the statistics."""
    splits = list(statistics(run))
    splits.sort(key=lambda split: [*_DATA_SETS, split.split].index(split.split))
    data = [(split.split, split.features) for split in splits]
    for accepted in statistics(run, "baseline_statistics"):
        if data and accepted.split == data[0][0]:
            data.append((BASELINE, accepted.features))
    features: dict[str, Feature] = {}
    for name, items in data:
        for item in items:
            feature = features.setdefault(item.name, Feature(item.name))
            feature.statistics.setdefault(name, item)
    for document in run.documents("distances"):
        for comparison in document["comparisons"]:
            for moved in comparison["features"]:
                if known := features.get(moved["feature"]):
                    known.distances.append(_distance(comparison, moved))
    for row in run.record.gate_rows("data"):
        if row.policy and (known := features.get(row.feature or "")):
            known.misses.append(row)
    categories = _categories(run)
    labels = {x["privacy"].get("label") for x in run.documents("statistics")}
    task = label_task(run.record.config or {})
    for feature in features.values():
        feature.is_label = feature.name in labels
        is_class = feature.is_label and task != "regression"
        feature.is_category = is_class or feature.name in categories
        feature.distances.sort(key=lambda distance: -distance.value)
    return list(features.values())


def _categories(run: RunData) -> set[str]:
    """Returns the features that are categories, by the config or by their domain."""
    configured = (run.record.config or {}).get("features") or {}
    names = {name for name, x in configured.items() if x.get("kind") in _CATEGORIES}
    return names | {
        feature["name"]
        for document in run.documents("schema")
        for feature in document["schema"].get("feature", ())
        if feature.get("int_domain", {}).get("is_categorical")
    }


def _distance(comparison: dict[str, Any], moved: dict[str, Any]) -> Distance:
    limit = None if moved["limit"] is None else float(moved["limit"])
    pair = comparison["check"], comparison["split"]
    value, chance = float(moved["distance"]), moved.get("chance")
    return Distance(*pair, moved["measure"], value, limit, chance)


def _table(features: Sequence[Feature]) -> Table:
    header: Header = ["Feature", "Type"]
    checks = {x.check: None for feature in features for x in feature.distances}
    shown = [check for check in _COMPARISONS if check in checks]
    header += [numbers(_COMPARISONS[check][0], str) for check in shown]
    header += ["Data gate", numbers("Missing", formats.percent)]
    header += ["Median, or most frequent", numbers("Distinct values"), "Data set"]
    rows = []
    for index, feature in enumerate(features, start=1):
        found, name = feature.first, formats.shorten(feature.name, 80) or "(no name)"
        link = Markup('<a href="#feature-{}" class="value">{}</a>').format(index, name)
        frequent = found.shares() if feature.is_category else found.top_values
        typical = next(iter(frequent), found.numbers.get("median"))
        rows.append(
            (
                link if _has_card(index, feature) else name,
                kind_of(found),
                *(feature.largest(check) or formats.MISSING for check in shown),
                feature.mark,
                found.numbers["missing"] / found.examples,
                formats.shorten(formats.number(typical), 30),
                found.numbers.get("unique"),
                next(iter(feature.statistics)),
            )
        )
    caption = "Features: anomalies, then the largest distances; grey: without a limit"
    return Table("features", caption, header, rows, limit=100)


def chart(feature: Feature) -> tuple[Markup | None, str]:
    """Returns the chart, and a remark on what it does not show."""
    if feature.first.sensitive:
        return None, "sensitive: counts only"
    title, whole = f"Values of {feature.name}", feature.first.is_whole
    data = _distributions(feature)
    # Few small whole numbers have a bar each in a histogram too, and in their order.
    largest = max((abs(x) for item in data for x in item.x), default=0)
    if data and not (feature.is_category and whole and largest > MAX_WHOLE):
        return histogram_chart(title, data, is_whole=whole), ""
    return _frequent_values(title, feature)


def _distributions(feature: Feature) -> list[Distribution]:
    return [
        Distribution(name, *points, style)
        for style, name, item in _in_colours(feature)
        if (points := item.cumulative())
    ]


def _in_colours(feature: Feature) -> Iterator[tuple[int, str, FeatureStatistics]]:
    """Yields the data sets, also of other names, with colour and dash."""
    for position, (name, item) in enumerate(feature.statistics.items()):
        is_known = name in _DATA_SETS
        yield _DATA_SETS.index(name) if is_known else position % 5, name, item


def _frequent_values(title: str, feature: Feature) -> tuple[Markup | None, str]:
    data = [
        (name, style, shares)
        for style, name, item in _in_colours(feature)
        if (shares := item.shares())
    ]
    if not data:
        return None, ""
    first, *others = (list(shares) for _, _, shares in data)
    new = dict.fromkeys(x for found in others for x in found[:_MAX_VALUES])
    values = first[:_MAX_VALUES] + [x for x in new if x not in first][:3]
    for _, _, shares in data:
        shares[_OTHERS] = 1 - sum(shares.get(value, 0.0) for value in values)
    if max(shares[_OTHERS] for _, _, shares in data) >= _MIN_SHARE:
        values.append(_OTHERS)
    more = int(feature.first.numbers.get("unique", 0)) - len(first[:_MAX_VALUES])
    remarks = [f"{_OTHERS}: {more:,} more distinct values"] if more > 0 else []
    # An example has several.
    remarks += ["shares of all values"] if feature.first.max_values > 1 else []
    return top_values_chart(title, values, data), "; ".join(remarks)
