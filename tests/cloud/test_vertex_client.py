"""The client of Vertex AI: faults, jobs submitted once, and what goes over the wire."""

import json
import threading

import pytest
import requests
from google.api_core import exceptions

from runners.cloud import vertex_client
from runners.cloud.vertex_client import VertexService
from sluice.errors import RemoteError
from tests.kit.gcs.http_server import Server, error_response, json_response

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


@pytest.fixture
def service(vertex):
    return VertexService("project", "europe-west4")


@pytest.fixture
def submit(service):
    def submit(job_id="digits-1", job=JOB, **labels):
        labels = {"sluice-pipeline": "digits", **labels}
        service.submit(job_id, {**job, "labels": labels})
        return service.name_of(job_id)

    return submit


@pytest.mark.parametrize(
    ("error", "calls", "says"),
    [
        (exceptions.TooManyRequests("Quota exceeded"), 3, None),
        (requests.ConnectionError("cut"), 3, None),
        (exceptions.Forbidden("'a.b' denied"), 1, r"refuses[\s\S]*403 'a.b'"),
        (exceptions.Unauthorized("Request had"), 1, "no valid .* credentials"),
    ],
)
def test_a_moment_s_failure_is_repeated_and_a_refusal_said_at_once(
    vertex, submit, error, calls, says
):
    vertex.fail("create_pipeline_job", error, times=2)
    if says:
        with pytest.raises(RemoteError, match=says):
            submit()
    else:
        submit()
    assert len(vertex.calls) == calls


def test_the_newest_jobs_of_a_pipeline(service, submit):
    for number in range(5):
        submit(f"digits-{number}")
    submit("taxi-0", **{"sluice-pipeline": "taxi"})
    names = [job["name"].rpartition("/")[2] for job in service.newest("digits", 3)]
    assert names == ["digits-4", "digits-3", "digits-2"]


def test_the_last_lines_of_a_task_s_logs(service, vertex, submit, monkeypatch):
    monkeypatch.setattr(vertex_client, "LOG_LINES", 4)
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


@pytest.fixture
def wire(monkeypatch):
    """A server that is down at first, and then has any job; yields its requests."""
    seen = []

    def answer(request):
        seen.append((request.method, request.url, request.headers, request.body))
        if len(seen) == 1:
            return error_response(503, "down")
        return json_response({"name": "x", "state": "PIPELINE_STATE_PENDING"})

    server = Server(answer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    for area in ("AIPLATFORM", "LOGGING"):
        name = f"CLOUDSDK_API_ENDPOINT_OVERRIDES_{area}"
        monkeypatch.setenv(name, server.address)
    monkeypatch.setattr(vertex_client, "FIRST_WAIT_S", 0.01)
    yield seen
    server.shutdown()
    server.server_close()


def test_the_real_client_sends_what_the_service_documents(wire):
    service = VertexService("project", "europe-west4")
    service.submit("digits-1", JOB)
    (_, _, _, _), (method, url, headers, body) = wire
    path, _, query = url.partition("?")
    assert (method, path) == ("POST", f"/v1/{service.parent}/pipelineJobs")
    assert "pipelineJobId=digits-1" in query and "authorization" not in headers
    assert json.loads(body)["pipelineSpec"] == JOB["pipelineSpec"]
    found = service.get(service.name_of("digits-1"))
    assert found and found["state"] == "PIPELINE_STATE_PENDING"
