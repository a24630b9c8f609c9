"""Submission by the real compiler, and runs that others have submitted."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from fake_kfp import FakeKfp
from fake_vertex import FakeVertex

from runners.cli.main import main
from runners.cloud.service import Submission
from runners.cloud.spec import read_spec
from runners.cloud.submitted_job import SubmittedJob
from runners.operations.cancel import CancelRequest, cancel
from runners.operations.lineage import LineageRequest, lineage
from runners.operations.logs import LogsRequest, logs
from runners.operations.report import ReportRequest, report
from runners.operations.resume import ResumeRequest, resume
from runners.operations.status import RunsRequest, StatusRequest, list_runs, status
from runners.operations.submit import SubmitRequest, submit
from runners.vertex.client import VertexService
from sluice.errors import UsageError
from sluice.record.run_record import RunRecord
from sluice.workspace import locate
from tests.cloud.conftest import Bucket, on_kubeflow, on_vertex
from tests.runners.cloud.small_job import small_job

pytestmark = pytest.mark.cloud


def _status(**values: Any) -> RunRecord:
    return status(StatusRequest(name="digits", **values))[0]


@pytest.mark.e2e
def test_from_config_to_status_on_vertex(
    digits: Path, bucket: Bucket, vertex: FakeVertex
) -> None:
    """Nothing is replaced but the service and the bucket."""
    record = submit(SubmitRequest(name="digits", overrides=on_vertex(bucket)))
    assert (record.status, record.error) == ("running", None)
    (job,) = vertex.jobs()
    spec = read_spec(job)
    names = [task.id for task in spec.tasks if not task.is_exit_handler]
    assert sorted(node.id for node in record.nodes) == sorted(names)
    pinned = json.loads(spec.parameter_values["spans"])
    assert (pinned["spans"], pinned["files"]) == ([], 3)
    text = json.dumps(job)
    uploaded = [name for name in bucket.names("sluice/digits/inputs/")]
    assert uploaded and all(bucket.uri(name) in text for name in uploaded)
    assert str(digits) not in text
    job_id = job["name"].rpartition("/")[2]
    examples = _artifact(41, "tfx.Examples", input_fingerprint="sha256:12")
    model = _artifact(42, "tfx.Model")
    known = {
        "TFRecordGen": {"outputs": {"examples": examples}},
        "Trainer": {"inputs": {"examples": examples}, "outputs": {"model": model}},
    }
    for task in spec.tasks:
        vertex.task(job_id, task.id, "SUCCEEDED", **known.get(task.id, {}))
    vertex.end(job_id, "SUCCEEDED")
    ended = _status()
    assert (ended.status, ended.exit_code) == ("succeeded", 0)
    assert {node.state for node in ended.nodes} == {"ran"}
    request = LineageRequest(
        name="digits", overrides=on_vertex(bucket), reference="Trainer.model"
    )
    traced = lineage(request)
    assert traced.found.artifact_id == 42
    origin = traced.lineage.origin
    (data,) = origin.data
    assert data["path"] == bucket.uri("data") and data["fingerprint"] == "sha256:12"
    assert origin.run_ids == [record.run_id]
    assert {"TFRecordGen", "Trainer"} == set(origin.code)


def _artifact(number: int, title: str, **metadata: str) -> dict[str, Any]:
    name = f"projects/1/locations/r/metadataStores/default/artifacts/{number}"
    found = {"name": name, "schemaTitle": title, "uri": f"gs://bucket/{title}"}
    return {"artifacts": [{**found, "metadata": metadata}]}


@pytest.mark.e2e
def test_from_config_to_status_on_kubeflow(
    digits: Path, bucket: Bucket, kfp: FakeKfp
) -> None:
    record = submit(SubmitRequest(name="digits", overrides=on_kubeflow(bucket, kfp)))
    assert (record.status, record.error) == ("running", None)
    (run,) = kfp.runs
    pinned = json.loads(run["runtime_config"]["parameters"]["spans"])
    assert (pinned["spans"], pinned["files"]) == ([], 3)
    text = json.dumps(run)
    uploaded = [name for name in bucket.names("sluice/digits/inputs/")]
    assert uploaded and all(bucket.uri(name) in text for name in uploaded)
    spec = read_spec({"pipelineSpec": run["pipeline_spec"]})
    names = [task.id for task in spec.tasks]
    assert sorted(node.id for node in record.nodes) == sorted(names)
    for name in names:
        # As its entry point does.
        written = {"pod": name, "inputs": {}, "outputs": {}, "failed_attempts": []}
        folder = f"sluice/digits/kubeflow/{run['run_id']}"
        bucket.put(f"{folder}/{name}.json", json.dumps(written).encode())
    details = [{"display_name": name, "state": "SUCCEEDED"} for name in names]
    kfp.set_run(run["run_id"], "SUCCEEDED", *details)
    ended = _status()
    assert (ended.status, ended.exit_code) == ("succeeded", 0)


RUN = "20260101T000000Z-ab12"


@pytest.fixture
def elsewhere(digits: Path, bucket: Bucket, vertex: FakeVertex) -> str:
    """Submits a job that this workspace does not know; returns its id."""
    config = digits / "configs" / "digits.yaml"
    cloud = {
        "engine": "vertex",
        "root": bucket.uri("sluice"),
        "project": "project",
        "region": "europe-west4",
        "image": "sluice/digits",
    }
    with config.open("a") as file:
        file.write(f"\ncloud: {json.dumps(cloud)}\n")
    labels = {"sluice-pipeline": "digits", "sluice-run": RUN.lower()}
    _submit("digits-1", **labels)
    return "digits-1"


def _submit(job_id: str, **labels: str) -> None:
    service = VertexService("project", "europe-west4")
    service.submit(Submission(job_id, small_job(), labels))


def test_a_run_of_another_machine_is_followed_and_cancelled(
    digits: Path, bucket: Bucket, vertex: FakeVertex, elsewhere: str
) -> None:
    """Found: only the workspace that had submitted a run knew it."""
    vertex.task(elsewhere, "DataVerdict", "RUNNING")
    record = _status(run_id=RUN[:12])
    assert (record.run_id, record.status) == (RUN, "running")
    assert record.node("DataVerdict").state == "running"
    detail = {"containerDetail": {"mainJob": "p/customJobs/9"}}
    vertex.task(elsewhere, "DataVerdict", "RUNNING", executorDetail=detail)
    vertex.log_entries.append(
        {
            "timestamp": "2026-01-01T00:00:00Z",
            "resource": {"type": "ml_job", "labels": {"job_id": "9"}},
            "textPayload": "a line",
        }
    )
    log = logs(LogsRequest(name="digits", node="DataVerdict", run_id=RUN))
    assert b"".join(log.read()) == b"a line\n"
    cancelled = cancel(CancelRequest(name="digits"))
    assert cancelled.job and cancelled.job.endswith(elsewhere)
    vertex.task(elsewhere, "DataVerdict", "CANCELLED")
    vertex.end(elsewhere, "CANCELLED")
    assert _status().status == "interrupted"
    with pytest.raises(UsageError, match="cannot be resumed: another machine"):
        resume(ResumeRequest(name="digits"))


def test_the_first_command_on_another_machine_may_be_cancel(
    digits: Path, vertex: FakeVertex, elsewhere: str
) -> None:
    vertex.task(elsewhere, "DataVerdict", "RUNNING")
    assert cancel(CancelRequest(name="digits")).job


def test_of_several_runs_the_one_that_is_named_is_cancelled(
    digits: Path, vertex: FakeVertex, elsewhere: str
) -> None:
    """Found: the newest one was cancelled, though another machine's or scheduled."""
    _submit("digits-2", **{"sluice-pipeline": "digits"})
    with pytest.raises(UsageError, match="several runs of digits are in progress") as e:
        cancel(CancelRequest(name="digits"))
    assert RUN in e.value.examples and e.value.hint == "sluice cancel digits --run ID"
    assert {job["state"] for job in vertex.jobs()} == {"PIPELINE_STATE_PENDING"}
    with pytest.raises(UsageError, match="run 'x' of digits is not in progress"):
        cancel(CancelRequest(name="digits", run_id="x"))
    cancelled = cancel(CancelRequest(name="digits", run_id=RUN[:16]))
    assert cancelled.job and cancelled.job.endswith(elsewhere)


