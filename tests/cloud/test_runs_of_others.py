"""Runs that other machines or schedules have submitted, with the real client."""

import json
import shutil

import pytest
from google.api_core.exceptions import Forbidden

from pipeline.config.load import load_config
from pipeline.config.serialize import stored_config
from runners.cloud.vertex_client import VertexService
from runners.operations.cancel import cancel
from runners.operations.find_run import updated_workspace
from sluice.errors import UsageError
from tests.cloud.conftest import on_vertex, run_dir_of, status, succeed
from tests.runners.cloud.small_job import small_job

pytestmark = pytest.mark.cloud

RUN = "20260101T000000Z-ab12"


def elsewhere_id(vertex, job_id, **labels):
    service = VertexService("project", "europe-west4")
    labels = {"sluice-pipeline": "digits", **labels}
    service.submit(job_id, {**small_job(), "labels": labels})
    return job_id


@pytest.fixture
def elsewhere(digits, bucket, vertex):
    """Submits a job that this workspace does not know; returns its id."""
    cloud = dict(item.split("=", 1) for item in on_vertex(bucket))
    section = {
        key.removeprefix("cloud."): value
        for key, value in cloud.items()
        if key.startswith("cloud.")
    }
    with (digits / "configs" / "digits.yaml").open("a") as file:
        file.write(f"\ncloud: {json.dumps(section)}\n")
    return elsewhere_id(vertex, "digits-1", **{"sluice-run": RUN.lower()})


def test_a_run_of_another_machine_is_followed_and_cancelled(elsewhere, vertex):
    """Found: only the workspace that had submitted a run knew it."""
    vertex.task(elsewhere, "DataVerdict", "RUNNING")
    record = status(run_id=RUN[:12])
    assert (record.run_id, record.status) == (RUN, "running")
    assert record.node("DataVerdict").state == "running"
    assert cancel("digits")["job"].endswith(elsewhere)
    vertex.task(elsewhere, "DataVerdict", "CANCELLED")
    vertex.end(elsewhere, "CANCELLED")
    record = status()
    assert (record.status, record.exit_code) == ("interrupted", 130)
    assert record.resume_command is None


def test_of_several_runs_the_one_that_is_named_is_cancelled(elsewhere, vertex):
    """Found: the newest one was cancelled, though another machine's or scheduled."""
    elsewhere_id(vertex, "digits-2")
    with pytest.raises(UsageError, match="several runs of digits are in progress") as e:
        cancel("digits")
    assert RUN in e.value.examples and "--run ID" in e.value.what
    assert {job["state"] for job in vertex.resources()} == {"PIPELINE_STATE_PENDING"}
    with pytest.raises(UsageError, match="no run of digits is in progress"):
        cancel("digits", "x")
    assert cancel("digits", RUN[:16])["job"].endswith(elsewhere)


def test_the_config_of_the_job_is_taken(digits, elsewhere, bucket, vertex):
    config = load_config("digits", overrides=["train.epochs=77"])
    stored = {**stored_config(config), "root": "/home/someone/else"}
    folder = f"sluice/digits/runs/{RUN}"
    bucket.put(f"{folder}/config.json", json.dumps(stored).encode())
    succeed(vertex, elsewhere)
    record = status()
    assert (record.status, record.config["train"]["epochs"]) == ("succeeded", 77)
    assert record.command.startswith("vertex: projects/")
    run_dir = run_dir_of(digits, record)
    assert json.loads((run_dir / "config.json").read_text())["root"] == str(digits)
    # Once known, a run that has ended is not asked for again.
    vertex.calls.clear()
    assert status() == record
    assert not [call for call in vertex.calls if call.startswith("get")]


def test_a_profile_adds_the_runs_of_its_service(digits, elsewhere, vertex, caplog):
    config, profiles = digits / "configs/digits.yaml", digits / "configs/profiles"
    text, _, cloud = config.read_text().partition("\ncloud: ")
    config.write_text(text)
    profiles.mkdir()
    (profiles / "mine.yaml").write_text(f"cloud: {cloud}")
    workspace = updated_workspace("digits", profile="mine")
    assert workspace.run_ids() == [RUN] and status().run_id == RUN
    shutil.rmtree(workspace.root)
    vertex.fail("list_pipeline_jobs", Forbidden("Permission 'x' denied"), 99)
    assert updated_workspace("digits", profile="mine").run_ids() == []
    assert "are missing: Google Cloud refuses a request" in caplog.text


def test_a_run_that_cannot_be_read_does_not_hide_others(
    elsewhere, bucket, vertex, caplog
):
    other = "20260202T000000Z-cd34"
    elsewhere_id(vertex, "digits-2", **{"sluice-run": other.lower()})
    bucket.put(f"sluice/digits/runs/{other}/config.json", b'{"damaged')
    assert status().run_id == RUN
    (warning,) = caplog.messages
    assert other in warning
