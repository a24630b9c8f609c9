"""Anomalies document: what TFDV reports in an ``ExampleAnomalies`` artifact."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from tensorflow_metadata.proto.v0 import anomalies_pb2

from sluice.record.documents.damage import damage_explained
from sluice.splits import SPLIT_PREFIX

MAX_ANOMALIES = 200
MAX_TEXT_CHARS = 1000
ANOMALIES_FILE = "SchemaDiff.pb"


def anomalies_document(
    directory: Path, split_names: Sequence[str], sensitive: Collection[str] = ()
) -> dict[str, Any]:
    """Returns the anomalies of each split.

    Args:
      directory: the artifact.
      split_names: those of the artifact.
      sensitive: features of which no values are shown.

    Raises:
      WorkspaceError: a file is damaged.
      OSError: the artifact cannot be read.
    """
    return {
        "splits": [
            _split(name, directory / f"{SPLIT_PREFIX}{name}", sensitive)
            for name in split_names
        ]
    }


def _split(name: str, folder: Path, sensitive: Collection[str]) -> dict[str, Any]:
    path = folder / ANOMALIES_FILE
    expected = "Anomalies as TFX's ExampleValidator writes them"
    with damage_explained("these anomalies", path, expected):
        found = anomalies_pb2.Anomalies.FromString(path.read_bytes())
    described = [
        _describe(feature, reason, info, is_sensitive=feature in sensitive)
        for feature, info in sorted(found.anomaly_info.items())
        for reason in info.reason
    ]
    if found.data_missing:
        described.insert(0, _DATA_MISSING)
    return {
        "split": name,
        "anomalies": described[:MAX_ANOMALIES],
        "anomalies_left_out": max(0, len(described) - MAX_ANOMALIES),
    }


_DATA_MISSING = {
    "feature": None,
    "kind": "DATA_MISSING",
    "severity": "error",
    "short": "Data missing",
    "long": "There are no examples.",
}


def _describe(
    feature: str, reason: Any, info: Any, *, is_sensitive: bool
) -> dict[str, Any]:
    kinds = anomalies_pb2.AnomalyInfo
    return {
        "feature": feature,
        "kind": kinds.Type.Name(reason.type),
        "severity": kinds.Severity.Name(info.severity).lower(),
        "short": reason.short_description,
        "long": None if is_sensitive else reason.description[:MAX_TEXT_CHARS],
    }
