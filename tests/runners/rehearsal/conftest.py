"""Compiled pipelines of tiny commands, and an engine that runs them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runners.cloud.submitted_job import SPEC_FILE
from runners.engine import Observer, Plan
from runners.rehearsal.container import Containers
from runners.rehearsal.describe import Describer
from runners.rehearsal.engine import RehearsalEngine
from sluice.project import own_root
from sluice.record.events import RunStarted
from sluice.record.recorder import Recorder
from sluice.record.run_record import RunRecord

# What TFX's entry point does: read the invocation, write the outputs and the report.
_PRELUDE = """
import json, os, sys, time
call = json.loads(sys.argv[1])
given, made = call["inputs"], call["outputs"]
values = given.get("parameterValues", {})
def of(key):
    return given["artifacts"][key]["artifacts"][0]
def put(key, text="", **metadata):
    artifact = made["artifacts"][key]["artifacts"][0]
    with open(os.path.join(artifact["uri"], "data"), "w") as file:
        file.write(text)
    artifact["metadata"].update(metadata)
def get(key):
    with open(os.path.join(of(key)["uri"], "data")) as file:
        return file.read()
"""
_REPORT = """
with open(made["outputFile"], "w") as file:
    json.dump({"artifacts": made.get("artifacts", {})}, file)
"""


def command(code: str) -> list[str]:
    """Returns the command of a container that runs some Python."""
    return ["python", "-c", f"{_PRELUDE}\n{code}\n{_REPORT}"]


def container(code: str, **fields: Any) -> dict[str, Any]:
    """Returns an executor that runs some Python."""
    return {
        "container": {"image": "i", "command": command(code), "args": ["{{$}}"]}
        | fields
    }


def task(executor: Mapping[str, Any], **fields: Any) -> dict[str, Any]:
    """Returns a task in a short form.

    Args:
      executor: as in the spec.
      **fields: ``reads`` (``key="Task.output"``), ``takes`` (parameters as in the
        spec), ``makes`` (output keys, or types by key), ``gives`` (types of output
        parameters by key), ``after`` (task ids); the others are those of the spec.
    """
    return {"executor": executor, **fields}


def make_job(root: Path, tasks: Mapping[str, dict[str, Any]], **given: Any) -> dict:
    """Returns a compiled pipeline.

    Args:
      root: the pipeline root.
      tasks: by id, see ``task``.
      **given: ``parameters`` (declarations) and ``values`` of the pipeline.
    """
    spec: dict[str, Any] = {
        "schemaVersion": "2.1.0",
        "pipelineInfo": {"name": "tiny"},
        "root": {
            "dag": {"tasks": {}},
            "inputDefinitions": {"parameters": given.get("parameters", {})},
        },
        "components": {},
        "deploymentSpec": {"executors": {}},
    }
    for name, item in tasks.items():
        item = dict(item)
        spec["deploymentSpec"]["executors"][name] = item.pop("executor")
        reads, takes = item.pop("reads", {}), item.pop("takes", {})
        makes, gives = item.pop("makes", ()), item.pop("gives", {})
        types = makes if isinstance(makes, dict) else dict.fromkeys(makes, "test.Thing")
        sources = {
            key: dict(
                zip(("producerTask", "outputArtifactKey"), text.split("."), strict=True)
            )
            for key, text in reads.items()
        }
        spec["root"]["dag"]["tasks"][name] = {
            "componentRef": {"name": name},
            "dependentTasks": item.pop("after", []),
            "inputs": {
                "artifacts": {
                    key: {"taskOutputArtifact": source}
                    for key, source in sources.items()
                },
                "parameters": takes,
            },
            **item,
        }
        thing = {"artifactType": {"schemaTitle": "test.Thing"}}
        spec["components"][name] = {
            "executorLabel": name,
            "inputDefinitions": {
                "artifacts": dict.fromkeys(reads, thing),
                "parameters": {key: {"parameterType": "STRING"} for key in takes},
            },
            "outputDefinitions": {
                "artifacts": {
                    key: {"artifactType": {"schemaTitle": title}}
                    for key, title in types.items()
                },
                "parameters": {
                    key: {"parameterType": kind} for key, kind in gives.items()
                },
            },
        }
    return {
        "pipelineSpec": spec,
        "runtimeConfig": {
            "gcsOutputDirectory": str(root / "root"),
            "parameterValues": given.get("values", {}),
        },
    }


class Rehearsal:
    """Runs jobs in one emulated service below a folder."""

    def __init__(self, folder: Path, describer: Describer) -> None:
        self.folder = folder
        self.containers = Containers(
            folder / "scratch", own_root(), {"FROM_EMULATOR": "1"}
        )
        self.engine = RehearsalEngine(self.containers, describer)
        self._runs = 0

    def begin(self, tasks: Mapping[str, dict[str, Any]], **options: Any) -> Plan:
        """Makes the folder of a run, and begins its record."""
        self._runs += 1
        run_dir = self.folder / "runs" / f"20260101T00000{self._runs}Z-abcd"
        run_dir.mkdir(parents=True)
        job = make_job(self.folder, tasks, **options)
        (run_dir / SPEC_FILE).write_text(json.dumps(job))
        event = RunStarted(
            run_id=run_dir.name,
            pipeline="tiny",
            command="test",
            destination="",
            config={},
            workers=2,
            use_cache=True,
            forced=(),
            from_nodes=(),
            to_nodes=(),
            accept_data=None,
            resume_command=None,
        )
        Recorder(run_dir).apply(event)
        return Plan(run_dir=run_dir, workers=2)

    def run(
        self,
        tasks: Mapping[str, dict[str, Any]],
        observer: Observer | None = None,
        for_kubeflow: bool = False,
        **options: Any,
    ) -> RunRecord:
        """Runs a job and returns its record."""
        plan = self.begin(tasks, **options)
        engine = replace(self.engine, for_kubeflow=for_kubeflow)
        return engine.run(plan, observer or Observer())


@pytest.fixture
def rehearsal(tmp_path: Path) -> Iterator[Rehearsal]:
    """An emulated service without earlier runs."""
    with Describer(own_root(), {}, tmp_path / "describe.log") as describer:
        yield Rehearsal(tmp_path, describer)
