"""Observed properties of features from a run's statistics (TFDV's protos)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from google.protobuf.message import DecodeError
from tensorflow_metadata.proto.v0 import statistics_pb2

from schemas.diff.observed_data import (
    ObservedData,
    ObservedFeature,
    SplitPresence,
    merge_splits,
)
from sluice.errors import WorkspaceError
from sluice.splits import SPLIT_PREFIX, over_all_examples, split_statistics_path
from sluice.storage.storage import storage_for


def read_statistics(
    uri: str,
) -> dict[str, statistics_pb2.DatasetFeatureStatistics] | None:
    """Returns the statistics over all examples of each split, by its name.

    None where there is nothing at the address.

    Args:
      uri: of an ExampleStatistics artifact, local or remote.

    Raises:
      WorkspaceError: a file is missing or damaged, or no split has one.
    """
    storage = storage_for(uri)
    try:
        if not storage.exists(uri):
            return None
        names = storage.names(uri)
    except OSError as error:
        raise _unreadable(uri, error.strerror or str(error)) from error
    splits = [
        name.removeprefix(SPLIT_PREFIX)
        for name in names
        if name.startswith(SPLIT_PREFIX)
    ]
    if not splits:
        raise _unreadable(uri, "no split")
    return {split: _read(split_statistics_path(uri, split)) for split in splits}


def _read(path: str) -> statistics_pb2.DatasetFeatureStatistics:
    try:
        content = storage_for(path).read(path)
        data = statistics_pb2.DatasetFeatureStatisticsList.FromString(content)
    except OSError as error:
        raise _unreadable(path, error.strerror or str(error)) from error
    except DecodeError as error:
        raise _unreadable(path, str(error)) from error
    overall = over_all_examples(data)
    if overall is None:
        raise _unreadable(path, "no data set in it")
    return overall


def _unreadable(where: str, actual: str) -> WorkspaceError:
    return WorkspaceError(
        "the statistics cannot be read",
        where=where,
        expected="the output of StatisticsGen for each split",
        actual=actual,
        hint="run the node again: sluice run NAME --force StatisticsGen; or read the "
        "records: --data",
    )


# TFDV's placeholders for bytes that are not text and for long text (its constants.py).
_NOT_TEXT = "__BYTES_VALUE__"
_PLACEHOLDERS = (_NOT_TEXT, "__LARGE_BYTES__")
_LARGEST = (1 << 63) - 1
_STATISTICS = statistics_pb2.FeatureNameStatistics
_TYPES = {
    _STATISTICS.INT: "INT",
    _STATISTICS.FLOAT: "FLOAT",
    _STATISTICS.STRING: "BYTES",
    _STATISTICS.BYTES: "BYTES",
}


def observe_statistics(
    splits: Mapping[str, statistics_pb2.DatasetFeatureStatistics],
) -> ObservedData:
    """Returns the observed data of all splits, without nested features.

    TFDV keeps the 1,000 most frequent values of a feature, and does not count
    infinities.
    """
    return merge_splits(
        {
            split: (
                data.num_examples,
                {
                    name: _feature(name, item)
                    for item in data.features
                    if len(item.path.step) <= 1
                    for name in ["".join(item.path.step) or item.name]
                },
            )
            for split, data in splits.items()
        }
    )


def _feature(
    name: str, feature: statistics_pb2.FeatureNameStatistics
) -> ObservedFeature:
    kind = feature.WhichOneof("stats")
    stats: Any = getattr(feature, kind) if kind else statistics_pb2.StructStatistics()
    common = stats.common_stats
    present = common.num_non_missing
    if not present:
        return ObservedFeature(name)
    kind_name = _TYPES.get(feature.type, "STRUCT")
    found: dict[str, Any] = {}
    values = common.tot_num_values or present
    if kind == "num_stats":
        found = _numbers(stats, values, whole=kind_name == "INT")
    elif kind == "string_stats":
        found = _texts(stats, values, whole=kind_name == "INT")
    elif kind == "bytes_stats":
        found = {"distinct": stats.unique}
    return ObservedFeature(
        name=name,
        types={kind_name: present},
        presence=(SplitPresence("", present, present + common.num_missing),),
        values=values,
        min_values=common.min_num_values,
        max_values=common.max_num_values,
        **found,
    )


def _numbers(
    stats: statistics_pb2.NumericStatistics, values: int, *, whole: bool
) -> dict[str, Any]:
    nans = max((item.num_nan for item in stats.histograms), default=0)
    found: dict[str, Any] = {
        "nans": nans,
        "infinities": math.isinf(stats.min) + math.isinf(stats.max),
    }
    if values > nans:  # Otherwise TFDV leaves both unset, and they read as 0.
        for key, value in (("low", stats.min), ("high", stats.max)):
            if math.isfinite(value):
                # The largest integer, 2^63 - 1, is rounded to 2^63 as a double.
                found[key] = min(int(value), _LARGEST) if whole else value
    return found


def _texts(
    stats: statistics_pb2.StringStatistics, values: int, *, whole: bool
) -> dict[str, Any]:
    buckets = stats.rank_histogram.buckets
    listed = [(item.label, round(item.sample_count)) for item in buckets] or [
        (item.value, round(item.frequency)) for item in stats.top_values
    ]
    counts = {value: count for value, count in listed if value not in _PLACEHOLDERS}
    not_text = sum(count for value, count in listed if value == _NOT_TEXT)
    found: dict[str, Any] = {
        "counts": counts,
        "distinct": stats.unique,
        "unlisted": max(0, values - sum(counts.values()) - not_text),
        "not_text": max(not_text, stats.invalid_utf8_count),
    }
    if whole:  # Categorical integers: the values are numbers as text.
        numbers = [int(value) for value in counts]
        found |= {"low": min(numbers, default=None), "high": max(numbers, default=None)}
    return found
