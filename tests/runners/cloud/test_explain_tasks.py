"""Which tasks a service would run, compared with what was submitted before."""

from __future__ import annotations

import json
from typing import Any

import pytest

from runners.cloud.explain_tasks import SubmittedRun, explain_tasks
from runners.cloud.spec import read_spec
from sluice.errors import UsageError
from sluice.record.run_record import NodeRecord, NodeState, RunRecord
from tests.runners.cloud.small_job import small_job

pytestmark = pytest.mark.unit


def _job(code: str = "1", accept_data: str = "") -> dict[str, Any]:
    """Returns a job of cached tasks, with a fingerprint of the Trainer."""
    job = small_job()
    tasks = job["pipelineSpec"]["components"]["graph"]["dag"]["tasks"]
    for task in tasks.values():
        task["cachingOptions"] = {"enableCache": True}
    fingerprint = json.dumps({"code": {"pipeline.training": code}})
    tasks["Trainer"]["inputs"] = {
        "parameters": {"fingerprint": {"runtimeValue": {"constant": fingerprint}}}
    }
    tasks["DataVerdict"]["inputs"] = {
        "parameters": {"override": {"componentInputParameter": "accept_data"}}
    }
    components = job["pipelineSpec"]["components"]
    for name, key in (("Trainer", "fingerprint"), ("DataVerdict", "override")):
        declared = {"parameters": {key: {"parameterType": "STRING"}}}
        components[name]["inputDefinitions"] = declared
    root = job["pipelineSpec"]["root"]
    components["graph"]["inputDefinitions"] = root["inputDefinitions"]
    root["dag"]["tasks"]["graph"]["inputs"] = {
        "parameters": {"accept_data": {"componentInputParameter": "accept_data"}}
    }
    job["runtimeConfig"]["parameterValues"] = {"accept_data": accept_data}
    return job


def _run(run_id: str, state: NodeState = "ran", **values: str) -> SubmittedRun:
    names = ("DataVerdict", "DataGate", "Trainer", "Pusher")
    record = RunRecord(
        run_id=run_id,
        pipeline="digits",
        started_at="2026-01-01T00:00:00+00:00",
        command="sluice submit digits",
        nodes=[NodeRecord(name, name, state) for name in names],
    )
    return SubmittedRun(read_spec(_job(**values)), record)


def _explain(
    runs: list[SubmittedRun], node: str = "Pusher", **values: str
) -> dict[str, dict[str, Any]]:
    found = explain_tasks(read_spec(_job(**values)), runs, node)
    return {item["node"]: item for item in found}


def test_nothing_has_changed() -> None:
    found = _explain([_run("2"), _run("1", code="0")])
    assert not any(item["would_run"] for item in found.values())
    assert {item["last_run"] for item in found.values()} == {"2"}


def test_a_change_runs_the_task_and_what_is_downstream_of_it() -> None:
    found = _explain([_run("1", code="0")])
    assert found["Trainer"]["because"] == ["code: pipeline.training changed"]
    assert found["Pusher"]["waits_for"] == ["Trainer"]
    assert not found["DataGate"]["would_run"]


def test_a_run_that_failed_is_no_base() -> None:
    found = _explain([_run("2", "failed"), _run("1")])
    assert found["Trainer"]["last_run"] == "1"
    found = _explain([_run("2", "failed")], "DataVerdict")
    assert found["DataVerdict"]["because"] == ["it has not finished before"]
    assert list(found) == ["DataVerdict"]


def test_a_parameter_of_the_job() -> None:
    found = _explain([_run("1")], accept_data="checked")
    assert found["DataVerdict"]["because"] == ["property override changed"]


def test_a_task_that_is_not_there() -> None:
    with pytest.raises(UsageError, match="there is no node 'Report'"):
        _explain([], "Report")