def test_cancel_says_that_the_service_was_not_reached(
    digits: Path, vertex: FakeVertex, elsewhere: str
) -> None:
    vertex.fail("GET", "pipelineJobs", 403, "Permission 'x' denied on resource", 99)
    with pytest.raises(UsageError, match="no run of digits is in progress") as caught:
        cancel(CancelRequest(name="digits"))
    assert "a permission is missing" in str(caught.value)


def test_a_run_that_cannot_be_read_does_not_hide_others(
    digits: Path, bucket: Bucket, vertex: FakeVertex, elsewhere: str
) -> None:
    other = "20260202T000000Z-cd34"
    _submit("digits-2", **{"sluice-pipeline": "digits", "sluice-run": other.lower()})
    bucket.put(f"sluice/digits/runs/{other}/config.json", b'{"damaged')
    warnings: list[str] = []
    (record,) = status(StatusRequest(name="digits"), warnings.append)
    assert record.run_id == RUN
    assert len(warnings) == 1 and other in warnings[0]


def test_scheduled_runs_are_listed_with_what_their_job_has_written(
    digits: Path, bucket: Bucket, vertex: FakeVertex, elsewhere: str
) -> None:
    _submit("digits-2", **{"sluice-pipeline": "digits"})
    _submit("other-1", **{"sluice-pipeline": "other"})
    for name in ("DataVerdict", "DataGate", "Trainer", "Pusher", "Report"):
        vertex.task("digits-2", name, "SUCCEEDED")
    vertex.end("digits-2", "SUCCEEDED")
    (run_id,) = {row.run_id for row in list_runs(RunsRequest(name="digits")).rows} - {
        RUN
    }
    record = _status(run_id=run_id)
    assert record.status == "succeeded"
    assert record.command.startswith("vertex: projects/")
    assert Path(report(ReportRequest(name="digits", run_id=run_id)).report).exists()
    # Once known, a run that has ended is not asked for again.
    vertex.requests()
    assert len(list_runs(RunsRequest(name="digits")).rows) == 2
    assert not [line for line in vertex.requests() if "digits-2" in line]


