"""The exit handler in TFX's own container entry point."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytestmark = pytest.mark.tf


def test_it_runs_with_the_final_status_and_the_config(tmp_path, monkeypatch):
    from tfx.orchestration.kubeflow.v2.container import kubeflow_v2_run_executor

    seen: list[tuple[Any, Any]] = []

    def write(*given: Any) -> str:
        seen.append(given)
        return "gs://bucket/runs/1"

    monkeypatch.setattr("runners.cloud.exit_handler.write_record", write)
    status = {"state": "FAILED", "pipelineJobResourceName": "projects/p/job"}
    config = {"config": {"name": "digits"}}
    values = {"final_status": json.dumps(status), "config": json.dumps(config)}
    invocation = {
        "inputs": {"parameterValues": values},
        "outputs": {"outputFile": str(tmp_path / "task" / "output.json")},
    }
    declared = {"parameters": {name: {"parameterType": "STRING"} for name in values}}
    parsed = kubeflow_v2_run_executor._parse_flags(
        [
            "run_executor",
            "--executor_class_path",
            "runners.cloud.exit_handler.WriteReport_Executor",
            "--json_serialized_invocation_args",
            json.dumps(invocation),
            "--json_serialized_inputs_spec_args",
            json.dumps(declared),
        ]
    )
    kubeflow_v2_run_executor.main(parsed)
    assert seen == [(status, config)]
