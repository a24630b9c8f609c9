"""Drift and skew between two statistics, by the schema's comparators.

TFDV computes the distances: L-infinity on strings, Jensen-Shannon divergence on strings
and numbers. This module selects the features to compare and turns the result into rows.
A comparator that TFDV did not measure is an anomaly too.

TFX's DistributionValidator is not used: it takes thresholds from a config of its own
instead of the schema, needs an artifact for the baseline statistics (accepted data is
known by its URI only), and supports neither environments nor skew.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from tensorflow_metadata.proto.v0 import anomalies_pb2, schema_pb2

from components.data_verdict.schema_rows import WITHHELD, feature_name, one_line
from components.data_verdict.settings import COMPARISON_NAMES, anomaly
from schemas.data_statistics import Statistics, features_of, validate
from schemas.distances import (
    MISSING,
    Distance,
    distances_of_all,
    measured,
    on_common_edges,
    sizes,
    with_chance,
)
from schemas.loader import SERVING, TRAINING, live_features
from sluice.record.verdict import Check

_NOT_COMPARED = (
    "TFDV has measured no distance: one of both has no values of the feature that are "
    "finite numbers or text"
)


@dataclass(frozen=True)
class Pair:
    """Two statistics to compare.

    Attributes:
      kind: one of ``COMPARISON_NAMES``.
      split: the split of the current data.
      against: description of the baseline.
      current: statistics of the split.
      control: statistics of the baseline.
    """

    kind: str
    split: str
    against: str
    current: Statistics
    control: Statistics


@dataclass(frozen=True)
class Comparison:
    """Result of a comparison: the rows, and the distances of all features.

    The verdict is on those that the schema limits.
    """

    pair: Pair
    rows: tuple[Check, ...]
    distances: tuple[Distance, ...]


def compare(
    schema: schema_pb2.Schema, pair: Pair, sensitive: Collection[str] = ()
) -> Comparison:
    """Compares two statistics: by the schema's comparators, and all other features.

    Args:
      schema: with the comparators.
      pair: the statistics to compare.
      sensitive: features whose values are withheld.
    """
    is_skew = pair.kind == "skew"
    absent = SERVING if is_skew else TRAINING
    left_out = {x.name for x in schema.feature if absent in x.not_in_environment}
    distances = distances_of_all(pair.current, pair.control, left_out)
    key = "skew_comparator" if is_skew else "drift_comparator"
    features = [
        feature
        for feature in live_features(schema)
        if feature.HasField(key) and feature.name not in left_out
    ]
    if not features:
        return Comparison(pair, (), tuple(distances))
    only = schema_pb2.Schema(
        feature=features,
        string_domain=schema.string_domain,
        default_environment=schema.default_environment,
    )
    against = "serving_statistics" if is_skew else "previous_span_statistics"
    current, control = on_common_edges(pair.current, pair.control)
    anomalies = validate(current, only, **{against: control})
    judged = [with_chance(x, pair.current, pair.control) for x in measured(anomalies)]
    rows = [*_rows(pair, features, anomalies, judged, sensitive)]
    if not rows:
        passed = Check(
            check=COMPARISON_NAMES[pair.kind],
            slice=pair.split,
            limit="as in the schema",
            baseline=pair.against,
            actual=f"features compared: {len(features)}",
            why=sizes(pair.current, pair.control, judged[0]) if judged else "",
        )
        rows = [passed]
    limited = {item.feature for item in judged}
    others = (x for x in distances if x.feature not in limited or x.measure == MISSING)
    return Comparison(pair, tuple(rows), (*judged, *others))


def _rows(
    pair: Pair,
    features: Sequence[schema_pb2.Feature],
    anomalies: anomalies_pb2.Anomalies,
    distances: Sequence[Distance],
    sensitive: Collection[str],
) -> Iterator[Check]:
    """Yields a row for each distance over its limit, and for each that is unknown.

    One that chance gives with so few examples passes.
    """
    known = {*features_of(pair.current), *features_of(pair.control)}
    described = {
        feature_name(key, info): " ".join(x.description.strip() for x in info.reason)
        for key, info in anomalies.anomaly_info.items()
    }
    by_feature = defaultdict(list)
    for item in distances:
        by_feature[item.feature].append(item)
    # Features that neither has are missing, which has a row of its own.
    for name in sorted(known.intersection(feature.name for feature in features)):
        row = anomaly(
            "not_compared",
            pair.split,
            f"{COMPARISON_NAMES[pair.kind]}: {name!r}",
            _NOT_COMPARED,
            feature=name,
            limit="measured",
            baseline=pair.against,
        )
        if not by_feature[name]:
            yield row
        why = WITHHELD if name in sensitive else one_line(described.get(name, ""))
        for item in by_feature[name]:
            if item.limit is not None and item.distance > item.limit:
                said = sizes(pair.current, pair.control, item)
                by_chance = item.is_by_chance
                yield replace(
                    row,
                    kind=None if by_chance else pair.kind,
                    result="pass" if by_chance else "FAIL",
                    why=f"not judged: {said}" if by_chance else f"{said}: {why}",
                    limit=item.limit,
                    comparison="<=",
                    measure=item.measure,
                    actual=item.distance,
                )