def test_the_documents_and_the_config_of_the_job_are_taken(
    digits: Path, bucket: Bucket, vertex: FakeVertex, elsewhere: str
) -> None:
    own = submit_config(bucket)
    own["config"]["train"]["epochs"] = 77
    own["root"] = "/home/someone/else"
    folder = f"sluice/digits/runs/{RUN}"
    bucket.put(f"{folder}/config.json", json.dumps(own).encode())
    bucket.put(f"{folder}/record/Trainer.epochs.json", b"{}")
    vertex.task(elsewhere, "Trainer", "SUCCEEDED")
    vertex.end(elsewhere, "SUCCEEDED")
    record = _status()
    assert record.config["train"]["epochs"] == 77
    assert [(item.kind, item.node) for item in record.documents] == [
        ("epochs", "Trainer")
    ]
    run_dir = locate(digits, "digits").run_dir(RUN)
    assert json.loads((run_dir / "config.json").read_text())["root"] == str(digits)
    assert SubmittedJob.load(run_dir).record_uri == bucket.uri(folder)


def submit_config(bucket: Bucket) -> dict[str, Any]:
    from pipeline.config.load import load_config
    from pipeline.config.serialize import stored_config

    config = load_config("digits", overrides=on_vertex(bucket))
    return json.loads(json.dumps(stored_config(config)))


def test_runs_with_a_profile_adds_those_of_its_service(
    digits: Path,
    bucket: Bucket,
    vertex: FakeVertex,
    elsewhere: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    config = digits / "configs" / "digits.yaml"
    text, _, cloud = config.read_text().partition("\ncloud: ")
    config.write_text(text)
    profile = digits / "configs" / "profiles" / "mine.yaml"
    profile.parent.mkdir()
    profile.write_text(f"cloud: {cloud}")
    with pytest.raises(SystemExit) as ended:
        main(["runs", "digits", "--json", "--profile", "mine"])
    assert ended.value.code == 0
    assert [row["run_id"] for row in json.loads(capsys.readouterr().out)] == [RUN]
    assert _status().run_id == RUN
    shutil.rmtree(locate(digits, "digits").root)
    vertex.fail("GET", "pipelineJobs", 403, "Permission 'x' denied on resource", 99)
    warnings: list[str] = []
    request = RunsRequest(name="digits", profile="mine")
    assert list_runs(request, warnings.append).rows == []
    assert len(warnings) == 1 and "runs of other machines and of" in warnings[0]
