"""The compiled spec has the local graph: nodes, edges and exec properties."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from runners.cloud.spec import read_spec
from tests.pipeline.graph.compiled import compile_locally, config_of, properties_of

pytestmark = pytest.mark.tf

# All exec properties that differ between a local run and the service, and why.
DIFFERENT = {
    ("TFRecordGen", "spans"): "a runtime parameter",
    ("ImportSchemaGen", "schema_file"): "a gs:// URI",
    ("DataVerdict", "baseline_store"): "a gs:// URI",
    ("AcceptData", "baseline_store"): "a gs:// URI",
    ("Pusher", "push_destination"): "a gs:// URI",
    ("DataVerdict", "override"): "a runtime parameter",
    ("Trainer", "custom_config"): "a runtime parameter",
    ("Tuner", "custom_config"): "a gs:// URI for checkpoints",
}
FILLED_IN = [
    "cloud.root=gs://bucket/root",
    "cloud.project=my-project",
    "cloud.region=europe-west4",
    "cloud.image=host/sluice:1",
]


def _plain(value: Any) -> Any:
    """Returns a value as it is after JSON: protos as text, whole numbers as ints."""
    if isinstance(value, str):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return int(value) if isinstance(value, float) and value.is_integer() else value


@pytest.mark.parametrize(
    ("name", "profile", "scheduled"),
    [
        ("digits", "vertex", False),
        ("digits", "vertex", True),
        ("digits", "vertex-gpu", False),
        ("digits", "vertex-tpu", False),
        ("taxi", "vertex-dataflow", False),
        ("taxi", "kubeflow", False),
        ("diabetes", "vertex", False),  # A regression, and a Tuner.
    ],
)
def test_the_spec_has_the_nodes_edges_and_properties_of_the_local_graph(
    project: Path, tmp_path: Path, name: str, profile: str, scheduled: bool
) -> None:
    from runners.cloud.compile_job import compile_pipeline

    config = config_of(project, name, profile=profile, overrides=FILLED_IN)
    local = compile_locally(config, tmp_path)
    job = compile_pipeline(config, scheduled=scheduled)[0]
    assert job["pipelineSpec"]["schemaVersion"] == "2.1.0"
    spec = read_spec(job)
    for task in spec.nodes:
        given = task.executor.container.command
        assert ("components.kubeflow_entrypoint" in given) == (profile == "kubeflow")
    added = {"AdvanceWatermark"} if scheduled else set()
    assert added <= {task.id for task in spec.nodes}
    tasks = [task for task in spec.nodes if task.id not in added]
    assert {task.id: set(task.upstream) for task in tasks} == {
        node: set(item.upstream_nodes) for node, item in local.items()
    }
    properties = properties_of(local)
    different = set()
    for task in tasks:
        if task.id == "LatestBlessedModel":  # Locally a resolver.
            continue
        before = properties[task.id]
        more = set(task.parameters) - set(before)
        assert more <= {"override", "schedule"}
        assert set(task.parameters) >= set(before)
        for key, value in task.parameters.items():
            now = _plain(value)
            if key == "fingerprint":
                # That of the service has the modules that read gs://, too.
                local_code = json.loads(before[key])["code"]
                assert local_code.items() <= now["code"].items()
            elif now != _plain(before.get(key)):
                different.add((task.id, key))
    if scheduled:
        different ^= {("TFRecordGen", "spans"), ("TFRecordGen", "schedule")}
    assert different == {pair for pair in DIFFERENT if pair[0] in local}
