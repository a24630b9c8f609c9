"""The exit handler's record and page in the bucket, made from the service's answer."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pipeline.config.load import load_config
from pipeline.config.serialize import stored_config
from runners.cloud.exit_handler import write_record
from runners.cloud.refresh import run_id_of
from runners.cloud.vertex_client import VertexService
from sluice import secrets
from sluice.errors import RemoteError
from sluice.project import own_root
from sluice.record.run_record import RunRecord
from sluice.record.verdict import Check, Verdict
from tests.runners.cloud.small_job import small_job

pytestmark = pytest.mark.cloud

RUN = "20260101T000000Z-ab12"


def _stored(bucket: Any) -> dict[str, Any]:
    config = load_config(
        str(own_root() / "configs/digits.yaml"),
        overrides=(f"cloud.root={bucket.uri('sluice')}",),
    )
    return json.loads(json.dumps(stored_config(config)))


def _submit(**labels: str) -> str:
    service = VertexService("project", "europe-west4")
    service.submit("digits-1", {**small_job(), "labels": labels})
    return service.name_of("digits-1")


def test_the_record_of_a_blocked_run_and_its_page(bucket, vertex, tmp_path):
    row = Check(check="drift", result="FAIL", why="it has drifted")
    text = Verdict("data", (row,)).to_json().encode()
    uri = bucket.put("v/verdict.json", text).removesuffix("/verdict.json")
    name = _submit(**{"sluice-run": RUN.lower()})
    artifact = {"name": "a/1", "schemaTitle": "components.DataVerdict", "uri": uri}
    outputs = {"verdict": {"artifacts": [artifact]}}
    vertex.task("digits-1", "DataVerdict", "SUCCEEDED", outputs=outputs)
    error = {"code": 9, "message": "exited with a non-zero status of 1"}
    vertex.task("digits-1", "DataGate", "FAILED", error=error)
    # The handler runs while the job does.
    vertex.task("digits-1", "Report", "RUNNING")
    status = {
        "state": "FAILED",
        "error": {"code": 9, "message": "some tasks failed: [DataGate]"},
        "pipelineJobResourceName": name,
        "pipelineTaskName": "tfx-dag",
    }
    target = write_record(status, _stored(bucket))
    assert target == bucket.uri(f"sluice/digits/runs/{RUN}")
    folder = f"sluice/digits/runs/{RUN}"
    (tmp_path / "run.json").write_bytes(bucket.get(f"{folder}/run.json"))
    record = RunRecord.load(tmp_path)
    assert (record.run_id, record.status, record.exit_code) == (RUN, "blocked", 3)
    assert record.node("Pusher").state == "blocked"
    page = bucket.get(f"{folder}/report.html").decode()
    assert "it has drifted" in page
    assert '<dt>Engine</dt><dd><span class="value">Vertex AI</span></dd>' in page
    assert 'href="https://console.cloud.google.com/vertex-ai/' in page and name in page


def test_a_secret_in_an_answer_is_not_in_the_record(bucket, vertex, monkeypatch):
    secret = "planted-5ecret-v4lue"
    monkeypatch.setattr(secrets, "_resolved", {})
    monkeypatch.setenv("SLUICE_TEST_TOKEN", secret)
    name = _submit(**{"sluice-run": RUN.lower()})
    error = {"code": 9, "message": f"401 with {secret}"}
    vertex.task("digits-1", "Trainer", "FAILED", error=error)
    status = {"state": "FAILED", "error": error, "pipelineJobResourceName": name}
    stored = {**_stored(bucket), "description": "${env:SLUICE_TEST_TOKEN}"}
    write_record(status, stored)
    written = {name: bucket.get(name) for name in bucket.names()}
    assert any(b"401 with ${env:SLUICE_TEST_TOKEN}" in one for one in written.values())
    assert [name for name, one in written.items() if secret.encode() in one] == []


def test_the_id_of_a_scheduled_run_sorts_by_its_time():
    job = {
        "name": "projects/p/pipelineJobs/digits-7",
        "createTime": "2026-01-02T03:04:05.678901Z",
    }
    first = run_id_of(job)
    assert first.startswith("20260102T030405Z-") and len(first) == len(RUN)
    assert run_id_of(job) == first
    assert run_id_of({"name": "j", "labels": {"sluice-run": RUN.lower()}}) == RUN


def test_jobs_that_the_service_does_not_have(bucket, vertex):
    place = "projects/project/locations/europe-west4/pipelineJobs/other"
    with pytest.raises(RemoteError, match="does not know the job"):
        write_record({"pipelineJobResourceName": place}, _stored(bucket))
    assert bucket.names() == []
