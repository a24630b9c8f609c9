"""Entry point of containers on Kubeflow Pipelines: prepares the call of TFX's own.

TFX's entry point is made for Vertex AI. On Kubeflow Pipelines

- input artifacts come without a type, which TFX needs: it is taken from the component's
  declared inputs;
- input artifacts of the same output key have the same name, from which TFX makes their
  ids: the name is set to the URI;
- the final status that an exit handler is given is an object, not its JSON;
- no API tells the artifacts of a task: a JSON file per task, the task record, has its
  inputs, outputs, times, error and pod.

Usage, with the arguments of ``tfx.orchestration.kubeflow.v2.container
.kubeflow_v2_run_executor`` and two more::

    python -m components.kubeflow_entrypoint --task_records gs://bucket/... --task ID
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import re
import runpy
import sys
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any

from sluice import secrets
from sluice.storage.storage import storage_for

JOB_PARAMETER = "sluice_job"
"""Input parameter with the run's id, of tasks without outputs."""

_TFX_ENTRYPOINT = "tfx.orchestration.kubeflow.v2.container.kubeflow_v2_run_executor"
_RUN_ID = re.compile(r"/([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})/")
_TITLE = re.compile(r"^title: *(\S+)", re.MULTILINE)
_MAX_ERROR = 2000


def prepare(executor_input: dict[str, Any], inputs_spec: Mapping[str, Any]) -> str:
    """Completes an executor input in place; see the module.

    Args:
      executor_input: of the task, as Kubeflow Pipelines passes it.
      inputs_spec: the component's declared inputs.

    Returns:
      The run's id; "" if it is not known.
    """
    inputs = executor_input.setdefault("inputs", {})
    artifacts = inputs.get("artifacts", {})
    declared = inputs_spec.get("artifacts", {})
    for key, listed in artifacts.items():
        for one in listed["artifacts"]:
            if not any(one.get("type", {}).values()) and key in declared:
                one["type"] = declared[key]["artifactType"]
    for listed in artifacts.values():
        for one in listed["artifacts"]:
            one["name"] = one["uri"]
    outputs = executor_input.get("outputs", {}).get("artifacts", {})
    values = inputs.get("parameterValues", {})
    for key, value in values.items():
        kind = inputs_spec.get("parameters", {}).get(key, {}).get("parameterType")
        if kind == "STRING" and isinstance(value, dict):
            values[key] = json.dumps(value)
    given = values.pop(JOB_PARAMETER, "")
    uris = (one["uri"] for listed in outputs.values() for one in listed["artifacts"])
    found = next(filter(None, map(_RUN_ID.search, uris)), None)
    return given or (found[1] if found else "")


class TaskRecord:
    """The record of one task of a run, which its attempts write one after the other.

    Args:
      uri: of the file.
      task: the task's id.
      executor_input: of the task.
    """

    def __init__(self, uri: str, task: str, executor_input: Mapping[str, Any]) -> None:
        self._uri = uri
        self._declared = executor_input.get("outputs", {}).get("artifacts", {})
        inputs = executor_input.get("inputs", {}).get("artifacts", {})
        self._content: dict[str, Any] = {
            "schema_version": 1,
            "task": task,
            "state": "running",
            "pod": os.environ.get("KFP_POD_NAME"),
            "started_at": _now(),
            "ended_at": None,
            "error": None,
            "inputs": {key: _described(listed) for key, listed in inputs.items()},
            "outputs": {},
            "failed_attempts": self._earlier_attempts(),
        }
        self._write()

    def succeeded(self, executor_output: Mapping[str, Any]) -> None:
        """Records the outputs, as TFX has written them."""
        outputs = {}
        for key, listed in executor_output.get("artifacts", {}).items():
            known = self._declared.get(key, {}).get("artifacts") or [{}]
            written = [known[0] | one for one in listed["artifacts"]]
            outputs[key] = _described({"artifacts": written})
        self._content |= {"state": "succeeded", "outputs": outputs}
        self._end()

    def failed(self, error: BaseException) -> None:
        """Records an error."""
        text = f"{type(error).__name__}: {error}"
        self._content |= {"state": "failed", "error": text[:_MAX_ERROR]}
        self._end()

    def _earlier_attempts(self) -> list[dict[str, str]]:
        try:
            before = json.loads(storage_for(self._uri).read(self._uri))
        except (OSError, ValueError):
            return []
        reason = before["error"] or "ended without an error, such as for its memory"
        failed = {"at": before["ended_at"] or before["started_at"], "reason": reason}
        return [*before["failed_attempts"], failed]

    def _end(self) -> None:
        self._content["ended_at"] = _now()
        self._write()

    def _write(self) -> None:
        text = secrets.redact(json.dumps(self._content))
        storage_for(self._uri).write_atomically(self._uri, text.encode())


def _described(listed: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns the type, URI and properties of artifacts."""
    return [
        {
            "type": _title_of(one.get("type", {})),
            "uri": one.get("uri", ""),
            "properties": one.get("metadata", {}),
        }
        for one in listed["artifacts"]
    ]


def _title_of(schema: Mapping[str, str]) -> str:
    """Returns the title of an artifact type's schema, such as ``tfx.Model``."""
    found = _TITLE.search(schema.get("instanceSchema", ""))
    return found[1] if found else schema.get("schemaTitle", "")


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds")


def main(arguments: list[str]) -> None:
    """Runs a task: prepares its input, calls TFX, writes the task record."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--task_records", required=True)
    parser.add_argument("--task", required=True)
    parser.add_argument("--json_serialized_invocation_args", required=True)
    parser.add_argument("--json_serialized_inputs_spec_args", default="{}")
    own, passed_on = parser.parse_known_args(arguments)
    secrets.remember(own.json_serialized_invocation_args)
    executor_input = json.loads(own.json_serialized_invocation_args)
    inputs_spec = json.loads(own.json_serialized_inputs_spec_args)
    run_id = prepare(executor_input, inputs_spec)
    uri = f"{own.task_records.rstrip('/')}/{run_id or 'unknown'}/{own.task}.json"
    record = TaskRecord(uri, own.task, executor_input)
    sys.argv = [
        _TFX_ENTRYPOINT,
        "--json_serialized_invocation_args",
        json.dumps(executor_input),
        "--json_serialized_inputs_spec_args",
        own.json_serialized_inputs_spec_args,
        *passed_on,
    ]
    try:
        runpy.run_module(_TFX_ENTRYPOINT, run_name="__main__")
    except SystemExit as end:
        if end.code:
            record.failed(end)
            raise
    except BaseException as error:
        record.failed(error)
        raise
    output_file = executor_input["outputs"]["outputFile"]
    try:
        record.succeeded(json.loads(storage_for(output_file).read(output_file)))
    except Exception:
        # The work is done: repeated or failed for its record, it would be worse.
        logging.exception("the task has succeeded, its record cannot be written")


if __name__ == "__main__":
    main(sys.argv[1:])
