"""Runs a compiled pipeline once in an emulated service, with a record of the run."""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from components.tfrecord_gen.spans.span_choice import SpanChoice
from pipeline.config.config import Config
from pipeline.config.serialize import plain_config, write_stored_config
from pipeline.graph.locations import LOCAL_BEAM_ARGS
from pipeline.graph.node_registry import PUSHER
from runners.cloud.beam_args import DATAFLOW
from runners.cloud.cloud_locations import cloud_locations
from runners.cloud.spec import Spec
from runners.cloud.task_settings import containers_of, tasks_of
from runners.cloud.trainer_job import EXECUTOR
from runners.engine import Observer, Plan
from runners.local.write_report import write_report
from runners.operations.lock_workspace import LockedWorkspace
from runners.operations.prepared_run import record_late_spans
from runners.operations.run_lifecycle import execute
from runners.rehearsal.engine import SPEC_FILE, RehearsalEngine
from sluice.machine_resources import usable_cores
from sluice.record.events import RunStarted, SpansChosen
from sluice.record.recorder import Recorder
from sluice.record.run_record import REHEARSAL, RunRecord
from sluice.storage import atomic
from sluice.workspace import Workspace

# What the Trainer runs in each worker of its custom job.
_IN_WORKER = "tfx.components.trainer.executor.GenericExecutor"


@dataclass(frozen=True)
class RehearsedRun:
    """One round of a rehearsal.

    Attributes:
      command: the command line, for the record.
      workers: number of tasks to run in parallel; None for one per core.
      spec: the compiled pipeline.
      workspace: of the pipeline.
      root: of the project.
      locked: the workspace's lock.
      number: of the round, from 1.
      config: as compiled; None for a compiled file.
    """

    command: str
    workers: int | None
    spec: Spec
    workspace: Workspace
    root: Path
    locked: LockedWorkspace
    number: int
    config: Config | None = None

    def run(
        self,
        engine: RehearsalEngine,
        observer: Observer,
        values: dict[str, Any],
        choice: SpanChoice | None = None,
    ) -> RunRecord:
        """Runs it and returns the record, with documents and page.

        Args:
          engine: of the emulated service.
          observer: of the run.
          values: of the pipeline's parameters.
          choice: the spans that it is pinned to; None if it selects them itself.
        """
        recorder = self._begin(observer, values, choice)
        plan = Plan(
            run_dir=recorder.run_dir,
            workers=recorder.run_started.workers,
            project_root=self.root,
            workspace=self.workspace.root,
            locks=(self.locked.lock.descriptor,),
        )
        execute(plan, recorder, engine, observer)
        if self.config is not None:
            record_late_spans(recorder)
        write_report(recorder)
        return recorder.record

    def _begin(
        self, observer: Observer, values: dict[str, Any], choice: SpanChoice | None
    ) -> Recorder:
        run_id = self.workspace.new_run_id()
        run_dir = self.workspace.run_dir(run_id)
        run_dir.mkdir(parents=True)
        job = copy.deepcopy(dict(self.spec.job))
        runtime = job.setdefault("runtimeConfig", {})
        given = runtime.get("parameterValues", {})
        runtime["parameterValues"] = {**given, **values}
        job, notes = _without_other_services(job)
        atomic.write_json(run_dir / SPEC_FILE, job)
        config = self.config
        if config is not None:
            write_stored_config(config, run_dir / "config.json")
        recorder = Recorder(run_dir, observer.on_event)
        event = RunStarted(
            run_id=run_id,
            pipeline=self.spec.name,
            command=self.command,
            destination=cloud_locations(config).serving_dir if config else "",
            config=plain_config(config) if config else {},
            workers=self.workers or usable_cores(),
            use_cache=True,
            forced=(),
            from_nodes=(),
            to_nodes=(),
            accept_data=None,
            resume_command=None,
            tags={REHEARSAL: f"round {self.number}"},
            notes=(*self.locked.notes_for(run_id), *notes),
        )
        recorder.apply(event)
        if choice and any(choice.to_dict().values()):
            recorder.apply(SpansChosen(spans=choice.to_dict()))
        return recorder


def _without_other_services(job: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Returns a job that calls no service but storage, with a note for each change."""
    text, notes = json.dumps(job), []
    if EXECUTOR in text:
        text = text.replace(EXECUTOR, _IN_WORKER)
        what = "the Trainer's custom job is not rehearsed: it trains in its own task"
        notes.append(f"{what}, once")
    job = json.loads(text)
    spec = job["pipelineSpec"]
    in_dataflow = []
    for name, container in containers_of(spec):
        args = container.get("args", [])
        if DATAFLOW in args:
            # The first of the Beam options, which are the last arguments.
            container["args"] = [*args[: args.index(DATAFLOW)], *LOCAL_BEAM_ARGS]
            in_dataflow.append(name)
    if in_dataflow:
        names = ", ".join(in_dataflow)
        notes.append(f"Dataflow is not rehearsed: {names} run Beam in their own tasks")
    inputs = tasks_of(spec).get(PUSHER, {}).get("inputs", {}).get("parameters", {})
    value = inputs.get("custom_config", {}).get("runtimeValue", {})
    given = json.loads(value.get("constant") or "{}") or {}  # TFX writes "null", too.
    if left_out := given.keys() & {"registry", "endpoint"}:
        kept = {key: item for key, item in given.items() if key not in left_out}
        value["constant"] = json.dumps(kept)
        notes.append("registry and endpoint are not rehearsed: the bucket is pushed to")
    return job, notes
