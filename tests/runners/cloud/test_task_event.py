"""What the record learns of a task of a service: from its artifacts and its log."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from runners.cloud.service_run import planned_nodes
from runners.cloud.spec import read_spec
from runners.cloud.task_event import failure_in_log, record_artifact, task_finished
from sluice.errors import ExitCode
from sluice.record.events import NodeFinished, Push
from sluice.record.verdict import Check, Verdict

pytestmark = pytest.mark.unit


def _task(executor: str | None, **fields: Any) -> dict[str, Any]:
    args = ["--executor_class_path", executor] if executor else []
    return {"executor": {"container": {"image": "i", "args": args}}, **fields}


def _spec(tasks: dict[str, dict[str, Any]]) -> Any:
    executors = {name: task.pop("executor") for name, task in tasks.items()}
    outputs = {name: task.pop("outputs", {}) for name, task in tasks.items()}
    return read_spec(
        {
            "schemaVersion": "2.1.0",
            "pipelineInfo": {"name": "digits"},
            "root": {
                "dag": {
                    "tasks": {
                        name: {"componentRef": {"name": name}, **task}
                        for name, task in tasks.items()
                    }
                }
            },
            "components": {
                name: {
                    "executorLabel": name,
                    "outputDefinitions": {"artifacts": outputs[name]},
                }
                for name in tasks
            },
            "deploymentSpec": {"executors": executors},
        }
    )


def test_artifact_of_a_service_is_as_the_record_has_it() -> None:
    found = record_artifact(
        "projects/1/locations/l/metadataStores/default/artifacts/77",
        "tfx.Examples",
        "gs://b/examples",
        {"custom:span": 3.0, "share": 0.5, "split_names": '["train"]'},
    )
    assert (found.id, found.type) == (77, "Examples")
    assert found.properties == {"span": 3, "share": 0.5, "split_names": '["train"]'}
    assert isinstance(found.properties["span"], int)


def test_verdicts_and_pushes_are_read_from_the_artifacts(tmp_path: Path) -> None:
    verdict = Verdict(
        "model", (Check("accuracy", "overall", ">= 0.9", None, 0.8, passed=False),)
    )
    (tmp_path / "verdict").mkdir()
    text = json.dumps(verdict.to_dict())
    (tmp_path / "verdict" / "verdict.json").write_text(text)
    spec = _spec(
        {
            "Judge": _task(
                "components.model_verdict.executor.Executor",
                outputs={
                    key: {"artifactType": {"schemaTitle": title}}
                    for key, title in (
                        ("blessing", "tfx.ModelBlessing"),
                        ("verdict", "components.ModelVerdict"),
                    )
                },
            ),
            "Push": _task(
                "components.pusher.executor.Executor",
                inputs={
                    "artifacts": {
                        "model_blessing": {
                            "taskOutputArtifact": {
                                "producerTask": "Judge",
                                "outputArtifactKey": "blessing",
                            }
                        }
                    }
                },
            ),
        }
    )
    judge, pusher = planned_nodes(spec)
    blessing = record_artifact(
        "a/1", "tfx.ModelBlessing", "gs://b/blessing", {"blessed": 0.0}
    )
    uri = str(tmp_path / "verdict")
    of_judge = record_artifact("a/2", "components.ModelVerdict", uri, {})
    pushed = record_artifact("a/3", "tfx.PushedModel", "/p", {"state": "blocked"})
    judged = task_finished(
        tmp_path,
        judge,
        NodeFinished(node="Judge", state="ran", outputs={"verdict": [of_judge]}),
        {},
    )
    assert judged.gates == (verdict.to_dict(),)
    push = task_finished(
        tmp_path,
        pusher,
        NodeFinished(
            node="Push",
            state="ran",
            inputs={"model_blessing": [blessing]},
            outputs={"pushed_model": [pushed]},
        ),
        {},
    )
    assert push.push == Push("blocked")
    assert (push.state, push.reason) == ("blocked", "stopped by Judge")


@pytest.mark.parametrize("new_data", [0.0, 1.0])
def test_run_without_new_data_says_so(tmp_path: Path, new_data: float) -> None:
    """Found: it ended as a success with skipped nodes, and no word about the data."""
    (ingestion,) = planned_nodes(_spec({"Gen": _task(None)}))
    examples = record_artifact(
        "a/1", "tfx.Examples", str(tmp_path), {"new_data": new_data}
    )
    event = NodeFinished(node="Gen", state="ran", outputs={"examples": [examples]})
    found = task_finished(tmp_path, ingestion, event, {})
    note = "no new data since the last complete run: nothing is trained"
    assert (note in found.notes) == (new_data == 0)


def _log_of(code: str) -> list[str]:
    root = Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    return done.stderr.splitlines()


def test_own_error_is_found_in_the_log() -> None:
    code = (
        "from sluice.errors import *\n"
        "try:\n"
        "  raise GateError('the data has drifted', where='fare', hint='look')\n"
        "except GateError as error:\n"
        "  raise RuntimeError('the executor failed') from error\n"
    )
    failure = failure_in_log("DataGate", _log_of(code))
    assert failure.message == (
        "the data has drifted\n  where:    fare\n  try:      look"
    )
    assert (failure.exit_code, failure.gate) == (ExitCode.DATA, True)


def test_own_error_is_found_where_beam_has_wrapped_it() -> None:
    line = "RuntimeError: sluice.errors.DataError: bad record [while running 'Read']"
    failure = failure_in_log("Read", ["noise", line])
    assert failure.message == "bad record"
    assert (failure.exit_code, failure.gate) == (ExitCode.DATA, False)


def test_other_error_is_the_end_of_the_last_traceback() -> None:
    failure = failure_in_log("Trainer", _log_of("int('x')"))
    assert failure.message.startswith("Trainer failed: ValueError: invalid literal")
    assert failure.exit_code == ExitCode.NODE
    assert failure.log_tail[-1].startswith("ValueError")


def test_log_without_a_traceback_is_shown() -> None:
    failure = failure_in_log("Trainer", ["Killed"])
    assert (failure.message, failure.log_tail) == ("Trainer failed", ("Killed",))
