"""Runs a compiled pipeline once in an emulated service, with a record of the run."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from components.tfrecord_gen.spans.span_choice import SpanChoice
from pipeline.config.config import Config
from pipeline.config.serialize import plain_config, write_stored_config
from pipeline.graph.choose_spans import choose_spans
from runners.cloud.cloud_locations import cloud_locations
from runners.cloud.spec import Spec
from runners.cloud.submitted_job import SPEC_FILE
from runners.engine import Observer, Plan
from runners.local.write_report import write_report
from runners.operations.lock_workspace import LockedWorkspace
from runners.operations.prepared_run import PreparedRun, record_late_spans
from runners.operations.run_lifecycle import execute
from runners.rehearsal.engine import RehearsalEngine
from runners.rehearsal.replace_services import replace_services
from sluice.machine_resources import usable_cores
from sluice.record.events import InputsRead, RunStarted, SpansChosen
from sluice.record.recorder import Recorder
from sluice.record.run_record import REHEARSAL, RunRecord
from sluice.storage import atomic
from sluice.workspace import Workspace


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
        if self.config is not None:
            self._record_inputs(recorder, self.config, choice)
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

    def _record_inputs(
        self, recorder: Recorder, config: Config, choice: SpanChoice | None
    ) -> None:
        serving_dir = cloud_locations(config).serving_dir
        choice = choice or choose_spans(config)
        prepared = PreparedRun(config, choice, self.workspace, serving_dir)
        inputs = prepared.read_inputs()
        recorder.apply(InputsRead(digests=inputs.summary(), packages=inputs.packages))

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
        job, notes = replace_services(job)
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
