"""The real client of Vertex AI against the fake: faults, and jobs submitted once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from fake_vertex import CUT, LOST, FakeVertex

from runners.cloud.service import Submission
from runners.rehearsal.http_server import Request
from runners.vertex.client import VertexService
from sluice.errors import ExitCode, RemoteError
from sluice.vertex_ai import Backoff

pytestmark = pytest.mark.cloud

JOB: dict[str, Any] = {
    "displayName": "digits",
    "pipelineSpec": {
        "schemaVersion": "2.1.0",
        "pipelineInfo": {"name": "digits"},
        "root": {
            "dag": {"tasks": {}},
            "inputDefinitions": {"parameters": {"spans": {"parameterType": "STRING"}}},
        },
        "components": {},
        "deploymentSpec": {},
    },
    "runtimeConfig": {
        "gcsOutputDirectory": "gs://bucket/digits/artifacts",
        "parameterValues": {"spans": "[]"},
    },
}
CREATE = r"pipelineJobs\?"


@pytest.fixture
def vertex() -> Iterator[FakeVertex]:
    fake = FakeVertex()
    yield fake
    fake.close()


@pytest.fixture
def service(vertex: FakeVertex, monkeypatch: pytest.MonkeyPatch) -> VertexService:
    for area in ("AIPLATFORM", "LOGGING"):
        name = f"CLOUDSDK_API_ENDPOINT_OVERRIDES_{area}"
        monkeypatch.setenv(name, vertex.address())
    # As long as a busy machine needs.
    backoff = Backoff(first_s=0.01, longest_s=0.02, total_s=30)
    return VertexService("project", "europe-west4", backoff=backoff)


def _submission(job_id: str = "digits-1", **values: str) -> Submission:
    labels = {"sluice-pipeline": "digits", "sluice-spec": "abc", **values}
    return Submission(job_id, JOB, labels)


def _created(vertex: FakeVertex) -> list[str]:
    """Returns the statuses of the requests to create a job."""
    return [
        line.split()[0]
        for line in vertex.requests()
        if " POST " in line and "pipelineJobId" in line
    ]


def test_a_job_is_submitted_and_read_back(
    service: VertexService, vertex: FakeVertex
) -> None:
    name = service.submit(_submission())
    assert name == "projects/project/locations/europe-west4/pipelineJobs/digits-1"
    job = service.find("digits-1")
    assert job is not None and (job.name, job.state) == (name, "pending")
    assert job.labels["sluice-pipeline"] == "digits"
    assert job.spec["pipelineSpec"] == JOB["pipelineSpec"]
    assert service.find("other") is None
    assert "pipelines/runs/digits-1?project=project" in str(service.page(name))


def test_tasks_with_artifacts_times_and_attempts(
    service: VertexService, vertex: FakeVertex
) -> None:
    service.submit(_submission())
    model = {
        "name": "projects/1/locations/r/metadataStores/default/artifacts/42",
        "uri": "gs://bucket/model",
        "schemaTitle": "tfx.Model",
        "metadata": {"custom:state": "new", "version": 3},
    }
    vertex.task("digits-1", "Gen", "SKIPPED")
    vertex.task(
        "digits-1",
        "Trainer",
        "SUCCEEDED",
        outputs={"model": {"artifacts": [model]}},
        executorDetail={"containerDetail": {"failedMainJobs": ["a/b/customJobs/5"]}},
        pipelineTaskStatus=[
            {
                "state": "PENDING",
                "updateTime": "2026-01-01T00:00:05Z",
                "error": {"code": 14, "message": "preempted"},
            }
        ],
    )
    vertex.task("digits-1", "Pusher", "NOT_TRIGGERED")
    vertex.end("digits-1", "FAILED", "some tasks failed")
    job = service.find("digits-1")
    assert job and (job.state, job.error) == ("failed", "some tasks failed")
    gen, trainer, pusher = job.tasks
    assert (gen.state, pusher.state) == ("cached", "skipped")
    assert trainer.started_at and trainer.ended_at
    assert trainer.started_at < trainer.ended_at and len(trainer.ended_at) == 32
    assert [item.reason for item in trainer.failed_attempts] == ["preempted"]
    (found,) = trainer.outputs["model"]
    assert (found.id, found.type, found.uri) == (42, "Model", "gs://bucket/model")
    assert found.properties == {"state": "new", "version": 3}


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (429, "Quota exceeded for requests per minute"),
        (503, "The service is currently unavailable"),
        (500, "Internal error"),
        (CUT, ""),
    ],
)
def test_a_moment_s_failure_is_repeated(
    service: VertexService, vertex: FakeVertex, status: int, message: str
) -> None:
    vertex.fail("POST", CREATE, status, message, times=2)
    service.submit(_submission())
    shown = "-" if status == CUT else str(status)
    assert _created(vertex) == [shown, shown, "200"]
    vertex.fail("GET", "digits-1", status, message)
    assert service.find("digits-1") is not None


def test_a_lost_answer_does_not_submit_twice(
    service: VertexService, vertex: FakeVertex
) -> None:
    vertex.fail("POST", CREATE, LOST, times=1)
    service.submit(_submission())
    assert _created(vertex) == ["-", "409"]
    assert len(vertex.jobs()) == 1
    # Nor does a second call, such as after a kill.
    service.submit(_submission())
    assert len(vertex.jobs()) == 1


def test_another_job_with_the_same_id_is_not_taken_for_ours(
    service: VertexService, vertex: FakeVertex
) -> None:
    service.submit(_submission())
    with pytest.raises(RemoteError, match="another job with the id digits-1") as raised:
        service.submit(_submission(**{"sluice-spec": "def"}))
    assert raised.value.actual == "abc"


def test_a_service_that_stays_down(service: VertexService, vertex: FakeVertex) -> None:
    quick = Backoff(first_s=0.01, longest_s=0.02, total_s=0.5)
    service = VertexService("project", "europe-west4", backoff=quick)
    vertex.fail("GET", "digits-1", 503, "down for maintenance", times=1000)
    with pytest.raises(RemoteError, match="Vertex AI does not answer") as raised:
        service.find("digits-1")
    assert raised.value.exit_code == ExitCode.REMOTE
    assert raised.value.actual and "down for maintenance" in raised.value.actual


@pytest.mark.parametrize(
    ("status", "message", "what", "hint"),
    [
        (
            429,
            "The following quota metrics exceed quota limits: "
            "aiplatform.googleapis.com/custom_model_training_nvidia_t4_gpus",
            "a quota of the project is used up",
            "iam-admin/quotas?project=project",
        ),
        (
            403,
            "Permission 'aiplatform.pipelineJobs.create' denied on resource "
            "'//aiplatform.googleapis.com/projects/project' (or it may not exist).",
            "a permission is missing: aiplatform.pipelineJobs.create",
            "gcloud projects add-iam-policy-binding project --member=user:YOU "
            "--role=roles/aiplatform.user",
        ),
        (
            403,
            "You do not have permission to act as service_account: "
            "trainer@project.iam.gserviceaccount.com",
            "these credentials may not run jobs as trainer@project",
            "gcloud iam service-accounts add-iam-policy-binding "
            "trainer@project.iam.gserviceaccount.com --member=user:YOU "
            "--role=roles/iam.serviceAccountUser --project=project",
        ),
        (
            403,
            "Vertex AI API has not been used in project 1 before or it is disabled.",
            "the API of Vertex AI is not enabled",
            "gcloud services enable aiplatform.googleapis.com --project=project",
        ),
        (401, "Request had invalid credentials", "have expired", "gcloud auth"),
        (400, "Invalid spec", "Vertex AI refuses the request", ""),
    ],
)
def test_what_the_user_can_change_is_said_at_once(
    service: VertexService,
    vertex: FakeVertex,
    status: int,
    message: str,
    what: str,
    hint: str,
) -> None:
    vertex.fail("POST", CREATE, status, message)
    with pytest.raises(RemoteError, match=what) as raised:
        service.submit(_submission())
    assert hint in (raised.value.hint or "")
    assert _created(vertex) == [str(status)]


def test_an_expired_token(vertex: FakeVertex, service: VertexService) -> None:
    from google.auth.exceptions import RefreshError
    from google.oauth2.credentials import Credentials

    class Expired(Credentials):
        def refresh(self, request: Any) -> None:
            raise RefreshError("invalid_grant: Token has been expired or revoked.")

    vertex.tokens = {"good"}
    credentials = Expired("planted-secret-token")
    service = VertexService("project", "europe-west4", credentials=credentials)
    with pytest.raises(RemoteError, match="not valid, or have expired") as raised:
        service.find("digits-1")
    assert "gcloud auth application-default login" in str(raised.value)
    assert "planted-secret-token" not in str(raised.value)


def test_a_missing_bucket(service: VertexService, vertex: FakeVertex) -> None:
    vertex.buckets = {"other"}
    with pytest.raises(RemoteError, match="there is no bucket gs://bucket") as raised:
        service.submit(_submission())
    assert raised.value.hint == (
        "gcloud storage buckets create gs://bucket --location=europe-west4 "
        "--project=project --uniform-bucket-level-access"
    )


def test_the_newest_jobs_of_a_pipeline(
    service: VertexService, vertex: FakeVertex
) -> None:
    for number in range(5):
        service.submit(_submission(f"digits-{number}"))
    service.submit(_submission("taxi-0", **{"sluice-pipeline": "taxi"}))
    names = [job.name.rpartition("/")[2] for job in service.list("digits", 3)]
    assert names == ["digits-4", "digits-3", "digits-2"]
    # A new job is not in the listing for a while, but can be read.
    vertex.hidden_listings = 1
    service.submit(_submission("digits-5"))
    assert service.list("digits", 1)[0].name.endswith("digits-4")
    assert service.find("digits-5") is not None


def test_a_job_is_cancelled_once(service: VertexService, vertex: FakeVertex) -> None:
    name = service.submit(_submission())
    service.cancel(name)
    job = service.get(name)
    assert job and job.state == "cancelling"
    vertex.end("digits-1", "CANCELLED")
    service.cancel(name)


def test_the_last_lines_of_a_task_s_logs(
    service: VertexService, vertex: FakeVertex
) -> None:
    name = service.submit(_submission())
    detail = {"mainJob": "p/customJobs/9", "failedMainJobs": ["p/customJobs/8"]}
    assert list(service.logs(name, "Trainer", 10)) == []
    vertex.task(
        "digits-1", "Trainer", "RUNNING", executorDetail={"containerDetail": detail}
    )
    for second in range(30):
        for job in ("8", "9", "10"):
            vertex.log_entries.append(
                {
                    "timestamp": f"2026-01-01T00:00:{second:02}Z",
                    "resource": {"type": "ml_job", "labels": {"job_id": job}},
                    "jsonPayload": {"message": f"line {second} of {job}\n"},
                }
            )
    lines = list(service.logs(name, "Trainer", 4))
    assert sorted(lines) == sorted(
        f"line {second} of {job}" for second in (28, 29) for job in ("8", "9")
    )
    assert lines[0].startswith("line 28")


def test_the_fake_refuses_what_the_service_does_not_know(
    service: VertexService, vertex: FakeVertex
) -> None:
    spec = {**JOB, "runtimeConfig": {**JOB["runtimeConfig"], "parameterValues": {}}}
    with pytest.raises(RemoteError, match="refuses") as raised:
        service.submit(Submission("digits-1", spec, {}))
    assert "['spans']" in str(raised.value)
    with pytest.raises(RemoteError, match="refuses") as raised:
        service.submit(_submission("Digits_1"))
    assert "pipelineJobId" in str(raised.value)
    body = b'{"pipelineSpek": {}, "displayName": "digits"}'
    url = "/v1/projects/p/locations/r/pipelineJobs"
    answer = vertex.answer(Request("POST", url, body=body))
    assert answer.status == 400 and b"pipelineSpek" in answer.body
