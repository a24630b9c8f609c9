"""Runs in a service, from submit to report, with the real client and the fake."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from fake_vertex import CUT, LOST, FakeVertex

from runners.cli.main import main
from runners.cloud.cloud_locations import Upload
from runners.cloud.compile_spec import CompiledSpec
from runners.cloud.submitted_job import SubmittedJob
from runners.engine import Observer
from runners.operations import service_runs
from runners.operations.cancel import CancelRequest, cancel
from runners.operations.explain import ExplainRequest, explain
from runners.operations.logs import LogsRequest, logs
from runners.operations.report import ReportRequest, report
from runners.operations.resume import ResumeRequest, resume
from runners.operations.status import StatusRequest, status
from runners.operations.submit import SubmitRequest, submit
from runners.vertex.client import VertexService
from sluice import vertex_ai
from sluice.errors import ConfigError, RemoteError, UsageError
from sluice.record.events import RunResumed
from sluice.record.journal import Journal
from sluice.record.recorder import Recorder
from sluice.record.run_record import RunRecord
from sluice.record.verdict import Check, Verdict
from sluice.storage import gcs_storage
from sluice.workspace import Workspace, locate
from tests.cloud.conftest import on_vertex, wait_for_vertex
from tests.runners.cloud.small_job import small_job

pytestmark = pytest.mark.cloud

SECRET = "planted-5ecret-v4lue"


class Seen(Observer):
    def __init__(self) -> None:
        self.notes: list[str] = []

    def on_note(self, text: str) -> None:
        self.notes.append(text)


@pytest.fixture
def gives_up(vertex: FakeVertex, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client repeats a request for half a second only."""
    wait_for_vertex(monkeypatch, 0.5)


