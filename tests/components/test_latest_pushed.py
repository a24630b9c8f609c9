"""The baseline on Kubeflow Pipelines: looked up by a task in the model store."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from components.baseline_model.pushed_baseline import latest_pushed_model
from serving.model_store import store_at

_JOB = "0d4c6f0e-4f5e-4a3b-9d43-2d0d6f7a9c11"


def _push(tmp_path: Path, name: str) -> str:
    """Publishes a model and returns the URI of the trained one."""
    model = tmp_path / "models" / name
    serving = model / "Format-Serving"
    serving.mkdir(parents=True)
    (serving / "saved_model.pb").write_text(name)
    store = store_at(tmp_path / "serving")
    store.publish(serving, facts={"model_uri": str(model)})
    return str(model)


@pytest.mark.unit
def test_the_model_that_was_pushed_last_is_the_baseline(tmp_path: Path) -> None:
    serving = str(tmp_path / "serving")
    assert latest_pushed_model(serving) is None
    first, second = _push(tmp_path, "first"), _push(tmp_path, "second")
    assert latest_pushed_model(serving) == second
    (Path(second) / "Format-Serving" / "saved_model.pb").unlink()
    (Path(second) / "Format-Serving").rmdir()
    assert latest_pushed_model(serving) == first


@pytest.mark.tf
def test_the_task_publishes_the_model_under_its_own_address(tmp_path: Path) -> None:
    model = _push(tmp_path, "first")
    output_file = tmp_path / "task" / "executor_output.json"
    (tmp_path / "records" / _JOB).mkdir(parents=True)
    uri = f"{tmp_path}/root/digits/{_JOB}/LatestBlessedModel/salt/model"
    output = {"name": "model", "uri": uri, "type": {"schemaTitle": "tfx.Model"}}
    executor_input = {
        "inputs": {
            "parameterValues": {
                "baseline": "",
                "serving_dir": str(tmp_path / "serving"),
            }
        },
        "outputs": {
            "artifacts": {"model": {"artifacts": [output]}},
            "outputFile": str(output_file),
        },
    }
    parameters = {
        name: {"parameterType": "STRING"} for name in ("baseline", "serving_dir")
    }
    subprocess.run(
        [
            *(sys.executable, "-m", "components.kubeflow_entrypoint"),
            "--executor_class_path",
            "components.baseline_model.latest_pushed.Executor",
            "--json_serialized_invocation_args",
            json.dumps(executor_input),
            "--json_serialized_inputs_spec_args",
            json.dumps({"parameters": parameters}),
            *("--task_records", str(tmp_path / "records")),
            *("--task", "LatestBlessedModel"),
        ],
        check=True,
        cwd=Path(__file__).parents[2],
    )
    record = json.loads(
        (tmp_path / f"records/{_JOB}/LatestBlessedModel.json").read_text()
    )
    assert record["state"] == "succeeded"
    (published,) = record["outputs"]["model"]
    assert (published["type"], published["uri"]) == ("tfx.Model", model)
    assert "tfx_version" in published["properties"]
