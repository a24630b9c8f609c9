"""The real client of Vertex AI against the fake: faults, and jobs submitted once."""

import pytest
from fake_vertex import CUT, FakeVertex

from runners.cloud.vertex_client import VertexService
from sluice.errors import ExitCode, RemoteError
from tests.cloud.conftest import wait_for_vertex

pytestmark = pytest.mark.cloud

JOB: dict = {
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
def vertex():
    fake = FakeVertex()
    yield fake
    fake.close()


@pytest.fixture
def service(vertex, monkeypatch):
    for area in ("AIPLATFORM", "LOGGING"):
        name = f"CLOUDSDK_API_ENDPOINT_OVERRIDES_{area}"
        monkeypatch.setenv(name, vertex.address())
    wait_for_vertex(monkeypatch, 30)  # As long as a busy machine needs.
    return VertexService("project", "europe-west4")


@pytest.fixture
def submit(service):
    def submit(job_id="digits-1", job=JOB, **labels):
        labels = {"sluice-pipeline": "digits", **labels}
        service.submit(job_id, {**job, "labels": labels})
        return service.name_of(job_id)

    return submit


def created(vertex):
    """Returns the statuses of the requests to create a job."""
    return [
        line.split()[0]
        for line in vertex.requests()
        if " POST " in line and "pipelineJobId" in line
    ]


def test_a_job_is_submitted_read_back_and_cancelled_once(service, vertex, submit):
    name = submit()
    assert name == "projects/project/locations/europe-west4/pipelineJobs/digits-1"
    job = service.get(name)
    assert (job["name"], job["state"]) == (name, "PIPELINE_STATE_PENDING")
    assert job["labels"]["sluice-pipeline"] == "digits"
    assert job["pipelineSpec"] == JOB["pipelineSpec"]
    assert service.get(service.name_of("other")) is None
    assert "pipelines/runs/digits-1?project=project" in service.page(name)
    service.cancel(name)
    assert service.get(name)["state"] == "PIPELINE_STATE_CANCELLING"
    vertex.end("digits-1", "CANCELLED")
    service.cancel(name)


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (429, "Quota exceeded for requests per minute"),
        (503, "The service is currently unavailable"),
        (500, "Internal error"),
        (CUT, ""),
    ],
)
def test_a_moment_s_failure_is_repeated(service, vertex, submit, status, message):
    vertex.fail("POST", CREATE, status, message, times=2)
    name = submit()
    shown = "-" if status == CUT else str(status)
    assert created(vertex) == [shown, shown, "200"]
    vertex.fail("GET", "digits-1", status, message)
    assert service.get(name) is not None


def test_a_service_that_stays_down(vertex, submit):
    service = VertexService("project", "europe-west4", timeout_s=0.5)
    vertex.fail("GET", "digits-1", 503, "down for maintenance", times=1000)
    with pytest.raises(RemoteError, match=r"does not answer[\s\S]*down") as raised:
        service.get(submit())
    assert raised.value.exit_code == ExitCode.REMOTE


@pytest.mark.parametrize(
    ("status", "message", "what"),
    [
        (403, "Permission 'a.b' denied", r"refuses[\s\S]*403 .* Permission 'a.b'"),
        (401, "Request had invalid credentials", "no valid .* credentials"),
        (400, "Invalid spec", r"refuses[\s\S]*400 .* Invalid spec"),
    ],
)
def test_a_refusal_is_said_at_once(vertex, submit, status, message, what):
    vertex.fail("POST", CREATE, status, message)
    with pytest.raises(RemoteError, match=what):
        submit()
    assert created(vertex) == [str(status)]


def test_an_expired_token(vertex, service):
    from google.auth.exceptions import RefreshError
    from google.oauth2.credentials import Credentials

    class Expired(Credentials):
        def refresh(self, request):
            raise RefreshError("invalid_grant: Token has been expired or revoked.")

    vertex.tokens = {"good"}
    credentials = Expired("planted-secret-token")
    service = VertexService("project", "europe-west4", credentials=credentials)
    with pytest.raises(RemoteError, match="no valid .* credentials") as raised:
        service.get(service.name_of("digits-1"))
    assert "gcloud auth application-default login" in str(raised.value)
    assert "planted-secret-token" not in str(raised.value)


def test_the_newest_jobs_of_a_pipeline(service, submit):
    for number in range(5):
        submit(f"digits-{number}")
    submit("taxi-0", **{"sluice-pipeline": "taxi"})
    names = [job["name"].rpartition("/")[2] for job in service.newest("digits", 3)]
    assert names == ["digits-4", "digits-3", "digits-2"]


def test_the_last_lines_of_a_task_s_logs(service, vertex, submit, monkeypatch):
    monkeypatch.setattr("runners.cloud.vertex_client.LOG_LINES", 4)
    name = submit()
    assert service.logs(name, "Trainer") == []
    jobs = {"mainJob": "p/customJobs/9", "failedMainJobs": ["p/customJobs/8"]}
    detail = {"containerDetail": jobs}
    vertex.task("digits-1", "Trainer", "RUNNING", executorDetail=detail)
    for second in range(30):
        for job in ("8", "9", "10"):
            entry = {
                "timestamp": f"2026-01-01T00:00:{second:02}Z",
                "resource": {"type": "ml_job", "labels": {"job_id": job}},
                "jsonPayload": {"message": f"line {second} of {job}\n"},
            }
            vertex.log_entries.append(entry)
    lines = service.logs(name, "Trainer")
    expected = {f"line {second} of {job}" for second in (28, 29) for job in "89"}
    assert {*lines} == expected and lines[0].startswith("line 28")
