"""``sluice schedule``: from the config to the service, and back to the terminal."""

import json

import pytest

from runners.cli.main import main
from runners.cloud.job_inputs import CompiledJob, Upload
from tests.cloud.conftest import on_vertex
from tests.runners.cloud.small_job import small_job

pytestmark = pytest.mark.cloud


@pytest.fixture
def schedule(digits, bucket, vertex, monkeypatch, capsys):
    """Calls the verb; returns its exit code and what it has printed."""
    file = digits / "schemas/digits/schema.pbtxt"

    def compile_checked(config, *, scheduled):
        assert scheduled
        uri = f"{config.cloud_dir}/inputs/schema.pbtxt"
        return CompiledJob(small_job(), [Upload(file, uri)])

    monkeypatch.setattr("runners.operations.schedules.compile_checked", compile_checked)
    given = [word for item in on_vertex(bucket) for word in ("--set", item)]

    def call(verb, *options):
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main(["schedule", verb, "digits", *given, *options])
        shown = capsys.readouterr()
        return ended.value.code, shown.out + shown.err

    return call


def schedules(vertex):
    return [
        (item["cron"], item["state"], item.get("allowQueueing", False))
        for item in vertex.resources("schedules")
    ]


def test_a_schedule_is_set_changed_and_deleted(schedule, bucket, vertex):
    code, out = schedule("set", "--cron", "*/5 3 * * *", "--timezone", "Europe/Berlin")
    assert (code, out.splitlines()[0]) == (0, "digits: active")
    assert schedules(vertex) == [("TZ=Europe/Berlin */5 3 * * *", "ACTIVE", False)]
    assert bucket.get("sluice/digits/inputs/schema.pbtxt")
    (made,) = vertex.resources("schedules")
    job = made["createPipelineJobRequest"]["pipelineJob"]
    assert job["labels"]["sluice-pipeline"] == "digits"
    # One that was paused in the console stays paused.
    made["state"] = "PAUSED"
    schedule("set", "--cron", "0 4 * * *", "--set", "cloud.schedule.catch_up=true")
    assert schedules(vertex) == [("TZ=UTC 0 4 * * *", "PAUSED", True)]
    shown = json.loads(schedule("show", "--json")[1])
    assert shown.pop("schema_version") == 1
    assert (shown["cron"], shown["state"]) == ("TZ=UTC 0 4 * * *", "paused")
    assert schedule("delete") == (0, "deleted the schedule of digits\n")
    assert schedules(vertex) == []
    code, out = schedule("show")
    assert code == 2 and "digits has no schedule on Vertex AI" in out


def test_the_config_says_what_the_command_leaves_out(schedule, vertex):
    given = ("--set", "cloud.schedule={cron: 0 5 * * *, catch_up: true}")
    schedule("set", *given)
    assert schedules(vertex) == [("TZ=UTC 0 5 * * *", "ACTIVE", True)]
