"""Runs in the service, from submit to report, with the real client and the fake."""

import json

import pytest
from google.api_core.exceptions import Forbidden, ServiceUnavailable

from pipeline.config.load import load_config
from runners.cli.logs import find_log
from runners.cli.main import main
from runners.cloud import refresh
from runners.cloud.job_inputs import CompiledJob, Upload
from runners.cloud.vertex_client import VertexService
from runners.engine import Observer
from runners.operations import submit as operations
from sluice.errors import RemoteError, UsageError
from sluice.record.run_record import RunOptions
from sluice.workspace import locate
from tests.cloud.conftest import on_vertex, run_dir_of, status, succeed
from tests.runners.cloud.small_job import small_job

pytestmark = pytest.mark.cloud


@pytest.fixture
def project(digits, bucket, vertex, monkeypatch):
    """Compiling takes no TFX; ``test_golden_specs.py`` has what it makes."""
    schema = digits / "schemas/digits/schema.pbtxt"
    uri = bucket.uri("sluice/digits/inputs/schema/1/schema.pbtxt")
    monkeypatch.setattr(
        operations,
        "compile_checked",
        lambda config: CompiledJob(small_job(), [Upload(schema, uri)]),
    )
    return digits


@pytest.fixture
def submit(project, bucket):
    def submit(wait=False, tags=(), **options):
        config = load_config("digits", overrides=on_vertex(bucket))
        given = RunOptions(**options)
        return operations.submit(
            config, given, observer=Observer(), wait=wait, tags=tags
        )

    return submit


def last_id(vertex):
    return vertex.resources()[-1]["name"].rpartition("/")[2]


def test_a_run_is_submitted_and_followed(submit, project, bucket, vertex):
    record = submit(accept_data="checked by hand", use_cache=False)
    assert (record.status, record.error) == ("running", None)
    (job,) = vertex.resources()
    job_id = last_id(vertex)
    assert job_id == f"run-digits-{record.run_id.lower()}"
    assert job["labels"]["sluice-run"] == record.run_id.lower()
    assert job["labels"]["tfx_version"] == "1-16-0"
    assert job["runtimeConfig"]["parameterValues"] == {"accept_data": "checked by hand"}
    tasks = job["pipelineSpec"]["components"]["tfx-dag"]["dag"]["tasks"]
    caching = [x["cachingOptions"].get("enableCache", False) for x in tasks.values()]
    assert caching == [False] * 4
    folder = f"sluice/digits/runs/{record.run_id}"
    assert {
        "sluice/digits/inputs/schema/1/schema.pbtxt",
        f"{folder}/config.json",
    } <= {*bucket.names()}
    assert record.pushes[0].destination == bucket.uri("sluice/digits/serving")
    assert record.digests["data"]
    vertex.task(job_id, "DataVerdict", "RUNNING")
    assert status().node("DataVerdict").state == "running"
    succeed(vertex, job_id)
    document = {"kind": "epochs", "node": "Trainer", "path": "documents/1.epochs.json"}
    bucket.put(f"{folder}/documents/1.epochs.json", b"{}")
    bucket.put(f"{folder}/run.json", json.dumps({"documents": [document]}).encode())
    ended = status()
    assert (ended.status, ended.exit_code) == ("succeeded", 0)
    assert [(item.kind, item.node) for item in ended.documents] == [
        ("epochs", "Trainer")
    ]
    assert (run_dir_of(project, record) / ended.documents[0].path).exists()
    # The service is asked no more.
    vertex.calls.clear()
    assert status() == ended and vertex.calls == []


def test_the_verb_waits_and_has_the_exit_code_of_the_run(
    project, bucket, vertex, monkeypatch, capsys
):
    def sleep(seconds, observer):
        error = {"code": 9, "message": "exited with a non-zero status of 1"}
        vertex.task(last_id(vertex), "DataGate", "FAILED", error=error)
        vertex.end(last_id(vertex), "FAILED", "some tasks failed: [DataGate]")

    monkeypatch.setattr(refresh, "_sleep", sleep)
    given = [*on_vertex(bucket), "notify.heartbeat=http://127.0.0.1:9"]
    options = [item for text in given for item in ("--set", text)]
    with pytest.raises(SystemExit) as ended:
        main(["submit", "digits", "--wait", "--json", *options])
    shown = capsys.readouterr()
    assert ended.value.code == 7, shown.err
    document = json.loads(shown.out)
    assert document["status"] == "failed"
    assert document["error"]["node"] == "DataGate"
    # Nobody listens there; a run is reported where it is waited for.
    assert any("notify.heartbeat: not sent" in note for note in document["notes"])


def test_waiting_for_a_run_that_goes_on_unseen_is_no_success(
    submit, bucket, vertex, monkeypatch, capsys
):
    """Found: `--wait` gave up after some failures, with exit code 0."""
    vertex.fail("get_pipeline_job", ServiceUnavailable("down"), times=1000)
    options = [item for text in on_vertex(bucket) for item in ("--set", text)]
    with pytest.raises(SystemExit) as ended:
        main(["submit", "digits", "--wait", *options])
    assert ended.value.code == 8
    assert "goes on without being watched" in capsys.readouterr().err
    vertex.heal()
    assert status().status == "running"


