"""Statistics document: the content of an ``ExampleStatistics`` artifact.

Only the statistics over all examples of a split are kept; TFDV's slices are counted.
Nothing here imports TensorFlow.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from tensorflow_metadata.proto.v0 import statistics_pb2

from sluice.record.documents.damage import damage_explained
from sluice.record.documents.feature_statistics import feature_name, feature_statistics
from sluice.splits import (
    BASELINE_DIR,
    BASELINE_ENTRY,
    SPLIT_PREFIX,
    STATISTICS_FILE,
    over_all_examples,
    split_statistics_path,
)

MAX_FEATURES = 1000


def statistics_document(
    directory: Path, split_names: Sequence[str], *, sensitive: Collection[str] = ()
) -> dict[str, Any]:
    """Returns the statistics of every split.

    TFX's StatisticsGen writes a folder per split, its Transform one file for all, whose
    ``split`` is None.

    Args:
      directory: the artifact.
      split_names: those of the artifact; empty for all that exist.
      sensitive: features of which only counts are shown.

    Raises:
      WorkspaceError: there are no statistics, or a file is damaged.
      OSError: the artifact or a file cannot be read.
    """
    if not split_names:
        split_names = sorted(
            path.name.removeprefix(SPLIT_PREFIX)
            for path in directory.iterdir()
            if path.name.startswith(SPLIT_PREFIX)
        )
    if not split_names:
        return {"splits": [_split(None, directory / STATISTICS_FILE, sensitive)]}
    return {
        "splits": [
            _split(name, Path(split_statistics_path(str(directory), name)), sensitive)
            for name in split_names
        ]
    }


def baseline_document(
    directory: Path, *, sensitive: Collection[str] = ()
) -> dict[str, Any] | None:
    """Returns the statistics that a verdict on data compared with; None without any.

    Args:
      directory: the verdict's artifact.
      sensitive: features of which only counts are shown.

    Raises:
      SluiceError, OSError: as ``statistics_document``.
      ValueError: the description of the data is damaged.
    """
    try:
        entry = json.loads((directory / BASELINE_ENTRY).read_bytes())
    except FileNotFoundError:
        return None
    keys = ("name", "accepted_at", "run_id", "spans", "override")
    splits = list(entry["splits"])
    found = statistics_document(directory / BASELINE_DIR, splits, sensitive=sensitive)
    return {"baseline": {key: entry[key] for key in keys}, **found}


def _split(name: str | None, path: Path, sensitive: Collection[str]) -> dict[str, Any]:
    expected = "a DatasetFeatureStatisticsList as StatisticsGen writes it"
    with damage_explained("these statistics", path, expected):
        parse = statistics_pb2.DatasetFeatureStatisticsList.FromString
        overall = over_all_examples(found := parse(path.read_bytes()))
        if overall is None:
            raise ValueError("no data set in it")
    return {
        "split": name,
        "examples": overall.num_examples,
        "slices_left_out": len(found.datasets) - 1,
        "features": [
            feature_statistics(item, sensitive=feature_name(item) in sensitive)
            for item in overall.features[:MAX_FEATURES]
        ],
        "features_left_out": max(0, len(overall.features) - MAX_FEATURES),
    }
