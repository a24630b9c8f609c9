"""Names of splits, and of their statistics files."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tensorflow_metadata.proto.v0 import statistics_pb2

# Serving requests: no split of the data that is trained on.
SERVING = "serving"
STATISTICS_FILE = "FeatureStats.pb"
SPLIT_PREFIX = "Split-"
# Below the data gate's verdict: the entry of the data that it compared with, and the
# statistics of each split.
BASELINE_DIR = "baseline"
BASELINE_ENTRY = f"{BASELINE_DIR}/record.json"
# TFDV's name for the examples of all slices together (its constants.py); without
# slicing the only data set has no name.
_ALL_EXAMPLES = ("", "All Examples")


def split_statistics_path(artifact: str, split: str) -> str:
    """Returns where the statistics of a split are, below an artifact's folder."""
    return os.path.join(artifact, f"{SPLIT_PREFIX}{split}", STATISTICS_FILE)


def over_all_examples(
    statistics: statistics_pb2.DatasetFeatureStatisticsList,
) -> statistics_pb2.DatasetFeatureStatistics | None:
    """Returns the statistics that are not of a slice, None if there are none at all."""
    data_sets = statistics.datasets
    named = (item for item in data_sets if item.name in _ALL_EXAMPLES)
    return next(named, data_sets[0] if data_sets else None)


def number_of_examples(
    statistics: statistics_pb2.DatasetFeatureStatisticsList | None,
) -> int:
    """Returns how many examples statistics were computed from; 0 if there are none."""
    overall = over_all_examples(statistics) if statistics is not None else None
    return int(overall.num_examples) if overall is not None else 0