@pytest.fixture
def project(
    digits: Path, bucket: Any, vertex: FakeVertex, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """Compiling takes no TFX; see ``test_service_runs`` for the real one."""
    schema = digits / "schemas/digits/schema.pbtxt"
    uri = bucket.uri("sluice/digits/inputs/schema/1/schema.pbtxt")
    compiled = CompiledSpec(small_job(), (Upload(schema, uri),))
    monkeypatch.setattr(
        "runners.cloud.service_engine.compile_checked", lambda config: compiled
    )
    return digits


def _request(bucket: Any, **values: Any) -> SubmitRequest:
    return SubmitRequest(name="digits", overrides=on_vertex(bucket), **values)


@pytest.fixture
def workspace(project: Path) -> Workspace:
    return locate(project, "digits")


def _job_id(workspace: Workspace, record: RunRecord) -> str:
    return SubmittedJob.load(workspace.run_dir(record.run_id)).job_id


def _succeed(vertex: FakeVertex, job_id: str) -> None:
    for name in ("DataVerdict", "DataGate", "Trainer", "Pusher", "Report"):
        vertex.task(job_id, name, "SUCCEEDED")
    vertex.end(job_id, "SUCCEEDED")


def test_without_a_network_nothing_begins(
    project: Path,
    bucket: Any,
    vertex: FakeVertex,
    workspace: Workspace,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Found: it waited for the client's retries, 117 seconds."""
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", "http://127.0.0.1:9")
    monkeypatch.setattr(gcs_storage, "RETRY", gcs_storage.DEFAULT_RETRY)
    monkeypatch.setattr(gcs_storage, "NO_ANSWER_S", 0.5)
    begun = time.monotonic()
    with pytest.raises(UsageError, match="check the network") as caught:
        submit(_request(bucket))
    assert caught.value.actual is not None and "no connection" in caught.value.actual
    assert time.monotonic() - begun < 10
    assert vertex.jobs() == [] and workspace.run_ids() == []


def test_without_a_network_runs_are_shown_soon(
    project: Path,
    bucket: Any,
    vertex: FakeVertex,
    workspace: Workspace,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Found: each open run, and the search for others, waited for three minutes."""
    submit(_request(bucket))
    monkeypatch.setenv(
        "CLOUDSDK_API_ENDPOINT_OVERRIDES_AIPLATFORM", "http://127.0.0.1:9"
    )
    monkeypatch.setattr(gcs_storage, "NO_ANSWER_S", 0.5)
    monkeypatch.setattr(vertex_ai, "Backoff", type(vertex_ai.Backoff()))
    config = _request(bucket).load_config()
    begun = time.monotonic()
    (open_run,) = service_runs.refresh_runs(workspace)
    (others,) = service_runs.import_runs(config, workspace)
    assert "as of its last refresh" in open_run and "are missing" in others
    assert time.monotonic() - begun < 10


def _status() -> RunRecord:
    return status(StatusRequest(name="digits"))[0]


def test_a_run_is_submitted_and_followed(
    project: Path, bucket: Any, vertex: FakeVertex, workspace: Workspace
) -> None:
    seen = Seen()
    record = submit(_request(bucket, accept_data="checked by hand"), seen)
    assert (record.status, record.exit_code) == ("running", None)
    assert not workspace.is_running()
    (job,) = vertex.jobs()
    job_id = _job_id(workspace, record)
    assert job["name"].endswith(f"/{job_id}") and record.run_id.lower() in job_id
    assert job["labels"]["sluice-run"] == record.run_id.lower()
    assert job["labels"]["tfx_version"] == "1-16-0"
    assert job["runtimeConfig"]["parameterValues"] == {"accept_data": "checked by hand"}
    assert any(job_id in note for note in seen.notes)
    assert "sluice/digits/inputs/schema/1/schema.pbtxt" in bucket.names()
    assert f"sluice/digits/runs/{record.run_id}/config.json" in bucket.names()
    assert record.pushes[0].destination == bucket.uri("sluice/digits/serving")
    assert record.nodes[0].id == "DataVerdict"
    assert record.digests["data"]

    vertex.task(job_id, "DataVerdict", "RUNNING")
    assert _status().node("DataVerdict").state == "running"
    _succeed(vertex, job_id)
    bucket.put(f"sluice/digits/runs/{record.run_id}/record/Trainer.epochs.json", b"{}")
    ended = _status()
    assert (ended.status, ended.exit_code) == ("succeeded", 0)
    assert [(d.kind, d.node) for d in ended.documents] == [("epochs", "Trainer")]
    assert (workspace.run_dir(record.run_id) / ended.documents[0].path).exists()
    # The service is asked no more.
    vertex.requests()
    assert _status() == ended and vertex.requests() == []
    events = [
        event.event for event in Journal(workspace.run_dir(record.run_id)).events()
    ]
    assert events.count("run_ended") == 1
    assert events.count("node_finished") == 4


def test_the_verb_waits_and_has_the_exit_code_of_the_run(
    project: Path,
    bucket: Any,
    vertex: FakeVertex,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    row = Check("drift", "all", "<= 0.1", None, 0.2, False, "why")
    verdict = json.dumps(Verdict("data", (row,), None).to_dict()).encode()
    uri = bucket.put("v/verdict.json", verdict).removesuffix("/verdict.json")

    def sleep(seconds: float, observer: Observer) -> None:
        job_id = vertex.jobs()[0]["name"].rpartition("/")[2]
        artifact = {"name": "a/1", "schemaTitle": "components.DataVerdict", "uri": uri}
        outputs = {"verdict": {"artifacts": [artifact]}}
        vertex.task(job_id, "DataVerdict", "SUCCEEDED", outputs=outputs)
        error = {"code": 9, "message": "exited with a non-zero status of 1"}
        vertex.task(job_id, "DataGate", "FAILED", error=error)
        vertex.end(job_id, "FAILED", "some tasks failed: [DataGate]")

    monkeypatch.setattr("runners.cloud.refresh._sleep", sleep)
    options = [item for text in on_vertex(bucket) for item in ("--set", text)]
    with pytest.raises(SystemExit) as ended:
        main(["submit", "digits", "--wait", "--json", *options])
    shown = capsys.readouterr()
    assert ended.value.code == 3, shown.err
    document = json.loads(shown.out)
    assert document["status"] == "blocked"
    assert document["error"]["node"] == "DataGate"
    assert "not_reached" not in {node["state"] for node in document["nodes"]}


def test_a_job_of_which_no_answer_ever_came_is_found_again(
    project: Path, bucket: Any, vertex: FakeVertex, workspace: Workspace, gives_up: None
) -> None:
    vertex.fail("POST", "pipelineJobId", LOST)
    vertex.fail("POST", "pipelineJobId", CUT, times=1000)
    with pytest.raises(RemoteError, match="not known whether run .* was submitted"):
        submit(_request(bucket))
    (job,) = vertex.jobs()
    vertex.heal()
    record = _status()
    assert record.status == "running"
    submitted = SubmittedJob.load(workspace.run_dir(record.run_id))
    assert submitted.name == job["name"] and submitted.page


def test_a_refusal_after_a_lost_answer_does_not_end_the_run(
    project: Path, bucket: Any, vertex: FakeVertex, gives_up: None
) -> None:
    """Found: such as an expired token; the job ran on, and the next was a second."""
    vertex.fail("POST", "pipelineJobId", LOST)
    vertex.fail("POST", "pipelineJobId", 401, "Request had invalid credentials")
    with pytest.raises(RemoteError, match="not known whether run .* was submitted"):
        submit(_request(bucket))
    assert len(vertex.jobs()) == 1
    assert _status().status == "running"


def test_ctrl_c_before_the_answer_leaves_the_run_open(
    project: Path,
    bucket: Any,
    vertex: FakeVertex,
    workspace: Workspace,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    send = VertexService.submit

    def submit_and_interrupt(*args: Any) -> str:
        send(*args)
        raise KeyboardInterrupt

    monkeypatch.setattr(VertexService, "submit", submit_and_interrupt)
    with pytest.raises(RemoteError, match="not known whether run .* was submitted"):
        submit(_request(bucket))
    (job,) = vertex.jobs()
    record = _status()
    assert record.status == "running"
    submitted = SubmittedJob.load(workspace.run_dir(record.run_id))
    assert submitted.name == job["name"]


def test_a_job_that_the_service_never_took_ends_the_run_after_a_while(
    project: Path, bucket: Any, vertex: FakeVertex, workspace: Workspace, gives_up: None
) -> None:
    vertex.fail("POST", "pipelineJobId", CUT, times=1000)
    with pytest.raises(RemoteError, match="not known whether"):
        submit(_request(bucket))
    record = _status()
    assert record.status == "running"
    with pytest.raises(UsageError, match="not known yet whether the service has taken"):
        logs(LogsRequest(name="digits", node="DataVerdict"))
    run_dir = workspace.run_dir(record.run_id)
    data = json.loads((run_dir / "job.json").read_text())
    old = datetime.now(timezone.utc) - timedelta(hours=1)
    data["submitted_at"] = old.isoformat(timespec="seconds")
    (run_dir / "job.json").write_text(json.dumps(data))
    record = _status()
    assert (record.status, record.exit_code) == ("failed", 8)
    assert record.error and "never submitted" in record.error.message


def test_a_refused_job_ends_the_run_with_what_to_grant(
    project: Path, bucket: Any, vertex: FakeVertex
) -> None:
    text = "Permission 'aiplatform.pipelineJobs.create' denied on resource"
    vertex.fail("POST", "pipelineJobId", 403, text)
    record = submit(_request(bucket))
    assert (record.status, record.exit_code) == ("failed", 8)
    assert record.error and "--role=roles/aiplatform.user" in record.error.message


def test_a_missing_bucket_is_named_with_the_command_that_creates_it(
    project: Path, bucket: Any, vertex: FakeVertex
) -> None:
    others = tuple(
        text for text in on_vertex(bucket) if not text.startswith("cloud.root")
    )
    overrides = (*others, "cloud.root=gs://nowhere/sluice")
    record = submit(SubmitRequest(name="digits", overrides=overrides))
    assert record.exit_code == 8 and vertex.jobs() == []
    assert record.error and (
        "gcloud storage buckets create gs://nowhere --location=europe-west4 "
        "--project=project" in record.error.message
    )


def test_a_service_that_does_not_answer_does_not_hide_the_record(
    project: Path, bucket: Any, vertex: FakeVertex, gives_up: None
) -> None:
    record = submit(_request(bucket))
    vertex.fail("GET", "pipelineJobs", 503, "down", times=1000)
    warnings: list[str] = []
    (shown,) = status(StatusRequest(name="digits"), warnings.append)
    assert shown.run_id == record.run_id and shown.status == "running"
    assert warnings == [
        f"run {record.run_id} is shown as of its last refresh: "
        "Vertex AI does not answer"
    ]


def test_cancel_then_resume_with_what_has_finished(
    project: Path, bucket: Any, vertex: FakeVertex, workspace: Workspace
) -> None:
    record = submit(_request(bucket))
    first = _job_id(workspace, record)
    vertex.task(first, "DataVerdict", "SUCCEEDED")
    vertex.task(first, "DataGate", "RUNNING")
    cancelled = cancel(CancelRequest(name="digits"))
    assert cancelled.job and cancelled.job.endswith(first) and not cancelled.ended
    vertex.task(first, "DataGate", "CANCELLED")
    vertex.end(first, "CANCELLED")
    record = _status()
    assert (record.status, record.exit_code) == ("interrupted", 130)
    assert record.resume_command

    run_dir = workspace.run_dir(record.run_id)
    submitted = SubmittedJob.load(run_dir)
    # What has finished is of the code that the image held then.
    replace(submitted, images={"sluice/digits:latest": "sha256:0"}).save(run_dir)
    with pytest.raises(ConfigError, match="not the one that the run began with"):
        resume(ResumeRequest(name="digits"))
    submitted.save(run_dir)
    resumed = resume(ResumeRequest(name="digits"))
    assert resumed.run_id == record.run_id and resumed.status == "running"
    second = _job_id(workspace, record)
    assert second != first and len(vertex.jobs()) == 2
    spec = vertex.jobs()[1]["pipelineSpec"]
    tasks = spec["components"]["graph"]["dag"]["tasks"]
    cached = {
        name: task["cachingOptions"].get("enableCache", False)
        for name, task in tasks.items()
    }
    assert cached == {
        "DataVerdict": True,
        "DataGate": False,
        "Trainer": True,
        "Pusher": False,
    }
    vertex.task(second, "DataVerdict", "SKIPPED")
    for name in ("DataGate", "Trainer", "Pusher"):
        vertex.task(second, name, "SUCCEEDED")
    vertex.end(second, "SUCCEEDED")
    record = _status()
    assert record.status == "succeeded" and record.resumed_at
    assert record.node("DataVerdict").state == "cached"
    assert record.node("DataGate").attempts == 2


def test_a_status_while_a_run_is_resumed_does_not_read_its_previous_job(
    project: Path, bucket: Any, vertex: FakeVertex, workspace: Workspace
) -> None:
    record = submit(_request(bucket))
    vertex.end(_job_id(workspace, record), "FAILED", "out of quota")
    assert _status().status == "failed"
    run_dir = workspace.run_dir(record.run_id)
    later = datetime.now(timezone.utc) + timedelta(seconds=1)
    event = RunResumed(
        at=later.isoformat(), command="sluice resume", workers=1, resume_command=None
    )
    Recorder(run_dir).apply(event)
    assert _status().status == "running"


def test_explain_compares_with_what_was_submitted(
    project: Path,
    bucket: Any,
    vertex: FakeVertex,
    workspace: Workspace,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    record = submit(_request(bucket))
    _succeed(vertex, _job_id(workspace, record))
    _status()
    monkeypatch.setattr(
        "runners.cloud.compile_spec.compile_config",
        lambda config: CompiledSpec(small_job(), ()),
    )
    request = ExplainRequest(name="digits", overrides=on_vertex(bucket), node="Trainer")
    found = {item["node"]: item for item in explain(request).nodes}
    assert found["Trainer"]["because"] == []
    assert found["Trainer"]["waits_for"] == ["DataGate"]
    assert found["DataVerdict"]["because"] == ["the service does not cache it"]
    assert found["DataVerdict"]["last_run"] == record.run_id


def test_logs_of_a_failed_task_explain_it(
    project: Path, bucket: Any, vertex: FakeVertex, workspace: Workspace
) -> None:
    record = submit(_request(bucket))
    job_id = _job_id(workspace, record)
    lines = [
        "Traceback (most recent call last):",
        '  File "x.py", line 1, in <module>',
        "sluice.errors.DataError: the data is damaged",
    ]
    for second, line in enumerate(lines):
        vertex.log_entries.append(
            {
                "timestamp": f"2026-01-01T00:00:{second:02}Z",
                "resource": {"type": "ml_job", "labels": {"job_id": "9"}},
                "textPayload": line,
            }
        )
    detail = {"containerDetail": {"mainJob": "p/customJobs/9"}}
    error = {"code": 9, "message": "exited with a non-zero status of 1"}
    vertex.task(job_id, "DataVerdict", "FAILED", error=error, executorDetail=detail)
    vertex.end(job_id, "FAILED", "some tasks failed")
    record = _status()
    assert (record.status, record.exit_code) == ("failed", 3)
    assert record.error and record.error.message == "the data is damaged"
    log = logs(LogsRequest(name="digits", node="DataVerdict"))
    assert b"".join(log.read()).decode().splitlines() == lines
    page = Path(report(ReportRequest(name="digits")).report).read_text()
    assert "the data is damaged" in page


def test_a_secret_is_in_nothing_that_is_written(
    project: Path, bucket: Any, vertex: FakeVertex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLUICE_TEST_TOKEN", SECRET)
    config = project / "configs/digits.yaml"
    record = submit(_request(bucket, tags=("owner=me",)))
    assert config.exists() and record.status == "running"
    job_id = vertex.jobs()[0]["name"].rpartition("/")[2]
    error = {"code": 9, "message": f"401 with {SECRET}"}
    vertex.task(job_id, "DataVerdict", "FAILED", error=error)
    vertex.end(job_id, "FAILED", "failed")
    from sluice import secrets

    secrets.remember("${env:SLUICE_TEST_TOKEN}")
    _status()
    report(ReportRequest(name="digits"))
    written = [p.read_bytes() for p in project.rglob("*") if p.is_file()]
    written += [bucket.get(name) for name in bucket.names()]
    written += vertex.bodies()
    assert len(written) > 10
    assert not any(SECRET.encode() in content for content in written)
