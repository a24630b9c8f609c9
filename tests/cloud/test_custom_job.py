"""Custom jobs that a node starts on Vertex AI, with TFX's executors and the fake."""

from __future__ import annotations

import json
from typing import Any

import pytest

from runners.cloud.vertex_client import VertexService
from tests.cloud.fake_vertex import FakeVertex
from tests.cloud.test_vertex_client import JOB
from tests.pipeline.graph.compiled import cloud_config, config_of

pytestmark = [pytest.mark.cloud, pytest.mark.tf]

MACHINES = {"machine_type": "n1-standard-8", "workers": 2}


@pytest.fixture
def vertex(vertex: FakeVertex, monkeypatch: pytest.MonkeyPatch) -> FakeVertex:
    """The fake; who waits for a custom job sees it start, and end."""
    from tfx.extensions.google_cloud_ai_platform import training_clients

    def connect(self: Any) -> None:
        # TFX's own client speaks gRPC with the service's address.
        self._client = vertex

    monkeypatch.setattr(training_clients.VertexJobClient, "create_client", connect)
    monkeypatch.setattr("time.sleep", lambda _: vertex.advance_custom_jobs())
    return vertex


def _train(job: str) -> None:
    """Runs the Trainer's task in a pipeline job, as the service does."""
    from tfx.dsl.components.base.base_executor import BaseExecutor

    from runners.cloud.custom_job import TrainerJob
    from runners.cloud.task_settings import job_arguments
    from sluice.project import own_root

    config = cloud_config(
        config_of(own_root(), "digits"),
        project="project",
        region="europe-west4",
        nodes={"Trainer": MACHINES},
    )
    given = {"model": "x", **job_arguments(config, "image:1")}
    folder = f"gs://b/root/123/{job}/Trainer_1/.temp/Trainer_1"
    context = BaseExecutor.Context(tmp_dir=folder, unique_id="1")
    context.get_tmp_path = lambda: f"{folder}/"
    TrainerJob(context).Do({}, {}, {"custom_config": json.dumps(given)})


def _kill(_: float) -> None:
    raise RuntimeError("killed")


def test_the_job_is_one_of_vertex_ai_and_names_the_pipeline_job(vertex):
    """Found: a key that TFX does not know, so it started a job of the old service."""
    _train("digits-1")
    (job,) = vertex.resources("customJobs")
    assert job["labels"]["sluice-job"] == "digits-1"
    assert job["labels"]["sluice-pipeline"] == "digits"
    assert job["displayName"] == "digits-trainer"
    first, others = job["jobSpec"]["workerPoolSpecs"]
    assert (first["replicaCount"], others["replicaCount"]) == ("1", "1")
    command = first["containerSpec"]["command"]
    path = command[command.index("--executor_class_path") + 1]
    assert path.startswith("tfx.components")


def test_a_repeated_task_cancels_the_job_of_its_former_attempt(vertex, monkeypatch):
    """Otherwise two trainings run, are billed, and write the same checkpoints."""
    with monkeypatch.context() as killed:
        killed.setattr("time.sleep", _kill)
        for pipeline_job in ("digits-2", "digits-1"):
            with pytest.raises(RuntimeError, match="killed"):
                _train(pipeline_job)
    _train("digits-1")
    states = [job["state"] for job in vertex.resources("customJobs")]
    assert states == [f"JOB_STATE_{s}" for s in ("SUCCEEDED", "CANCELLED", "SUCCEEDED")]


def test_cancelling_a_run_cancels_its_custom_jobs(vertex, monkeypatch):
    monkeypatch.setattr("time.sleep", _kill)
    service = VertexService("project", "europe-west4")
    service.submit("digits-1", JOB)
    name = service.name_of("digits-1")
    for job in ("digits-1", "digits-2"):
        with pytest.raises(RuntimeError, match="killed"):
            _train(job)
    ours, theirs = vertex.resources("customJobs")
    assert service.cancel(name) == [ours["name"]]
    assert ours["state"] == "JOB_STATE_CANCELLING"
    assert theirs["state"] == "JOB_STATE_PENDING"
    vertex.advance_custom_jobs()
    assert service.cancel(name) == []
