"""TFDV's statistics: of records, computed in this process, or of a run."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from tensorflow_metadata.proto.v0 import anomalies_pb2, schema_pb2, statistics_pb2

from sluice.compat import hidden_native_logs
from sluice.errors import DataError
from sluice.splits import SPLIT_PREFIX, split_statistics_path
from sluice.storage.storage import storage_for

if TYPE_CHECKING:
    import pyarrow

Statistics: TypeAlias = statistics_pb2.DatasetFeatureStatisticsList
Feature: TypeAlias = statistics_pb2.FeatureNameStatistics
_QUANTILES = 100  # TFDV's default of 10 cannot tell distributions apart.


def import_tfdv() -> Any:
    """Returns TFDV, whose import brings TensorFlow and takes seconds."""
    with hidden_native_logs():
        import tensorflow_data_validation as tfdv
    return tfdv


def not_finite(feature: Feature) -> tuple[int, int]:
    """Returns how many values of a number are NaN, and how many are infinite.

    TFDV counts infinities only in its histogram, those below zero by an estimate.
    """
    numbers, standard = feature.num_stats, statistics_pb2.Histogram.STANDARD
    histograms = [one for one in numbers.histograms if one.type == standard]
    infinite = sum(
        bucket.sample_count
        for histogram in histograms
        for bucket in histogram.buckets
        if math.isinf(bucket.low_value)
    )
    least = math.isinf(numbers.min) + math.isinf(numbers.max)
    nan = sum(histogram.num_nan for histogram in histograms)
    return nan, max(round(infinite), least)


def decode_records(records: Sequence[bytes]) -> pyarrow.RecordBatch:
    """Returns serialized tf.Examples as a column per feature, as TFX decodes them.

    Raises:
      DataError: a feature has different types.
    """
    from tfx_bsl.coders.example_coder import ExamplesToRecordBatchDecoder

    try:
        return ExamplesToRecordBatchDecoder().DecodeBatch(records)
    except RuntimeError as error:
        raise DataError(f"the records cannot be decoded: {error}") from error


def compute_statistics(records: Iterable[bytes]) -> Statistics:
    """Returns the statistics of serialized tf.Examples, without Beam.

    Raises:
      DataError: a feature has different types.
    """
    options = import_tfdv().StatsOptions(num_quantiles_histogram_buckets=_QUANTILES)
    from tensorflow_data_validation.statistics import stats_impl

    batch = decode_records([*records])
    return stats_impl.generate_statistics_in_memory(batch, options)


def read_statistics(uri: str) -> dict[str, Statistics]:
    """Returns the statistics of each split, by its name; none if they are deleted.

    Args:
      uri: of an ExampleStatistics artifact, local or remote.
    """
    storage = storage_for(uri)
    names = storage.names(uri) if storage.exists(uri) else []
    splits = [
        name.removeprefix(SPLIT_PREFIX)
        for name in names
        if name.startswith(SPLIT_PREFIX)
    ]
    return {
        split: Statistics.FromString(storage.read(split_statistics_path(uri, split)))
        for split in splits
    }


def common_stats(feature: Feature) -> statistics_pb2.CommonStatistics:
    """Returns what the statistics of all types have in common."""
    return getattr(feature, feature.WhichOneof("stats") or "").common_stats


def features_of(statistics: Statistics | None) -> dict[str, Feature]:
    """Returns the statistics of each feature that has any, by name."""
    return {
        ".".join(feature.path.step): feature
        for dataset in (statistics.datasets if statistics is not None else ())
        for feature in dataset.features
        if feature.WhichOneof("stats")
    }


def validate_in(
    environment: str, statistics: Statistics, schema: schema_pb2.Schema
) -> anomalies_pb2.Anomalies:
    """Returns TFDV's anomalies in an environment; the schema need not declare it."""
    declared = copy.deepcopy(schema)
    if environment not in declared.default_environment:
        declared.default_environment.append(environment)
    return validate(statistics, declared, environment=environment)


def validate(statistics: Statistics, schema: schema_pb2.Schema, **options: Any) -> Any:
    """Returns TFDV's ``Anomalies``; options are those of TFDV's function.

    The only call into TFDV, whose import brings TensorFlow and takes seconds.
    """
    import_tfdv()
    from tensorflow_data_validation.api import validation_api

    return validation_api.validate_statistics_internal(statistics, schema, **options)
