"""Features of the data: one table, and a chart of each feature's values.

The chart shows the splits, the data accepted last, and serving requests. Features with
anomalies come first, then those whose values are distributed most differently.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from markupsafe import Markup

from reports import formats
from reports.charts.bars import Distribution, histogram_chart, top_values_chart
from reports.charts.svg import is_finite
from reports.feature_statistics import FeatureStatistics, kind_of, statistics
from reports.read_run import RunData
from reports.tables import Header, Mark, Table, decimals, numbers
from sluice.record.verdict import Check

BASELINE = "accepted data"
MAX_CARDS = 200
# Of each comparison the column, and what it says of a split.
_COMPARISONS = {
    "drift": ("Since the accepted data", "{split} since the accepted data"),
    "split_drift": ("Train against eval", "train against eval"),
    "skew": ("Against serving", "{split} against serving requests"),
}
# A smaller distance is no shift that is worth a picture.
_MIN_SHIFT = 0.001
_MAX_VALUES = 10
# Each has a colour of its own.
_DATA_SETS = ("train", "eval", "test", BASELINE, "serving")
_RESULTS = {
    "fail": Mark("bad", "fail"),
    "warn": Mark("warn", "warn"),
    "ignore": Mark("quiet", "ignored"),
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
    """

    check: str
    split: str
    measure: str
    value: float
    limit: float | None

    @property
    def tone(self) -> str:
        if self.limit is None:
            return "quiet"
        return "bad" if self.value > self.limit else ""

    @property
    def text(self) -> str:
        """A line of the feature's card."""
        _, words = _COMPARISONS.get(self.check, ("", f"{{split}} {self.check}"))
        where = words.replace("{split}", self.split)
        limit = "no limit" if self.limit is None else f"limit {decimals(self.limit)}"
        return f"{where}: {self.measure} {decimals(self.value)}, {limit}"

    def __str__(self) -> str:
        if self.limit is None:
            return decimals(self.value)
        sign = ">" if self.value > self.limit else "≤"
        return f"{decimals(self.value)} {sign} {formats.number(self.limit)}"


@dataclass
class Feature:
    """What the record has on one feature.

    Attributes:
      statistics: by data set: the splits, and ``accepted data``.
      distances: from other data, the largest first.
      misses: rows of the data gate that miss.
    """

    name: str
    statistics: dict[str, FeatureStatistics] = field(default_factory=dict)
    distances: list[Distance] = field(default_factory=list)
    misses: list[Check] = field(default_factory=list)

    @property
    def first(self) -> FeatureStatistics:
        """The statistics of the first split, mostly ``train``."""
        return next(iter(self.statistics.values()))

    @property
    def mark(self) -> Mark | None:
        """The worst result of the data gate."""
        found = [row.severity for row in self.misses]
        return next((mark for name, mark in _RESULTS.items() if name in found), None)

    @property
    def interest(self) -> tuple[float, float]:
        """Sorts what a reader should see first to the front."""
        ranks = [[*_RESULTS].index(row.severity or "ignore") for row in self.misses]
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
    return {
        "table": _table(features),
        "cards": [(feature, *chart(feature)) for feature in features[:MAX_CARDS]],
        "without_card": len(features[MAX_CARDS:]),
    }


def read_features(run: RunData) -> list[Feature]:
    """Returns the features in the order of the statistics."""
    found = list(statistics(run))
    found.sort(key=lambda split: [*_DATA_SETS, split.split].index(split.split))
    data = [(split.split, split.features) for split in found]
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
        if row.severity and (known := features.get(row.feature or "")):
            known.misses.append(row)
    for feature in features.values():
        feature.distances.sort(key=lambda distance: -distance.value)
    return list(features.values())


def _distance(comparison: dict[str, Any], moved: dict[str, Any]) -> Distance:
    limit = None if moved["limit"] is None else float(moved["limit"])
    pair = comparison["check"], comparison["split"]
    return Distance(*pair, moved["measure"], float(moved["distance"]), limit)


def largest_shifts(
    run: RunData, count: int
) -> list[tuple[Feature, Distance, Markup | None]]:
    """Returns the features that differ most from the data accepted last.

    Each with the distance and its chart, None for a sensitive feature.
    """
    shifts = [(x, moved) for x in read_features(run) if (moved := x.largest("drift"))]
    shifts.sort(key=lambda shift: -shift[1].value)
    return [
        (feature, moved, chart(feature)[0])
        for feature, moved in shifts[:count]
        if moved.value >= _MIN_SHIFT
    ]


def _table(features: Sequence[Feature]) -> Table:
    header: Header = ["Feature", "Type", "Data set"]
    header.append(numbers("Missing", formats.percent))
    header += [numbers("Distinct values"), "Median, or most frequent"]
    checks = {x.check: None for feature in features for x in feature.distances}
    shown = [check for check in _COMPARISONS if check in checks]
    header += [numbers(_COMPARISONS[check][0], _cell) for check in shown]
    header.append("Data gate")
    rows = []
    for index, feature in enumerate(features, start=1):
        found, name = feature.first, formats.shorten(feature.name, 80) or "(no name)"
        link = Markup('<a href="#feature-{}" class="value">{}</a>').format(index, name)
        typical = next(iter(found.top_values), found.numbers.get("median"))
        rows.append(
            (
                link if index <= MAX_CARDS else name,
                kind_of(found),
                next(iter(feature.statistics)),
                found.numbers["missing"] / found.examples,
                found.numbers.get("unique"),
                formats.shorten(formats.number(typical), 30),
                *(feature.largest(check) for check in shown),
                feature.mark,
            )
        )
    caption = "Features: anomalies first, then the largest distances"
    return Table("features", caption, header, rows, limit=100)


def _cell(distance: Distance | None) -> str:
    return formats.MISSING if distance is None else str(distance)


def chart(feature: Feature) -> tuple[Markup | None, str]:
    """Returns the chart, and a remark on what it does not show."""
    if feature.first.sensitive:
        return None, "sensitive: counts only"
    known = {name: style for style, name in enumerate(_DATA_SETS)}
    known |= {"after": 0, "before": 3}  # Of two runs.
    shown = {name: x for name, x in feature.statistics.items() if name in known}
    shown = shown or dict([*feature.statistics.items()][:1])
    title = f"Values of {feature.name}"
    distributions = [
        Distribution(name, *points, known.get(name, 0))
        for name, item in shown.items()
        if (points := item.cumulative())
    ]
    if distributions:
        whole = feature.first.is_whole
        return histogram_chart(title, distributions, is_whole=whole), ""
    data = [
        (name, known.get(name, 0), _shares(item))
        for name, item in shown.items()
        if item.top_values
    ]
    if not data:
        return None, ""
    first, *others = (list(shares) for _, _, shares in data)
    values = first[:_MAX_VALUES]
    new = dict.fromkeys(x for found in others for x in found[:_MAX_VALUES])
    new_values = [value for value in new if value not in first][:3]
    more = int(feature.first.numbers.get("unique", 0)) - len(values)
    remark = f"{more:,} more distinct values" if more > 0 else ""
    return top_values_chart(title, values + new_values, data), remark


def _shares(found: FeatureStatistics) -> dict[str, float]:
    """Returns the share of the examples with each of the most frequent values."""
    present = found.numbers["present"] or 1
    shares = {value: count / present for value, count in found.top_values.items()}
    return {value: share for value, share in shares.items() if is_finite(share)}