def test_without_an_answer_runs_are_shown_soon(submit, project, bucket, vertex):
    """Found: each open run, and the search for others, waited for three minutes."""
    submit()
    for method in ("get_pipeline_job", "list_pipeline_jobs"):
        vertex.fail(method, ServiceUnavailable("down"), times=1000)
    workspace = locate(project, "digits")
    (open_run,) = refresh.refresh_runs(workspace)
    config = load_config("digits", overrides=on_vertex(bucket))
    (others,) = refresh.import_runs(config, workspace)
    assert "as of their last refresh" in open_run and "are missing" in others


def test_a_lost_answer_submits_once(submit, vertex):
    vertex.fail("create_pipeline_job", ServiceUnavailable("lost"), is_done=True)
    assert submit().status == "running"
    assert len(vertex.resources()) == 1 and status().status == "running"


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (Forbidden("Permission 'x.create' denied"), "Permission 'x.create' denied"),
        (ServiceUnavailable("down"), "does not answer"),
    ],
)
def test_a_job_that_is_not_taken_ends_the_run(submit, vertex, error, says):
    vertex.fail("create_pipeline_job", error, times=1000)
    record = submit()
    assert (record.status, record.exit_code) == ("failed", 8)
    assert says in record.error.message and vertex.resources() == []


@pytest.mark.parametrize("is_taken", [True, False])
def test_ctrl_c_while_it_is_submitted(submit, vertex, monkeypatch, is_taken):
    send = VertexService.submit

    def interrupt(*given):
        if is_taken:
            send(*given)
        raise KeyboardInterrupt

    monkeypatch.setattr(VertexService, "submit", interrupt)
    with pytest.raises(KeyboardInterrupt):
        submit()
    record = status()
    assert record.status == ("running" if is_taken else "failed")
    assert is_taken or "was not taken" in record.error.message


def test_a_failed_task_is_explained_by_its_log(submit, vertex):
    submit()
    detail = {"containerDetail": {"mainJob": "p/customJobs/9"}}
    error = {"code": 9, "message": "exited with a non-zero status of 1"}
    job_id = last_id(vertex)
    vertex.task(job_id, "DataVerdict", "FAILED", error=error, executorDetail=detail)
    vertex.end(job_id, "FAILED", "some tasks failed")
    lines = ["reading", "sluice.errors.DataError: the data is damaged"]
    for second, line in enumerate(lines):
        entry = {
            "timestamp": f"2026-01-01T00:00:0{second}Z",
            "resource": {"type": "ml_job", "labels": {"job_id": "9"}},
            "textPayload": line,
        }
        vertex.log_entries.append(entry)
    record = status()
    assert (record.status, record.exit_code) == ("failed", 3)
    assert record.error.message == "the data is damaged"
    _, log = find_log("digits", "DataVerdict")
    assert log.read_text().splitlines() == lines


def test_a_secret_is_in_nothing_that_is_written(
    submit, project, bucket, vertex, monkeypatch
):
    from sluice import secrets

    secret = "planted-5ecret-v4lue"
    monkeypatch.setattr(secrets, "_resolved", {})
    monkeypatch.setenv("SLUICE_TEST_TOKEN", secret)
    submit(tags=("owner=me",))
    error = {"code": 9, "message": f"401 with {secret}"}
    vertex.task(last_id(vertex), "DataVerdict", "FAILED", error=error)
    vertex.end(last_id(vertex), "FAILED", "failed")
    secrets.remember("${env:SLUICE_TEST_TOKEN}")
    assert "401 with ${env:SLUICE_TEST_TOKEN}" in status().error.message
    written = [path.read_bytes() for path in project.rglob("*") if path.is_file()]
    written += [bucket.get(name) for name in bucket.names()]
    written += [call.encode() for call in vertex.calls]
    assert len(written) > 10
    assert not any(secret.encode() in content for content in written)


def test_kubeflow_is_compiled_for_only(project, bucket):
    config = load_config(
        "digits", overrides=[*on_vertex(bucket), "cloud.engine=kubeflow"]
    )
    with pytest.raises(UsageError, match="starts nothing there") as raised:
        operations.submit(config, RunOptions(), observer=Observer())
    assert "kfp run create" in str(raised.value)


def test_a_missing_bucket_ends_the_run(project, bucket, monkeypatch):
    monkeypatch.setattr("pipeline.checks.before_run.check_service", lambda config: [])
    given = [*on_vertex(bucket), "cloud.root=gs://there-is-none/s"]
    config = load_config("digits", overrides=given)
    record = operations.submit(config, RunOptions(), observer=Observer())
    assert (record.status, record.exit_code) == ("failed", RemoteError.exit_code)
    assert "there is no such bucket" in str(record.error)
