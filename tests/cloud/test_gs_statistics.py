"""``sluice schema diff`` with a run's statistics on ``gs://``."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import statistics_pb2

from pipeline.config.problems import Origin
from runners.operations.compare_schema import from_run
from sluice.record.parts import NodeRecord
from sluice.record.run_record import RunRecord
from sluice.workspace import Workspace

pytestmark = pytest.mark.cloud

STATISTICS = """
  datasets {
    num_examples: 20
    features {
      path { step: "tip" } type: INT
      num_stats { common_stats { num_non_missing: 20 tot_num_values: 20 } max: 1 }
    }
  }
"""


def _record_run(root: Path, run_id: str, statistics: str) -> None:
    workspace = Workspace(root / "trips")
    workspace.prepare()
    node = NodeRecord("StatisticsGen", "StatisticsGen", state="ran")
    node.outputs = {"statistics": [statistics]}
    record = RunRecord(run_id, "trips", "2026-01-01T00:00:00+00:00", "sluice run")
    record.status, record.exit_code, record.nodes = "succeeded", 0, [node]
    workspace.run_dir(run_id).mkdir()
    record.save(workspace.run_dir(run_id))


@pytest.fixture
def trips(bucket: Any, tmp_path: Path, monkeypatch: Any) -> Any:
    """Two runs whose outputs are in the bucket; those of the newer are deleted."""
    _record_run(tmp_path, "20260101-000000-old", bucket.uri("StatisticsGen/1"))
    _record_run(tmp_path, "20260102-000000-new", bucket.uri("StatisticsGen/2"))
    data = statistics_pb2.DatasetFeatureStatisticsList()
    content = text_format.Parse(STATISTICS, data).SerializeToString()
    for split in ("train", "eval"):
        bucket.put(f"StatisticsGen/1/Split-{split}/FeatureStats.pb", content)
    monkeypatch.setenv("SLUICE_WORKSPACE", str(tmp_path))
    return SimpleNamespace(
        name="trips", root=tmp_path, origin=Origin(tmp_path, "trips.yaml")
    )


def test_statistics_are_read_from_the_bucket(bucket, trips):
    source = from_run(trips)
    assert source.facts == {
        "kind": "run",
        "run_id": "20260101-000000-old",
        "path": bucket.uri("StatisticsGen/1"),
    }
    assert source.splits == {"eval": 20, "train": 20}
