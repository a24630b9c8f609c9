"""Runs on Kubeflow Pipelines through the operations, with the real client."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fake_kfp import TAKEN, FakeKfp

from pipeline.config.load import load_config
from runners.cloud.cloud_locations import Upload
from runners.cloud.compile_spec import CompiledSpec
from runners.cloud.kubeflow_spec import for_kubeflow
from runners.kubeflow import client as kubeflow_client
from runners.operations.cancel import CancelRequest, cancel
from runners.operations.logs import LogsRequest, logs
from runners.operations.resume import ResumeRequest, resume
from runners.operations.service_runs import service_for
from runners.operations.status import StatusRequest, status
from runners.operations.submit import SubmitRequest, submit
from sluice.errors import RemoteError, UsageError
from sluice.record.run_record import RunRecord
from tests.cloud.conftest import on_kubeflow
from tests.runners.cloud.small_job import small_job

pytestmark = pytest.mark.cloud

_TFX = "tfx.orchestration.kubeflow.v2.container.kubeflow_v2_run_executor"
_TASKS = ("DataVerdict", "DataGate", "Trainer", "Pusher", "Report")


@pytest.fixture
def request_(
    digits: Path, bucket: Any, kfp: FakeKfp, monkeypatch: pytest.MonkeyPatch
) -> SubmitRequest:
    """Compiling takes no TFX; see ``test_service_runs`` for the real one."""
    job = small_job()
    for executor in job["pipelineSpec"]["deploymentSpec"]["executors"].values():
        executor["container"]["command"] = ["python", "-m", _TFX]
    records = bucket.uri("sluice/digits/kubeflow")
    job = for_kubeflow(job, task_records=records)
    job["runtimeConfig"]["gcsOutputDirectory"] = bucket.uri("sluice/digits/root")
    uri = bucket.uri("sluice/digits/inputs/schema/1/schema.pbtxt")
    schema = digits / "schemas/digits/schema.pbtxt"
    compiled = CompiledSpec(job, (Upload(schema, uri),))
    monkeypatch.setattr(
        "runners.cloud.service_engine.compile_checked", lambda config: compiled
    )
    return SubmitRequest(name="digits", overrides=on_kubeflow(bucket, kfp))


def _status() -> RunRecord:
    return status(StatusRequest(name="digits"))[0]


def _record(bucket: Any, run: dict[str, Any], task: str, **values: Any) -> None:
    """Writes a task record as the entry point does."""
    content = {
        "pod": f"pod-{task}",
        "started_at": "2026-11-22T01:00:00.000+00:00",
        "ended_at": "2026-11-22T01:01:00.000+00:00",
        "error": None,
        "inputs": {},
        "outputs": {},
        "failed_attempts": [],
        **values,
    }
    name = f"sluice/digits/kubeflow/{run['run_id']}/{task}.json"
    bucket.put(name, json.dumps(content).encode())


def _detail(task: str, state: str) -> dict[str, Any]:
    return {"display_name": task, "state": state}


def test_a_run_is_submitted_followed_and_ends(
    request_: SubmitRequest, bucket: Any, kfp: FakeKfp
) -> None:
    record = submit(request_)
    assert (record.status, record.exit_code) == ("running", None)
    (run,) = kfp.runs
    assert record.run_id.lower() in run["display_name"]
    assert json.loads(run["description"])["sluice-run"] == record.run_id.lower()
    assert "sluice/digits/inputs/schema/1/schema.pbtxt" in bucket.names()

    _record(bucket, run, "DataVerdict", ended_at=None)
    kfp.set_run(run["run_id"], "RUNNING", _detail("DataVerdict", "RUNNING"))
    assert _status().node("DataVerdict").state == "running"
    attempt = {"at": "2026-11-22T01:00:30.000+00:00", "reason": "OSError: reset"}
    _record(bucket, run, "Trainer", failed_attempts=[attempt])
    for task in ("DataVerdict", "DataGate", "Pusher", "Report"):
        _record(bucket, run, task)
    details = [_detail(task, "SUCCEEDED") for task in _TASKS]
    kfp.set_run(run["run_id"], "SUCCEEDED", *details)
    ended = _status()
    assert (ended.status, ended.exit_code) == ("succeeded", 0)
    trainer = ended.node("Trainer")
    assert (trainer.state, trainer.attempts) == ("ran", 2)
    # The service is asked no more.
    before = len(kfp.requests)
    assert _status() == ended and len(kfp.requests) == before


def test_parameters_that_are_too_large_are_not_submitted(
    request_: SubmitRequest, kfp: FakeKfp
) -> None:
    record = submit(replace(request_, accept_data="because " * 1_250))
    assert (record.status, record.exit_code) == ("failed", 2) and kfp.runs == []
    assert record.error is not None
    assert "bytes; Kubeflow takes 10,000; shorten" in record.error.message


def test_a_failed_node_has_the_error_and_the_log_of_its_pod(
    request_: SubmitRequest, bucket: Any, kfp: FakeKfp
) -> None:
    submit(request_)
    (run,) = kfp.runs
    for task in ("DataVerdict", "DataGate"):
        _record(bucket, run, task)
    _record(bucket, run, "Trainer", error="ValueError: no such file")
    kfp.logs["pod-Trainer"] = "Traceback\nValueError: no such file\n"
    kfp.set_run(
        run["run_id"],
        "FAILED",
        *(_detail(task, "SUCCEEDED") for task in ("DataVerdict", "DataGate")),
        _detail("Trainer", "FAILED"),
    )
    ended = _status()
    assert (ended.status, ended.exit_code) == ("failed", 7)
    assert ended.error is not None and ended.error.node == "Trainer"
    assert "ValueError: no such file" in ended.error.message
    states = {node.id: node.state for node in ended.nodes}
    assert (states["Trainer"], states["Pusher"]) == ("failed", "not_reached")
    log = logs(LogsRequest(name="digits", node="Trainer"))
    assert b"ValueError: no such file" in b"".join(log.read())


def test_a_run_is_cancelled_and_resumed(
    request_: SubmitRequest, bucket: Any, kfp: FakeKfp
) -> None:
    submit(request_)
    (run,) = kfp.runs
    _record(bucket, run, "DataVerdict")
    kfp.set_run(run["run_id"], "RUNNING", _detail("DataVerdict", "SUCCEEDED"))
    cancel(CancelRequest(name="digits"))
    assert kfp.runs[0]["state"] == "CANCELING"
    kfp.set_run(run["run_id"], "CANCELED", _detail("DataVerdict", "SUCCEEDED"))
    assert _status().status == "interrupted"
    again = resume(ResumeRequest(name="digits"))
    assert again.status == "running"
    first, second = (run["display_name"] for run in kfp.runs)
    assert first != second and second.endswith("-2")


def test_a_run_whose_answer_is_lost_is_found_again(
    request_: SubmitRequest, kfp: FakeKfp, monkeypatch: pytest.MonkeyPatch
) -> None:
    brief = kubeflow_client.RETRY.with_timeout(2)
    monkeypatch.setattr(kubeflow_client, "RETRY", brief)
    kfp.fail("POST", "/runs$", TAKEN)
    # The first look-up is answered, none after the request was taken.
    kfp.fail("GET", r"/runs\?.*display_name", 503, times=10_000, after=1)
    with pytest.raises(RemoteError, match="not known whether run .* was submitted"):
        submit(request_)
    kfp.heal()
    assert len(kfp.runs) == 1
    assert _status().status == "running"
    assert len(kfp.runs) == 1


def test_a_refusal_after_a_lost_answer_does_not_end_the_run(
    request_: SubmitRequest, kfp: FakeKfp
) -> None:
    kfp.fail("POST", "/runs$", TAKEN)
    kfp.fail("GET", r"/runs\?.*display_name", 401, after=1)
    with pytest.raises(RemoteError, match="not known whether run .* was submitted"):
        submit(request_)
    assert len(kfp.runs) == 1
    assert _status().status == "running"


def test_a_run_is_cancelled_without_reading_its_bucket(
    request_: SubmitRequest, bucket: Any, kfp: FakeKfp, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit(request_)
    (run,) = kfp.runs
    config = load_config("digits", overrides=request_.overrides)
    monkeypatch.setattr("runners.kubeflow.service.storage_for", None)
    service_for(config).cancel(run["run_id"])
    assert kfp.runs[0]["state"] == "CANCELING"


def test_a_missing_client_is_named_with_the_command_that_installs_it(
    request_: SubmitRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found: a ModuleNotFoundError, since another module imported it before."""
    for name in [name for name in sys.modules if name.startswith("runners.kubeflow")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "kfp_server_api", None)
    with pytest.raises(UsageError, match="package that is not installed") as caught:
        submit(request_)
    assert caught.value.hint == "pip install kfp-server-api"
