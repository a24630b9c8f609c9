"""``sluice schedule``: from the config to the service, and back to the terminal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from fake_kfp import FakeKfp

from pipeline.config.config import Config
from runners.cloud.cloud_locations import Upload
from runners.cloud.compile_spec import CompiledSpec
from runners.operations.schedule import (
    ScheduleRequest,
    SetScheduleRequest,
    delete_schedule,
    list_schedules,
    pause_schedule,
    resume_schedule,
    set_schedule,
    show_schedule,
)
from sluice.errors import ConfigError, RemoteError, UsageError

pytestmark = pytest.mark.cloud

_ROOT = Path(__file__).parents[2]


@pytest.fixture
def kfp(kfp: FakeKfp, monkeypatch: pytest.MonkeyPatch) -> FakeKfp:
    monkeypatch.chdir(_ROOT)
    return kfp


@pytest.fixture
def asked(kfp: FakeKfp, bucket: Any, tmp_path: Path) -> dict[str, Any]:
    """What all requests say: where the service, its bucket and the workspace are."""
    settings = {
        "engine": "kubeflow",
        "root": bucket.uri("sluice"),
        "image": "sluice/digits",
        "kubeflow.host": kfp.host,
    }
    named = {f"cloud.{key}": value for key, value in settings.items()}
    named["data.dir"] = bucket.uri("data")
    overrides = tuple(f"{key}={value}" for key, value in named.items())
    return {
        "name": "digits",
        "overrides": overrides,
        "workspace_dir": str(tmp_path / "workspace"),
    }


class Compiler:
    """Compiles to a small spec with one file to upload.

    Attributes:
      calls: how often it was called.
    """

    def __init__(self, folder: Path) -> None:
        self._file = folder / "schema.pbtxt"
        self._file.write_text("schema")
        self.calls = 0

    def __call__(self, config: Config, *, scheduled: bool) -> CompiledSpec:
        assert scheduled
        self.calls += 1
        spec = {
            "pipelineInfo": {"name": config.name},
            "schemaVersion": "2.1.0",
            "sdkVersion": "tfx-1.16.0",
            "components": {},
            "deploymentSpec": {"executors": {}},
            "root": {"dag": {"tasks": {}}},
        }
        runtime = {"gcsOutputDirectory": f"{config.cloud_dir}/artifacts"}
        job = {"displayName": config.name, "pipelineSpec": spec}
        upload = Upload(self._file, f"{config.cloud_dir}/inputs/schema.pbtxt")
        return CompiledSpec({**job, "runtimeConfig": runtime}, (upload,))


@pytest.fixture
def compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Compiler:
    compiler = Compiler(tmp_path)
    monkeypatch.setattr("runners.operations.schedule.compile_checked", compiler)
    return compiler


def _set(asked: dict[str, Any], **more: Any) -> Any:
    return set_schedule(SetScheduleRequest(**asked, **more))


def test_the_inputs_are_uploaded_and_the_next_times_are_shown(
    kfp: FakeKfp, bucket: Any, compiler: Compiler, asked: dict[str, Any]
) -> None:
    view = _set(asked, cron="0 3 * * *")
    assert bucket.get("sluice/digits/inputs/schema.pbtxt") == b"schema"
    (stored,) = kfp.recurring_runs
    root = stored["runtime_config"]["pipeline_root"]
    assert root == bucket.uri("sluice/digits/artifacts")
    assert view.schedule.state == "active"
    assert [time.hour for time in view.next_times] == [3] * 5
    assert show_schedule(ScheduleRequest(**asked)).schedule == view.schedule


def test_an_image_of_a_node_that_does_not_hold_the_code_is_refused(
    kfp: FakeKfp, compiler: Compiler, asked: dict[str, Any]
) -> None:
    other = "cloud.nodes.Trainer={image: 'eu/me:latest'}"
    asked = {**asked, "overrides": (*asked["overrides"], other)}
    with pytest.raises(ConfigError, match="does not hold the code") as caught:
        _set(asked, cron="0 3 * * *")
    assert caught.value.where == "eu/me:latest"
    assert (compiler.calls, kfp.recurring_runs) == (0, [])


def test_the_config_says_what_the_command_leaves_out(
    compiler: Compiler, asked: dict[str, Any]
) -> None:
    more = ("cloud.schedule.cron=0 5 * * *", "cloud.schedule.catch_up=true")
    asked = {**asked, "overrides": (*asked["overrides"], *more)}
    view = _set(asked)
    assert (view.schedule.cron, view.schedule.catch_up) == ("0 5 * * *", True)
    assert view.schedule.max_concurrent == 1
    changed = _set(asked, cron="0 6 * * *", catch_up=False, max_concurrent=2)
    assert (changed.schedule.cron, changed.schedule.catch_up) == ("0 6 * * *", False)
    assert changed.schedule.max_concurrent == 2


def test_the_default_timezone_is_that_of_the_installation(
    compiler: Compiler, asked: dict[str, Any]
) -> None:
    more = "cloud.kubeflow.timezone=Asia/Tokyo"
    asked = {**asked, "overrides": (*asked["overrides"], more)}
    view = _set(asked, cron="0 3 * * *")
    assert view.schedule.timezone == "Asia/Tokyo"
    assert [time.hour for time in view.next_times] == [3] * 5


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({}, "neither the command nor the config says when runs start"),
        ({"cron": "0 3 * *"}, "cron expression is wrong"),
        ({"cron": "0 3 * * *", "timezone": "Mars"}, "there is no timezone"),
        ({"cron": "0 3 * * *", "timezone": "Asia/Tokyo"}, "one timezone for all"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_compiled(
    kfp: FakeKfp,
    compiler: Compiler,
    asked: dict[str, Any],
    given: dict[str, Any],
    problem: str,
) -> None:
    with pytest.raises(UsageError, match=problem):
        _set(asked, **given)
    assert (compiler.calls, kfp.requests) == (0, [])


def test_a_missing_bucket_creates_no_schedule(
    kfp: FakeKfp, compiler: Compiler, asked: dict[str, Any]
) -> None:
    root = "cloud.root=gs://there-is-none/sluice"
    asked = {**asked, "overrides": (*asked["overrides"], root)}
    with pytest.raises(RemoteError, match="cannot be copied into the bucket"):
        _set(asked, cron="0 3 * * *")
    assert kfp.recurring_runs == []


def test_a_config_without_the_section_says_which_profile_to_take(
    asked: dict[str, Any],
) -> None:
    with pytest.raises(ConfigError, match="no section cloud"):
        list_schedules(ScheduleRequest(**{**asked, "overrides": ()}))


def test_a_schedule_is_paused_resumed_and_deleted(
    kfp: FakeKfp, compiler: Compiler, asked: dict[str, Any]
) -> None:
    _set(asked, cron="0 3 * * *")
    request = ScheduleRequest(**asked)
    paused = pause_schedule(request)
    assert (paused.schedule.state, paused.next_times) == ("paused", ())
    assert resume_schedule(request).schedule.state == "active"
    assert [view.schedule.pipeline for view in list_schedules(request)] == ["digits"]
    delete_schedule(request)
    assert kfp.recurring_runs == []
    with pytest.raises(
        UsageError, match="digits has no schedule on Kubeflow"
    ) as raised:
        pause_schedule(request)
    assert "schedule set digits --set" in str(raised.value.hint)
    elsewhere = ScheduleRequest(**asked, engine="kubeflow")
    with pytest.raises(UsageError) as raised:
        show_schedule(elsewhere)
    assert "--engine kubeflow" in str(raised.value.hint)


def test_the_last_runs_of_the_pipeline_are_shown(
    kfp: FakeKfp, compiler: Compiler, asked: dict[str, Any]
) -> None:
    _set(asked, cron="0 3 * * *")
    (schedule,) = kfp.recurring_runs
    run = {
        "run_id": "r-1",
        "display_name": "sluice-digits-1",
        "description": "of a schedule",
        "pipeline_spec": schedule["pipeline_spec"],
        "experiment_id": schedule["experiment_id"],
        "state": "SUCCEEDED",
        "created_at": "2026-11-22T03:00:00Z",
        "finished_at": "2026-11-22T03:20:00Z",
    }
    kfp.items["runs"]["r-1"] = run
    (last,) = show_schedule(ScheduleRequest(**asked)).last_runs
    assert (last.created_at, last.state) == (
        "2026-11-22T03:00:00.000+00:00",
        "succeeded",
    )
    assert last.page == f"{kfp.host}/#/runs/details/r-1"


def test_reading_creates_nothing(
    kfp: FakeKfp, compiler: Compiler, asked: dict[str, Any]
) -> None:
    _set(asked, cron="0 3 * * *")
    kfp.items["experiments"].clear()
    assert show_schedule(ScheduleRequest(**asked)).last_runs == ()
    list_schedules(ScheduleRequest(**asked))
    assert kfp.items["experiments"] == {}


def test_the_terminal_has_the_next_five_times_and_json_the_same(
    compiler: Compiler, asked: dict[str, Any]
) -> None:
    from runners.cli.schedule import schedule

    _set(asked, cron="30 4 * * 1-5")
    settings = [word for item in asked["overrides"] for word in ("--set", item)]
    options = ["digits", *settings, "--workspace", asked["workspace_dir"]]
    shown = CliRunner().invoke(schedule, ["show", *options])
    assert shown.exit_code == 0, shown.output
    first, cron, label, *times = shown.output.splitlines()
    assert first == "digits on Kubeflow Pipelines: active"
    missed = "missed runs left out but for the last one"
    assert cron == f"  cron: 30 4 * * 1-5 (UTC), 1 at a time, {missed}"
    assert label == "  next:"
    assert len(times) == 5 and all("04:30 +0000" in line for line in times)
    found = json.loads(
        CliRunner().invoke(schedule, ["show", *options, "--json"]).output
    )
    assert (found["schema_version"], found["engine"]) == (1, "kubeflow")
    assert (found["cron"], found["state"]) == ("30 4 * * 1-5", "active")
    assert len(found["next_times"]) == 5
    (listed,) = json.loads(
        CliRunner().invoke(schedule, ["list", *options, "--json"]).output
    )
    assert listed == found
    table = CliRunner().invoke(schedule, ["list", *options]).output
    assert "digits" in table and "04:30" in table
