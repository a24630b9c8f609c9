"""DataVerdict, DataGate and AcceptData inside TFX."""

from __future__ import annotations

from typing import Any

import pytest

from components.accept_data.data_baselines import read_entry
from components.data_verdict.policy import Policy, Settings
from components.tfrecord_gen.hash_splits import HashSplits
from sluice.record.verdict import Verdict

pytestmark = pytest.mark.tf


def _pipeline(bench: Any) -> Any:
    """Returns a pipeline of the three nodes, on what the bench has made last."""
    from tfx.dsl.components.common.importer import Importer
    from tfx.orchestration import metadata, pipeline
    from tfx.types import standard_artifacts

    from components import artifacts
    from components.accept_data.component import AcceptData
    from components.data_gate.component import DataGate
    from components.data_verdict.component import DataVerdict

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
    store = str(bench.baseline_store)
    settings = Settings(
        splits=("train", "eval"),
        policy=Policy(),
        sensitive=("pay",),
        hash_splits=HashSplits(train=8, eval=2, by="user"),
    )
    verdict = DataVerdict(**inputs, settings=settings, baseline_store=store)
    gate = DataGate(verdict=verdict.outputs["verdict"])
    accept = AcceptData(
        statistics=inputs["statistics"],
        quarantine=inputs["quarantine"],
        verdict=verdict.outputs["verdict"],
        baseline_store=store,
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
    bench.judge(bench.records(220), spans=(2,))
    LocalDagRunner().run(_pipeline(bench))
    entries = [read_entry(str(x))[0] for x in sorted(bench.baseline_store.iterdir())]
    assert [entry.name for entry in entries] == ["span 1", "span 2"]
    folders = (bench.root / "root" / "DataVerdict" / "verdict").iterdir()
    first, second = (
        [
            row.baseline
            for row in Verdict.load(folder).rows
            if row.check == "drift since the data accepted last"
        ]
        for folder in sorted(folders, key=lambda path: int(path.name))
    )
    assert (first, second) == ([], ["span 1", "span 1"])


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
    (folder,) = bench.baseline_store.iterdir()
    assert read_entry(str(folder))[0].run_id == "digits-run-1"
