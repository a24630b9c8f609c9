"""Reads the statistics that StatisticsGen has written, from TFDV's protos alone."""

from __future__ import annotations

from pathlib import Path

from google.protobuf.message import DecodeError
from tensorflow_metadata.proto.v0 import statistics_pb2

from sluice.errors import WorkspaceError
from sluice.splits import SPLIT_PREFIX, STATISTICS_FILE, over_all_examples


def read_statistics(
    directory: Path,
) -> dict[str, statistics_pb2.DatasetFeatureStatistics]:
    """Returns the statistics over all examples of each split, by its name.

    Args:
      directory: an ExampleStatistics artifact.

    Raises:
      WorkspaceError: a file is missing or damaged, or there is none.
    """
    splits = {}
    for folder in sorted(directory.glob(f"{SPLIT_PREFIX}*")):
        split = folder.name.removeprefix(SPLIT_PREFIX)
        splits[split] = _read(folder / STATISTICS_FILE)
    if not splits:
        raise _unreadable(directory, "no split")
    return splits


def _read(path: Path) -> statistics_pb2.DatasetFeatureStatistics:
    try:
        data = statistics_pb2.DatasetFeatureStatisticsList.FromString(path.read_bytes())
    except OSError as error:
        raise _unreadable(path, error.strerror or str(error)) from error
    except DecodeError as error:
        raise _unreadable(path, str(error)) from error
    overall = over_all_examples(data)
    if overall is None:
        raise _unreadable(path, "no data set in it")
    return overall


def _unreadable(where: Path, actual: str) -> WorkspaceError:
    return WorkspaceError(
        "These statistics cannot be read.",
        where=where,
        expected="what StatisticsGen writes for each split",
        actual=actual,
        hint="run the node again: sluice run NAME --force StatisticsGen; or look at "
        "the records: --data",
    )
