"""Checks integer domains exactly beyond 2^53, where TFDV's doubles cannot.

A double represents every integer up to 2^53, and rounds larger ones. TFDV compares the
minimum and maximum of a feature with the schema's bounds as doubles, and converts 2^63,
to which 2^63 - 1 is rounded, to a negative number: so 2^63 - 1, a common marker of
missing values, passes every domain. Beyond 2^53 the statistics are compared here
instead; where bound and statistic are the same double, the records are read again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace

from tensorflow_metadata.proto.v0 import schema_pb2, statistics_pb2

from components.data_verdict.finding import Finding
from components.data_verdict.limit_and_actual import describe_actual, describe_limit
from components.data_verdict.record_check import record_check
from components.data_verdict.schema_findings import features_of, withhold_values
from components.data_verdict.search_records import Search
from schemas.features import live_features, number_bounds
from sluice.splits import number_of_examples

_EXACT = 2.0**53
_OUTSIDE, _UNKNOWN = "out_of_range", "not_compared"

# By split and feature: whether a value is out of range; None if that is unknown.
# Features whose statistics are exact are left out.
Breaches = Mapping[str, Mapping[str, bool | None]]


def int_breaches(
    statistics: Mapping[str, statistics_pb2.DatasetFeatureStatisticsList | None],
    schema: schema_pb2.Schema,
    search: Callable[[list[Search]], None],
) -> Breaches:
    """Returns which features with integers beyond 2^53 break the schema's bounds.

    Args:
      statistics: by split.
      schema: with the bounds.
      search: runs searches over the records.
    """
    breaches = {
        split: dict(_by_statistics(found, schema))
        for split, found in statistics.items()
    }
    searches = [
        Search(split, name, breaks, most=1)
        for split, found in breaches.items()
        for name, breach in found.items()
        if breach is None and (breaks := record_check(_OUTSIDE, name, schema))
    ]
    if searches:
        search(searches)
    for item in searches:
        is_read = item.read >= number_of_examples(statistics[item.split])
        breaches[item.split][item.feature] = (
            bool(item.found) if (item.found or is_read) else None
        )
    return breaches


def _by_statistics(
    statistics: statistics_pb2.DatasetFeatureStatisticsList | None,
    schema: schema_pb2.Schema,
) -> Iterator[tuple[str, bool | None]]:
    bounds = {
        feature.name: found
        for feature in live_features(schema)
        if feature.WhichOneof("domain_info") == "int_domain"
        and (found := number_bounds(feature))
    }
    for name, feature in features_of(statistics).items():
        numbers = feature.num_stats
        if feature.type != feature.INT or feature.WhichOneof("stats") != "num_stats":
            continue
        if name in bounds and max(-numbers.min, numbers.max) >= _EXACT:
            low, high = bounds[name]
            yield name, _is_outside(numbers.min, low, numbers.max, high)


def _is_outside(
    least: float, low: float | None, largest: float, high: float | None
) -> bool | None:
    """Compares as doubles; None if a statistic and its bound are the same double."""
    too_small = low is not None and least < float(low)
    too_large = high is not None and largest > float(high)
    if too_small or too_large:
        return True
    same = [
        value
        for value, bound in ((least, low), (largest, high))
        if bound is not None and value == float(bound) and abs(value) >= _EXACT
    ]
    return None if same else False


def int_range_findings(
    split: str,
    breaches: Mapping[str, bool | None],
    statistics: statistics_pb2.DatasetFeatureStatisticsList | None,
    sensitive: Collection[str],
    schema: schema_pb2.Schema,
) -> list[Finding]:
    """Returns a finding for each breach, and for each feature that is unknown.

    Args:
      split: the split's name.
      breaches: by feature, of ``int_breaches``.
      statistics: of the split.
      sensitive: features whose values are withheld.
      schema: with the bounds.
    """
    by_name = features_of(statistics)
    findings = []
    for name, breach in breaches.items():
        if breach is False:
            continue
        finding = Finding(
            kind=_UNKNOWN,
            split=split,
            check=f"feature {name!r}",
            why="the schema's bound is beyond 2^53, where statistics are not exact, "
            "and the records could not all be read again",
            feature=name,
            limit="measured",
            actual=None,
        )
        if breach:
            finding = replace(
                finding,
                kind=_OUTSIDE,
                why="contains integers outside the schema's range",
                limit=describe_limit(_OUTSIDE, name, schema),
                actual=describe_actual(_OUTSIDE, by_name[name]),
            )
            finding = withhold_values(finding) if name in sensitive else finding
        findings.append(finding)
    return findings
