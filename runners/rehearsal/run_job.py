"""Runs a compiled pipeline on this machine: task after task, by its command line.

Each container's command runs in a clean process with the spec's environment, in an
empty folder. What the service does around it is here: it resolves inputs, names
outputs, evaluates conditions. Caches, retries, queries of earlier artifacts and exit
handlers are the service's own and are not rehearsed.
"""

from __future__ import annotations

import json
import logging
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from google.protobuf import json_format

from runners.cloud.service_run import add_task_results, failure_in_log, make_artifact
from runners.cloud.spec import Spec, Task, type_title
from runners.documents.write import write_documents
from runners.engine import Observer
from runners.local.stop_request import StopRequest
from sluice.errors import NodeError
from sluice.process_tree import describe_end, die_with, kill_group
from sluice.project import own_root
from sluice.record.parts import Artifacts, ErrorRecord, NodeEnd
from sluice.record.run_record import RunRecord

_PLACEHOLDER = re.compile(r"\{\{\$([^{}]*)\}\}")
_POLL_S = 0.1
_LOG_LINES = 200

# Artifacts by key, each as an ``ExecutorInput`` has it.
Outputs = dict[str, list[dict[str, Any]]]


@dataclass(frozen=True)
class Rehearsal:
    """One run of a compiled job.

    Attributes:
      spec: with the values of its parameters; its addresses are local.
      record: of the run.
      run_dir: its folder.
      project_root: its packages are importable, as in the image.
      is_kubeflow: whether Kubeflow Pipelines would run it: input artifacts come without
        their types.
      results: what its tasks have put out, by task.
    """

    spec: Spec
    record: RunRecord
    run_dir: Path
    project_root: Path
    is_kubeflow: bool = False
    results: dict[str, Outputs] = field(default_factory=dict)


class _Fields(dict[str, Any]):
    """An object of JSON whose keys are attributes, as in a condition."""

    __getattr__ = dict.__getitem__


def run_job(job: Rehearsal, observer: Observer) -> None:
    """Runs the tasks of a job one after another, and ends the record.

    Raises:
      WorkspaceError: the record cannot be written.
    """
    record, run_dir = job.record, job.run_dir
    record.set_graph(job.spec.graph())
    observer.on_begin(record)
    # Documents load models in this process, where deprecations would hide the view.
    logging.getLogger("tensorflow").setLevel(logging.ERROR)
    stop = StopRequest()
    with stop.listen():
        for task in job.spec.nodes:
            node = record.node(task.id)
            end = record.stopped_by_upstream(node)
            if end is None and stop.signal is None:
                record.start_node(task.id)
                record.save(run_dir)
                observer.on_node(record, node)
                end = _run(job, task, stop, observer)
            if end is not None:
                record.end_node(end)
                record.save(run_dir)
                observer.on_node(record, node)
    record.end(stop.exit_code, stop.reason)
    record.save(run_dir)


def _run(job: Rehearsal, task: Task, stop: StopRequest, observer: Observer) -> NodeEnd:
    """Runs a task whose upstream tasks have succeeded."""
    started = time.monotonic()
    inputs = _executor_input(job, task)
    end = NodeEnd(task.id, "ran")
    try:
        if task.condition and not _holds(task.condition, inputs["inputs"]):
            reason = f"its condition does not hold: {task.condition}"
            return NodeEnd(task.id, "skipped", reason=reason)
        made = _artifacts(inputs["outputs"])
        match task.executor.WhichOneof("spec"):
            case "importer":
                (imported,) = (item for items in made.values() for item in items)
                imported["uri"] = task.imported_uri
            case "resolver":
                made = {key: [] for key in made}
                end.reason = "found nothing: a rehearsal looks up no artifacts"
            case _:
                report = _execute(job, task, inputs, stop, observer)
                made = _merged(made, report)
        end.outputs = _for_record(made)
        job.results[task.id] = made
    except NodeError as error:
        end = _failed(job, task, error)
        if stop.signal is not None:
            end.state, end.reason, end.error = "interrupted", stop.reason, None
    end.inputs = _for_record(_inputs(job, task))
    end.duration_s = time.monotonic() - started
    add_task_results(end, pushes=task.kind.pushes)
    if not task.kind.resolver:
        values = inputs["inputs"]["parameterValues"]
        write_documents(end, job.run_dir, job.run_dir / "documents", values)
    return end


def _executor_input(job: Rehearsal, task: Task) -> dict[str, Any]:
    """Returns KFP's message ``ExecutorInput`` of a task; makes its output folders."""
    inputs = task.component.input_definitions
    outputs = task.component.output_definitions
    root = Path(job.spec.root, job.record.run_id, task.id)
    parameters = {
        key: json_format.MessageToDict(artifact.default_value)
        for key, artifact in inputs.parameters.items()
        if artifact.HasField("default_value")
    }
    parameters |= task.parameters
    artifacts = {
        key: {
            "artifacts": [
                {**artifact, "type": {} if job.is_kubeflow else artifact["type"]}
                for artifact in items
            ]
        }
        for key, items in _inputs(job, task).items()
    }
    made = {}
    for key, declared in outputs.artifacts.items():
        # TFX's executors expect folders to exist.
        (root / key).mkdir(parents=True, exist_ok=True)
        name = f"artifacts/{time.time_ns()}"
        artifact = {"name": name, "uri": str(root / key), "metadata": {}}
        kind = json_format.MessageToDict(declared.artifact_type)
        made[key] = {"artifacts": [{**artifact, "type": kind}]}
    return {
        "inputs": {"parameterValues": parameters, "artifacts": artifacts},
        "outputs": {
            "artifacts": made,
            "parameters": {
                key: {"outputFile": str(root / key)} for key in outputs.parameters
            },
            "outputFile": str(root / "executor_output.json"),
        },
    }


