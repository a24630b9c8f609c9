"""The only call into TFDV, whose import brings TensorFlow and takes seconds."""

from __future__ import annotations

from tensorflow_metadata.proto.v0 import anomalies_pb2, schema_pb2, statistics_pb2


def validate(
    statistics: statistics_pb2.DatasetFeatureStatisticsList,
    schema: schema_pb2.Schema,
    *,
    environment: str | None = None,
    previous: statistics_pb2.DatasetFeatureStatisticsList | None = None,
    serving: statistics_pb2.DatasetFeatureStatisticsList | None = None,
) -> anomalies_pb2.Anomalies:
    """Returns what TFDV finds wrong with statistics.

    Args:
      statistics: of the data to judge.
      schema: what it should be like.
      environment: one of the schema's default environments; None for all features.
      previous: for the drift comparators.
      serving: for the skew comparators.
    """
    from tensorflow_data_validation.api.validation_api import (
        validate_statistics_internal,
    )

    return validate_statistics_internal(
        statistics,
        schema,
        environment=environment,
        previous_span_statistics=previous,
        serving_statistics=serving,
    )
