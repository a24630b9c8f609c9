"""Features of the data: one table, and a chart of each feature's values.

The chart shows the splits, the data accepted last, and serving requests. Features with
anomalies come first, then those closest to their drift limit.
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
from reports.tables import Header, Mark, Table, numbers
from sluice.record.verdict import Check

BASELINE = "accepted data"
MAX_CARDS = 200
_COMPARISONS = {
    "drift": "{split} since the accepted data",
    "split_drift": "train against eval",
    "skew": "{split} against serving requests",
}
_MAX_VALUES = 10
# Each has a colour of its own.
_DATA_SETS = ("train", "eval", "test", BASELINE, "serving")
_RESULTS = {
    "fail": Mark("bad", "fail"),
    "warn": Mark("warn", "warn"),
    "ignore": Mark("quiet", "ignored"),
}


@dataclass
class Feature:
    """What the record has on one feature.

    Attributes:
      statistics: by data set: the splits, and ``accepted data``.
      distances: as in the document, the largest relative to its limit first.
      misses: rows of the data gate that miss.
    """

    name: str
    statistics: dict[str, FeatureStatistics] = field(default_factory=dict)
    distances: list[dict[str, Any]] = field(default_factory=list)
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
        share = self.distances[0]["share"] if self.distances else 0.0
        return min(ranks, default=len(_RESULTS)), -share

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
        feature.distances.sort(key=lambda distance: -distance["share"])
    return list(features.values())


def _distance(comparison: dict[str, Any], moved: dict[str, Any]) -> dict[str, Any]:
    value, limit = float(moved["distance"]), float(moved["limit"])
    check, split = comparison["check"], comparison["split"]
    text = _COMPARISONS.get(check, f"{split} {check}").replace("{split}", split)
    text = f"{text}: {moved['measure']} {formats.number(value)}"
    return {
        "value": value,
        "limit": limit,
        "share": value / limit if limit else value,
        "text": f"{text}, limit {formats.number(limit)}",
    }


def _table(features: Sequence[Feature]) -> Table:
    header: Header = ["Feature", "Type", "Data set"]
    header.append(numbers("Missing", formats.percent))
    header += [numbers("Distinct values"), "Median, or most frequent"]
    header += [numbers("Distance"), numbers("Limit"), "Data gate"]
    rows = []
    for index, feature in enumerate(features, start=1):
        found, name = feature.first, formats.shorten(feature.name, 80) or "(no name)"
        link = Markup('<a href="#feature-{}" class="value">{}</a>').format(index, name)
        typical = next(iter(found.top_values), found.numbers.get("median"))
        distance = feature.distances[0] if feature.distances else {}
        rows.append(
            (
                link if index <= MAX_CARDS else name,
                kind_of(found),
                next(iter(feature.statistics)),
                found.numbers["missing"] / found.examples,
                found.numbers.get("unique"),
                formats.shorten(formats.number(typical), 30),
                distance.get("value"),
                distance.get("limit"),
                feature.mark,
            )
        )
    return Table("features", "Features", header, rows, limit=100)


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
