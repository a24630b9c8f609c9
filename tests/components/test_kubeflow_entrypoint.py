"""The entry point of containers on Kubeflow Pipelines."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from components import kubeflow_entrypoint
from components.kubeflow_entrypoint import TaskRecord, main, prepare
from sluice import secrets

pytestmark = pytest.mark.unit

_RUN = "0d4c6f0e-4f5e-4a3b-9d43-2d0d6f7a9c11"
_EXAMPLES = {"artifactType": {"instanceSchema": "title: tfx.Examples\ntype: object\n"}}
_MODEL = {"schemaTitle": "tfx.Model"}


def _input(uri: str, **metadata: Any) -> dict[str, Any]:
    """An input artifact as Kubeflow passes it: its schema is empty."""
    one = {
        "name": "model",
        "uri": uri,
        "type": {"instanceSchema": ""},
        "metadata": metadata,
    }
    return {"artifacts": [one]}


def _executor_input(outputs: bool = True, **inputs: Any) -> dict[str, Any]:
    uri = f"gs://b/root/digits/{_RUN}/Trainer/salt/model"
    model = {"artifacts": [{"name": "model", "uri": uri, "type": _MODEL}]}
    return {
        "inputs": {"artifacts": inputs, "parameterValues": {"steps": 3}},
        "outputs": {"artifacts": {"model": model} if outputs else {}},
    }


def test_untyped_inputs_get_the_type_that_the_component_declares() -> None:
    given = _executor_input(examples=_input("gs://b/1"))
    prepare(given, {"artifacts": {"examples": _EXAMPLES}})
    (examples,) = given["inputs"]["artifacts"]["examples"]["artifacts"]
    assert examples["type"] == _EXAMPLES["artifactType"]


def test_a_type_that_is_there_stays() -> None:
    given = _executor_input(examples=_input("gs://b/1"))
    (examples,) = given["inputs"]["artifacts"]["examples"]["artifacts"]
    examples["type"] = {"schemaTitle": "system.Dataset"}
    prepare(given, {"artifacts": {"examples": _EXAMPLES}})
    assert examples["type"] == {"schemaTitle": "system.Dataset"}


def test_artifacts_of_the_same_key_have_different_names() -> None:
    given = _executor_input(model=_input("gs://b/1"), baseline=_input("gs://b/2"))
    prepare(given, {})
    listed = given["inputs"]["artifacts"].values()
    assert [one["artifacts"][0]["name"] for one in listed] == ["gs://b/1", "gs://b/2"]


def test_the_run_is_named_by_the_outputs_or_by_a_parameter() -> None:
    assert prepare(_executor_input(), {}) == _RUN
    gate = _executor_input(outputs=False)
    assert prepare(gate, {}) == ""
    gate["inputs"]["parameterValues"]["sluice_job"] = _RUN
    assert prepare(gate, {}) == _RUN
    assert gate["inputs"]["parameterValues"] == {"steps": 3}, "TFX must not see it"


def test_the_final_status_is_given_to_an_exit_handler_as_json() -> None:
    given = _executor_input()
    values = given["inputs"]["parameterValues"]
    values["final_status"] = {"state": "COMPLETE", "error": {}}
    prepare(given, {"parameters": {"final_status": {"parameterType": "STRING"}}})
    assert values["final_status"] == '{"state": "COMPLETE", "error": {}}'
    assert values["steps"] == 3


def _read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text())


def test_the_record_has_inputs_outputs_and_their_properties(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KFP_POD_NAME", "digits-x-17")
    path = tmp_path / "Trainer.json"
    given = _executor_input(examples=_input("gs://b/1", span=4.0))
    prepare(given, {"artifacts": {"examples": _EXAMPLES}})
    record = TaskRecord(str(path), "Trainer", given)
    running = _read(path)
    assert (running["state"], running["ended_at"]) == ("running", None)
    assert running["pod"] == "digits-x-17"
    examples = {"type": "tfx.Examples", "uri": "gs://b/1", "properties": {"span": 4.0}}
    assert running["inputs"] == {"examples": [examples]}
    written = {"uri": "gs://b/model", "metadata": {"blessed": 1.0}}
    record.succeeded({"artifacts": {"model": {"artifacts": [written]}}})
    ended = _read(path)
    assert (ended["state"], ended["error"]) == ("succeeded", None)
    model = {"type": "tfx.Model", "uri": "gs://b/model", "properties": {"blessed": 1.0}}
    assert ended["outputs"] == {"model": [model]}
    assert ended["ended_at"] >= ended["started_at"]


def test_a_second_attempt_keeps_the_failure_of_the_first(tmp_path: Path) -> None:
    path = tmp_path / "Trainer.json"
    TaskRecord(str(path), "Trainer", _executor_input()).failed(ValueError("no data"))
    first = _read(path)
    assert (first["state"], first["error"]) == ("failed", "ValueError: no data")
    TaskRecord(str(path), "Trainer", _executor_input())
    again = _read(path)
    assert again["state"] == "running"
    (failed,) = again["failed_attempts"]
    assert failed == {"at": first["ended_at"], "reason": "ValueError: no data"}


def test_an_attempt_that_was_killed_counts_as_failed(tmp_path: Path) -> None:
    path = tmp_path / "Trainer.json"
    TaskRecord(str(path), "Trainer", _executor_input())
    TaskRecord(str(path), "Trainer", _executor_input())
    (killed,) = _read(path)["failed_attempts"]
    assert "such as for its memory" in killed["reason"]


def _run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, executor: Callable[[Path], None]
) -> Path:
    """Runs a task whose executor is a function of TFX's output file.

    Returns:
      The folder of the task records.
    """
    output_file, records = tmp_path / "executor_output.json", tmp_path / "records"
    given = _executor_input()
    given["outputs"]["outputFile"] = str(output_file)
    given["inputs"]["parameterValues"]["password"] = "${env:DB_PASSWORD}"
    (records / _RUN).mkdir(parents=True)
    monkeypatch.setattr(
        kubeflow_entrypoint.runpy,
        "run_module",
        lambda name, run_name: executor(output_file),
    )
    # The entry point sets the arguments of TFX's.
    monkeypatch.setattr(kubeflow_entrypoint.sys, "argv", ["entrypoint"])
    main(
        [
            *("--task_records", str(records), "--task", "Trainer"),
            *("--json_serialized_invocation_args", json.dumps(given)),
        ]
    )
    return records


def _write_output(output_file: Path, *artifacts: dict[str, Any]) -> None:
    content = {"artifacts": {"model": {"artifacts": [*artifacts]}}}
    output_file.write_text(json.dumps(content))


def test_more_artifacts_than_declared_fail_no_task_that_has_succeeded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    two = [{"uri": f"gs://b/{name}", "metadata": {}} for name in "xy"]
    records = _run(tmp_path, monkeypatch, lambda file: _write_output(file, *two))
    record = _read(records / _RUN / "Trainer.json")
    assert record["state"] == "succeeded"
    assert [(one["type"], one["uri"]) for one in record["outputs"]["model"]] == [
        ("tfx.Model", "gs://b/x"),
        ("tfx.Model", "gs://b/y"),
    ]


def test_an_output_that_cannot_be_read_fails_no_task_that_has_succeeded(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    _run(tmp_path, monkeypatch, lambda file: None)
    assert "its record cannot be written" in caplog.text


@pytest.mark.parametrize("end", ["fails", "succeeds"])
def test_a_secret_is_in_nothing_that_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    monkeypatch.setattr(secrets, "_resolved", {})
    monkeypatch.setenv("DB_PASSWORD", 'planted"secret')

    def execute(output_file: Path) -> None:
        if end == "fails":
            raise ValueError('cannot log in with planted"secret')
        _write_output(output_file, {"metadata": {"asked": 'as planted"secret'}})

    if end == "fails":
        with pytest.raises(ValueError):
            _run(tmp_path, monkeypatch, execute)
    else:
        _run(tmp_path, monkeypatch, execute)
    (written,) = (tmp_path / "records").rglob("*.json")
    assert "planted" not in written.read_text()
    assert "${env:DB_PASSWORD}" in written.read_text()
