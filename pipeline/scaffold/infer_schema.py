"""Infers a schema from statistics: TFDV's own, with the domains that a person expects.

The result is meant to be reviewed.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from tensorflow_metadata.proto.v0 import schema_pb2, statistics_pb2

from schemas.data_statistics import import_tfdv
from schemas.features import SERVING, TRAINING, without_values

# A feature with more values gets no domain: new ones are expected. Days are 31.
MAX_DOMAIN = 31
# A split has a feature at least once if so many of all records have it.
_REQUIRED_FRACTION = 0.5


def infer_schema(
    statistics: statistics_pb2.DatasetFeatureStatisticsList,
    label: str | None = None,
    sensitive: Collection[str] = (),
) -> schema_pb2.Schema:
    """Returns the inferred schema.

    Args:
      statistics: of all records.
      label: gets a domain of its classes, and is not in the serving environment.
      sensitive: features that get no domain.
    """
    schema = import_tfdv().infer_schema(statistics, max_string_domain_size=MAX_DOMAIN)
    schema.default_environment[:] = [TRAINING, SERVING]
    found = {
        item.path.step[0]: item
        for dataset in statistics.datasets
        for item in dataset.features
    }
    for feature in schema.feature:
        stats = found[feature.name]
        values: Any = getattr(stats, stats.WhichOneof("stats"))
        common = values.common_stats
        records = common.num_non_missing + common.num_missing
        if common.num_non_missing < _REQUIRED_FRACTION * records:
            feature.presence.ClearField("min_count")
        # TFDV calls 0 and 1 a boolean, which has no classes.
        feature.ClearField("bool_domain")
        if feature.name == label:
            feature.not_in_environment.append(SERVING)
            _set_classes(schema, feature, values)
        elif feature.type == schema_pb2.INT and values.min >= 0:
            feature.int_domain.min = 0
        elif feature.type == schema_pb2.FLOAT and values.min >= 0:
            feature.float_domain.min = 0
    return without_values(schema, sensitive)


def _set_classes(
    schema: schema_pb2.Schema, feature: schema_pb2.Feature, stats: Any
) -> None:
    if feature.type == schema_pb2.INT:
        set_int_classes(feature, int(stats.min), int(stats.max))
    elif feature.type == schema_pb2.BYTES and not stats.invalid_utf8_count:
        values = [bucket.label for bucket in stats.rank_histogram.buckets]
        kept = [item for item in schema.string_domain if item.name != feature.domain]
        del schema.string_domain[:]
        schema.string_domain.extend(kept)
        feature.domain = feature.name
        schema.string_domain.add(name=feature.name, value=sorted(values))


def set_int_classes(feature: schema_pb2.Feature, low: int, high: int) -> None:
    """Declares whole numbers as classes, all those between two bounds."""
    feature.int_domain.min, feature.int_domain.max = low, high
    feature.int_domain.is_categorical = True
