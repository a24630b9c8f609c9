"""Runs on Kubeflow Pipelines: its real client against a fake installation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fake_kfp import LOGIN, TAKEN, FakeKfp

from pipeline.config.cloud import Cloud, Kubeflow
from runners.cloud.service import Service, Submission
from runners.kubeflow import client as client_module
from runners.kubeflow import credentials
from runners.kubeflow.credentials import TOKEN_FILE_VARIABLE, find_token_source
from runners.kubeflow.service import KubeflowService
from sluice.errors import NoAnswerError, RemoteError, UsageError

pytestmark = pytest.mark.cloud

_LABELS = {"sluice-pipeline": "digits", "sluice-run": "20261122t000000z-ab12"}


@pytest.fixture
def kfp(kfp: FakeKfp, server: Any, monkeypatch: pytest.MonkeyPatch) -> FakeKfp:
    server.make_bucket("b")
    monkeypatch.delenv(TOKEN_FILE_VARIABLE, raising=False)
    return kfp


def _give_up_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    brief = client_module.RETRY.with_timeout(0.2)
    monkeypatch.setattr(client_module, "RETRY", brief)


def _cloud(kfp: FakeKfp) -> Cloud:
    return Cloud(engine="kubeflow", kubeflow=Kubeflow(host=kfp.host))


@pytest.fixture
def service(kfp: FakeKfp) -> KubeflowService:
    return KubeflowService(_cloud(kfp), "digits")


def _job(records: str = "gs://b/tasks", **parameters: Any) -> dict[str, Any]:
    """Two containers: a trainer, whose model a pusher takes."""
    model = {"artifactType": {"instanceSchema": "title: tfx.Model\ntype: object\n"}}
    source = {"producerTask": "Trainer", "outputArtifactKey": "model"}
    components: dict[str, Any] = {
        "Trainer": {"outputDefinitions": {"artifacts": {"model": model}}},
        "Pusher": {"inputDefinitions": {"artifacts": {"model": model}}},
    }
    tasks: dict[str, Any] = {
        "Trainer": {},
        "Pusher": {
            "inputs": {"artifacts": {"model": {"taskOutputArtifact": source}}},
            "dependentTasks": ["Trainer"],
        },
    }
    executors = {}
    for name, component in components.items():
        component["executorLabel"] = f"{name}_executor"
        tasks[name] |= {"componentRef": {"name": name}, "taskInfo": {"name": name}}
        args = ["--task_records", records, "--task", name]
        executors[f"{name}_executor"] = {"container": {"image": "i", "args": args}}
    declared = {name: {"parameterType": "STRING"} for name in parameters}
    root: dict[str, Any] = {"dag": {"tasks": tasks}}
    if declared:
        root["inputDefinitions"] = {"parameters": declared}
    settings: dict[str, Any] = {"gcsOutputDirectory": "gs://b/root"}
    if parameters:
        settings["parameterValues"] = parameters
    return {
        "displayName": "digits",
        "runtimeConfig": settings,
        "pipelineSpec": {
            "pipelineInfo": {"name": "digits"},
            "schemaVersion": "2.1.0",
            "sdkVersion": "tfx-1.16.0",
            "components": components,
            "deploymentSpec": {"executors": executors},
            "root": root,
        },
    }


def _submission(job: dict[str, Any] | None = None) -> Submission:
    return Submission("digits-20261122t000000z-ab12", job or _job(), _LABELS)


def _detail(name: str, state: str, **more: Any) -> dict[str, Any]:
    return {
        "display_name": name,
        "state": state,
        "start_time": "2026-11-22T01:00:00Z",
        "end_time": "2026-11-22T01:05:00Z",
        **more,
    }


def _records(bucket: Any, run_id: str, **tasks: dict[str, Any]) -> None:
    for name, record in tasks.items():
        empty: dict[str, Any] = {
            "inputs": {},
            "outputs": {},
            "failed_attempts": [],
            "error": None,
        }
        content = {"task": name, "pod": f"pod-{name}", "ended_at": None} | empty
        data = json.dumps({**content, **record}).encode()
        bucket.put(f"tasks/{run_id}/{name}.json", data)


def test_it_is_a_service(service: KubeflowService) -> None:
    checked: Service = service
    assert checked.engine == "kubeflow"


def test_a_run_has_the_spec_the_parameters_and_the_labels(
    kfp: FakeKfp, service: KubeflowService
) -> None:
    name = service.submit(_submission(_job(spans="[4]")))
    (run,) = kfp.runs
    assert (run["run_id"], run["state"]) == (name, "PENDING")
    assert run["display_name"] == "digits-20261122t000000z-ab12"
    assert run["runtime_config"]["parameters"] == {"spans": "[4]"}
    assert run["runtime_config"]["pipeline_root"] == "gs://b/root"
    (experiment,) = kfp.items["experiments"].values()
    assert experiment["display_name"] == "digits"
    found = service.find("digits-20261122t000000z-ab12")
    assert found is not None
    assert (found.name, found.state, found.labels) == (name, "pending", _LABELS)
    assert found.spec["pipelineSpec"]["pipelineInfo"] == {"name": "digits"}
    assert service.page(name) == f"{kfp.host}/#/runs/details/{name}"


def test_a_second_submission_of_a_run_is_the_same(
    kfp: FakeKfp, service: KubeflowService
) -> None:
    assert service.submit(_submission()) == service.submit(_submission())
    assert len(kfp.runs) == 1


def test_a_lost_answer_does_not_submit_twice(
    kfp: FakeKfp, service: KubeflowService
) -> None:
    kfp.fail("POST", "/runs$", TAKEN)
    name = service.submit(_submission())
    assert [run["run_id"] for run in kfp.runs] == [name]


def test_a_request_that_arrives_late_is_taken_back(
    kfp: FakeKfp, service: KubeflowService
) -> None:
    kfp.fail("POST", "/runs$", TAKEN)
    kfp.hidden = 2  # Before and after the first try: the run is not seen.
    name = service.submit(_submission())
    assert [run["run_id"] for run in kfp.runs] == [name]
    assert sum("POST" in line and line.endswith("/runs") for line in kfp.requests) == 2
    assert any("DELETE" in line for line in kfp.requests)


def test_a_new_run_may_be_missing_in_the_list(
    kfp: FakeKfp, service: KubeflowService
) -> None:
    kfp.hidden = 2
    assert [service.submit(_submission())] == [run["run_id"] for run in kfp.runs]


def test_a_run_whose_state_is_not_known_yet_is_pending(
    kfp: FakeKfp, service: KubeflowService
) -> None:
    name = service.submit(_submission())
    kfp.set_run(name, "RUNTIME_STATE_UNSPECIFIED")
    (job,) = service.list("digits", 5)
    assert job.state == "pending"


def test_a_page_to_log_in_is_no_answer(kfp: FakeKfp, service: KubeflowService) -> None:
    kfp.fail("GET", "/experiments", LOGIN, times=9)
    with pytest.raises(RemoteError, match="does not accept the credentials"):
        service.submit(_submission())
    assert kfp.runs == []


def test_an_experiment_that_another_process_creates_meanwhile_is_used(
    kfp: FakeKfp, service: KubeflowService
) -> None:
    listing = service.client.experiments.experiment_service_list_experiments
    ids: list[str] = []

    def list_too_early(**given: Any) -> Any:
        page = listing(**given)
        if not ids:
            ids.append("")
            ids[0] = KubeflowService(_cloud(kfp), "digits").experiment_id()
        return page

    service.client.experiments.experiment_service_list_experiments = list_too_early
    assert [service.experiment_id()] == ids


@pytest.mark.parametrize("status", [429, 503])
def test_a_busy_service_is_asked_again(
    kfp: FakeKfp, service: KubeflowService, status: int
) -> None:
    for method in ("GET", "POST"):
        kfp.fail(method, "", status, times=2)
    assert service.submit(_submission())
    assert len(kfp.runs) == 1


def test_a_service_that_stays_busy_is_an_error(
    kfp: FakeKfp, service: KubeflowService, monkeypatch: pytest.MonkeyPatch
) -> None:
    _give_up_soon(monkeypatch)
    kfp.fail("GET", "", 503, times=10_000)
    with pytest.raises(NoAnswerError, match="has too much to do") as raised:
        service.get("x")
    assert raised.value.hint == "try again later"


def test_a_service_that_is_not_there_says_how_to_reach_it(
    kfp: FakeKfp, service: KubeflowService, monkeypatch: pytest.MonkeyPatch
) -> None:
    _give_up_soon(monkeypatch)
    kfp.close()
    with pytest.raises(NoAnswerError, match="does not answer") as raised:
        service.get("x")
    assert "kubectl port-forward" in str(raised.value.hint)


def test_an_expired_token_is_replaced(
    kfp: FakeKfp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "token"
    file.write_text("old\n")
    monkeypatch.setenv(TOKEN_FILE_VARIABLE, str(file))
    kfp.token = "old"
    service = KubeflowService(_cloud(kfp), "digits")
    name = service.submit(_submission())
    kfp.token = "new"
    with pytest.raises(RemoteError, match="does not accept the credentials") as raised:
        service.get(name)
    assert TOKEN_FILE_VARIABLE in str(raised.value.hint)
    assert "old" not in str(raised.value)
    file.write_text("new\n")
    assert service.get(name)


def test_what_the_service_says_of_a_bad_spec_is_shown(
    kfp: FakeKfp, service: KubeflowService
) -> None:
    job = _job()
    job["pipelineSpec"]["deploymentSpec"]["executors"]["Trainer_executor"] = {
        "resolver": {}
    }
    with pytest.raises(RemoteError, match="non-container and non-importer"):
        service.submit(_submission(job))
    assert kfp.runs == []


def test_a_missing_permission_names_the_role(
    kfp: FakeKfp, service: KubeflowService
) -> None:
    kfp.fail("GET", "", 403)
    with pytest.raises(RemoteError) as raised:
        service.get("x")
    assert "kubectl create rolebinding" in str(raised.value.hint)


def test_a_config_without_an_address_is_refused() -> None:
    with pytest.raises(UsageError, match="does not say where"):
        KubeflowService(Cloud(engine="kubeflow"), "digits")


def test_there_is_no_run_of_an_unknown_id(service: KubeflowService) -> None:
    assert service.get("x") is None
    assert service.find("x") is None


def test_the_artifacts_of_a_task_are_those_of_its_record(
    kfp: FakeKfp, service: KubeflowService, bucket: Any
) -> None:
    name = service.submit(_submission(_job(bucket.uri("tasks"))))
    model = {"type": "tfx.Model", "uri": "gs://b/model", "properties": {"epochs": 3.0}}
    attempt = {"at": "2026-11-22T01:01:00.000+00:00", "reason": "OSError: reset"}
    trainer = {
        "started_at": "2026-11-22T01:02:00.000+00:00",
        "ended_at": "2026-11-22T01:03:00.000+00:00",
        "outputs": {"model": [model]},
        "failed_attempts": [attempt],
    }
    pusher = {
        "started_at": "2026-11-22T01:03:30.000+00:00",
        "inputs": {"model": [model]},
    }
    _records(bucket, name, Trainer=trainer, Pusher=pusher)
    details = [_detail("Trainer", "SUCCEEDED"), _detail("Pusher", "RUNNING")]
    kfp.set_run(name, "RUNNING", *details, _detail("root-driver", "SUCCEEDED"))
    job = service.get(name)
    assert job is not None
    tasks = {task.name: task for task in job.tasks}
    assert set(tasks) == {"Trainer", "Pusher"}
    trained, pushing = tasks["Trainer"], tasks["Pusher"]
    assert (trained.state, pushing.state) == ("succeeded", "running")
    assert trained.started_at == "2026-11-22T01:02:00.000+00:00"
    (failed,) = trained.failed_attempts
    assert failed.reason == "OSError: reset"
    (output,) = trained.outputs["model"]
    assert (output.type, output.uri) == ("Model", "gs://b/model")
    assert output.properties == {"epochs": 3}
    assert type(output.properties["epochs"]) is int
    assert pushing.inputs["model"] == (output,)


def test_a_cached_task_has_no_record_but_its_artifacts_are_inputs_of_others(
    kfp: FakeKfp, service: KubeflowService, bucket: Any
) -> None:
    name = service.submit(_submission(_job(bucket.uri("tasks"))))
    model = {"type": "tfx.Model", "uri": "gs://b/old", "properties": {}}
    started = {"started_at": "2026-11-22T01:03:30.000+00:00"}
    _records(bucket, name, Pusher={**started, "inputs": {"model": [model]}})
    details = [_detail("Trainer", "SUCCEEDED"), _detail("Pusher", "RUNNING")]
    kfp.set_run(name, "RUNNING", *details)
    job = service.get(name)
    assert job is not None
    trainer = next(task for task in job.tasks if task.name == "Trainer")
    assert trainer.state == "cached"
    assert [item.uri for item in trainer.outputs["model"]] == ["gs://b/old"]


def test_a_failed_task_has_the_error_of_its_record_or_of_its_driver(
    kfp: FakeKfp, service: KubeflowService, bucket: Any
) -> None:
    name = service.submit(_submission(_job(bucket.uri("tasks"))))
    started = {"started_at": "2026-11-22T01:03:30.000+00:00"}
    _records(bucket, name, Trainer={**started, "error": "ValueError: no data"})
    failed = _detail("Trainer", "FAILED")
    error = {"code": 2, "message": "cannot resolve inputs"}
    driver = _detail("Pusher-driver", "FAILED", error=error)
    kfp.set_run(name, "FAILED", failed, driver)
    job = service.get(name)
    assert job is not None
    assert job.state == "failed"
    errors = {task.name: (task.state, task.error) for task in job.tasks}
    assert errors == {
        "Trainer": ("failed", "ValueError: no data"),
        "Pusher": ("failed", "cannot resolve inputs"),
    }


def test_records_that_cannot_be_read_say_what_to_grant(
    kfp: FakeKfp, service: KubeflowService
) -> None:
    name = service.submit(_submission(_job("gs://missing/tasks")))
    with pytest.raises(RemoteError, match="have recorded cannot be read") as raised:
        service.get(name)
    assert "roles/storage.objectViewer" in str(raised.value.hint)
    assert raised.value.actual == "there is no bucket gs://missing"


def test_a_cancelled_run_is_terminated_once(
    kfp: FakeKfp, service: KubeflowService
) -> None:
    name = service.submit(_submission())
    kfp.set_run(name, "RUNNING")
    service.cancel(name)
    service.cancel(name)
    assert kfp.runs[0]["state"] == "CANCELING"
    kfp.set_run(name, "CANCELED")
    service.cancel(name)
    job = service.get(name)
    assert job is not None and job.state == "cancelled"
    assert sum(":terminate" in line for line in kfp.requests) == 1


def test_the_newest_runs_of_a_pipeline_are_listed_over_pages(
    kfp: FakeKfp, service: KubeflowService
) -> None:
    for number in range(5):
        service.submit(Submission(f"digits-{number}", _job(), _LABELS))
    other = _job()
    other["pipelineSpec"]["pipelineInfo"]["name"] = "taxi"
    service.submit(Submission("taxi-1", other, {}))
    listed = service.list("digits", 3)
    newest = [run["run_id"] for run in kfp.runs[:-1]][:-4:-1]
    assert [job.name for job in listed] == newest


def test_a_scheduled_run_without_labels_belongs_to_its_pipeline(
    kfp: FakeKfp, service: KubeflowService
) -> None:
    service.submit(_submission())
    kfp.runs[0]["description"] = "of a schedule"
    (job,) = service.list("digits", 10)
    assert job.labels == {"sluice-pipeline": "digits"}


def test_the_log_of_a_task_is_that_of_its_pod(
    kfp: FakeKfp, service: KubeflowService, bucket: Any
) -> None:
    name = service.submit(_submission(_job(bucket.uri("tasks"))))
    assert list(service.logs(name, "Trainer", 10)) == []
    _records(bucket, name, Trainer={"started_at": "2026-11-22T01:03:30.000+00:00"})
    kfp.logs["pod-Trainer"] = "one\ntwo\nthree\n"
    assert list(service.logs(name, "Trainer", 2)) == ["two", "three"]


class _Credentials:
    """Google's credentials, whose n-th token is n."""

    valid = False
    token = 0

    def refresh(self, request: object) -> None:
        self.valid, self.token = True, self.token + 1


def test_googles_tokens_are_renewed_when_they_expire_or_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = _Credentials()
    monkeypatch.setattr(
        credentials.google.auth, "default", lambda scopes: (found, "project")
    )
    source = find_token_source("https://x-dot-europe.pipelines.googleusercontent.com/")
    assert source is not None
    assert [source(False), source(False), source(True)] == ["1", "1", "2"]
    found.valid = False
    assert source(False) == "3"
