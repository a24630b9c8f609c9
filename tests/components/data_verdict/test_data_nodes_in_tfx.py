"""DataVerdict, DataGate and AcceptData run by TFX's launcher."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from components.accept_data.data_baselines import (
    RECORD_FILE,
    find_data_baseline,
    identify,
    read_entry,
)
from components.data_verdict.policy import Policy
from components.tfrecord_gen.report import Report
from sluice.record.verdict import Verdict

pytestmark = pytest.mark.tf

SPLITS = ("train", "eval")


def test_the_driver_names_the_entry_that_the_store_has(bench):
    bench.judge(spans=(1,))
    bench.accept()
    bench.judge(bench.records(220), spans=(2,))
    report = Report.load(str(bench.folder / "q"))
    found = asdict(find_data_baseline(str(bench.baseline_store), identify(report)))
    found["damaged"] = list(found["damaged"])
    assert json.loads(bench.properties["baseline"]) == found
    assert Path(found["record"]).is_file()


def _pipeline(bench: Any) -> Any:
    """Returns a pipeline of the three nodes, on what the bench has made last."""
    from tfx.dsl.components.common.importer import Importer
    from tfx.orchestration import metadata, pipeline
    from tfx.types import standard_artifacts

    from components import artifacts
    from components.accept_data.component import AcceptData
    from components.data_gate.component import DataGate
    from components.data_verdict.component import DataVerdict
    from components.tfrecord_gen.checking.hash_splits import HashSplits

    kinds = {
        "statistics": standard_artifacts.ExampleStatistics,
        "anomalies": standard_artifacts.ExampleAnomalies,
        "schema": standard_artifacts.Schema,
        "quarantine": artifacts.Quarantine,
    }
    imported = {
        key: Importer(source_uri=bench.inputs[key][0].uri, artifact_type=kind).with_id(
            f"Import-{key}"
        )
        for key, kind in kinds.items()
    }
    inputs = {key: node.outputs["result"] for key, node in imported.items()}
    verdict = DataVerdict(
        **inputs,
        splits=SPLITS,
        policy=Policy(),
        baseline_store=str(bench.baseline_store),
        sensitive=["pay"],
        hash_splits=HashSplits(train=8, eval=2, by="user"),
    )
    gate = DataGate(verdict=verdict.outputs["verdict"])
    accept = AcceptData(
        statistics=inputs["statistics"],
        quarantine=inputs["quarantine"],
        verdict=verdict.outputs["verdict"],
        splits=SPLITS,
        baseline_store=str(bench.baseline_store),
    )
    accept.add_upstream_node(gate)
    return pipeline.Pipeline(
        pipeline_name="data",
        pipeline_root=str(bench.root / "root"),
        components=[*imported.values(), verdict, gate, accept],
        metadata_connection_config=metadata.sqlite_metadata_connection_config(
            str(bench.root / "metadata.db")
        ),
    )


def test_the_nodes_run_inside_tfx(bench):
    from tfx.orchestration.local.local_dag_runner import LocalDagRunner

    bench.judge(spans=(1,))
    LocalDagRunner().run(_pipeline(bench))
    assert (bench.baseline_store / "1" / RECORD_FILE).is_file()
    bench.judge(bench.records(220), spans=(2,))
    LocalDagRunner().run(_pipeline(bench))
    assert (bench.baseline_store / "2" / RECORD_FILE).is_file()
    folders = (bench.root / "root" / "DataVerdict" / "verdict").iterdir()
    first, second = sorted(folders, key=lambda path: int(path.name))
    assert "drift since the data accepted last" not in {
        row.check for row in Verdict.load(first).rows
    }
    drift = [
        row
        for row in Verdict.load(second).rows
        if row.check == "drift since the data accepted last"
    ]
    assert [row.baseline for row in drift] == ["span 1", "span 1"]


def test_a_service_accepts_data_that_the_next_run_can_read(bench, tmp_path):
    """Found: the entry had no run id, so the next run skipped it as damaged."""
    from tfx.dsl.components.base.base_executor import BaseExecutor

    from components.accept_data.executor import Executor

    # As TFX's container entry point makes it: without a run id.
    task = tmp_path / "root" / "1234" / "digits-run-1" / "AcceptData_-77"
    context = BaseExecutor.Context(
        extra_flags=[], unique_id=task.name, tmp_dir=str(task / ".temp")
    )
    bench.judge(spans=(1,))
    Executor(context).Do(bench.inputs, {}, bench.properties)
    entry, _ = read_entry(str(bench.baseline_store / "1" / RECORD_FILE))
    assert entry.run_id == "digits-run-1"