def _inputs(job: Rehearsal, task: Task) -> Outputs:
    return {
        key: job.results[source.task].get(source.key, [])
        for key, source in task.artifacts.items()
    }


def _holds(condition: str, inputs: Mapping[str, Any]) -> bool:
    """Evaluates a condition that TFX has compiled, in the Common Expression Language.

    Its operators are Python's but for three. The expression was compiled a moment ago
    from the user's own code.
    """
    text = condition.replace("&&", " and ").replace("||", " or ")
    text = re.sub(r"!(?!=)", " not ", text)
    names = json.loads(json.dumps({"inputs": inputs}), object_hook=_Fields)
    try:
        return bool(eval(text, {"true": True, "false": False, **names}))
    except Exception as error:
        raise NodeError(f"the condition {condition} has no value: {error!r}") from error


def _execute(
    job: Rehearsal,
    task: Task,
    inputs: Mapping[str, Any],
    stop: StopRequest,
    observer: Observer,
) -> dict[str, Any]:
    """Runs the command of a container, and returns what its executor reports."""
    container = task.executor.container
    fill = partial(_fill, given=inputs, job=job)
    command = [fill(word) for word in (*container.command, *container.args)]
    log = _log_of(job, task)
    log.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="sluice-") as home, log.open("ab") as out:
        roots = [str(job.project_root), str(own_root())]
        process = subprocess.Popen(
            command,
            cwd=home,
            env={
                "PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin",
                "PYTHONPATH": os.pathsep.join(dict.fromkeys(roots)),
                "HOME": home,
                "TMPDIR": home,
                "LANG": "C.UTF-8",
                **{item.name: fill(item.value) for item in container.env},
            },
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=partial(die_with, os.getpid()),
        )
        try:
            while process.poll() is None and stop.signal is None:
                observer.on_tick()
                time.sleep(_POLL_S)
        finally:
            kill_group(process.pid)
            process.wait()
    if process.returncode != 0:
        raise NodeError(describe_end(process.returncode))
    report = Path(inputs["outputs"]["outputFile"])
    return json.loads(report.read_text()) if report.exists() else {}


def _fill(text: str, *, given: Mapping[str, Any], job: Rehearsal) -> str:
    """Replaces ``{{$}}``, the whole executor input, and the service's variables."""
    run_id = job.record.run_id
    variables = {
        "": json.dumps(given),
        ".pipeline_job_name": run_id,
        ".pipeline_job_uuid": run_id,
        ".pipeline_job_resource_name": run_id,
        ".pipeline_root": job.spec.root,
    }

    def value_of(found: re.Match[str]) -> str:
        if found[1] not in variables:
            raise NodeError(f"the placeholder {found[0]} is not rehearsed")
        return variables[found[1]]

    return _PLACEHOLDER.sub(value_of, text)


def _merged(made: Outputs, report: Mapping[str, Any]) -> Outputs:
    """Returns the artifacts with the URIs and properties that an executor reports."""
    reported = {
        artifact.get("name"): artifact
        for items in report.get("artifacts", {}).values()
        for artifact in items.get("artifacts", ())
    }
    for artifact in (artifact for items in made.values() for artifact in items):
        found = reported.get(artifact["name"], {})
        artifact["uri"] = found.get("uri", artifact["uri"])
        artifact["metadata"] = {**artifact["metadata"], **found.get("metadata", {})}
    return made


def _artifacts(part: Mapping[str, Any]) -> Outputs:
    return {key: value["artifacts"] for key, value in part["artifacts"].items()}


def _for_record(artifacts: Outputs) -> Artifacts:
    return {
        key: [
            make_artifact(
                item["name"],
                type_title(item.get("type", {})),
                item["uri"],
                item.get("metadata", {}),
            )
            for item in items
        ]
        for key, items in artifacts.items()
    }


def _log_of(job: Rehearsal, task: Task) -> Path:
    return job.run_dir / "logs" / f"{task.id}.log"


def _failed(job: Rehearsal, task: Task, error: NodeError) -> NodeEnd:
    """Returns the end of a task that has failed: why is in its log."""
    log = _log_of(job, task)
    failure = ErrorRecord(task.id, f"{task.id} failed: {error}")
    if log.exists():
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
        found = failure_in_log(task.id, lines[-_LOG_LINES:])
        if found.message == f"{task.id} failed":
            found.message = failure.message
        failure, failure.log = found, str(log)
    reason = failure.message.splitlines()[0]
    return NodeEnd(task.id, "failed", reason=reason, error=failure)
