"""Goes on with a run that was not finished."""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from components.tfrecord_gen.spans.span_choice import SpanChoice
from pipeline.config.config import Config
from pipeline.config.serialize import read_stored_config
from pipeline.config.validate_secrets import require_secrets
from pipeline.graph.choose_spans import choose_spans
from runners.cache import up_to_date
from runners.cache.run_inputs import RunInputs, differences
from runners.engine import Engine, Observer, Plan
from runners.local.graph_file import GraphFile
from runners.metadata.metadata_file import keep_copy
from runners.operations.begun_run import (
    INPUTS_FILE,
    engine_or_local,
    execute,
    hold_workspace,
    memory_of,
    note_acceptance,
    prepare_store,
    read_inputs,
    retries_of,
    write_inputs,
)
from runners.operations.find_run import (
    RESUMABLE,
    find_run,
    last_real_run,
    newest_resumable,
)
from runners.operations.next_command import next_command
from runners.operations.predict_command import suggest_predict
from sluice.errors import UsageError
from sluice.machine_resources import usable_cores
from sluice.project import activate
from sluice.record.events import RunResumed, RunStarted
from sluice.record.journal import Journal
from sluice.record.recorder import Recorder
from sluice.record.run_record import RunRecord
from sluice.workspace import Workspace, private_umask


@dataclass(frozen=True, kw_only=True)
class ResumeRequest:
    """Which run is to go on.

    Attributes:
      name: a config's name or path; None for the pipeline with the newest such run.
      run_id: which run; None for the last.
      workspace_dir: as for ``PipelineRequest``.
      command: what was typed or called, for the record.
      workers: how many nodes run at the same time; None for one per core.
      wait: whether to wait for another run to end.
    """

    name: str | None = None
    run_id: str | None = None
    workspace_dir: str | None = None
    command: str = "runners.operations.resume"
    workers: int | None = None
    wait: bool = False


@dataclass(frozen=True)
class _Pipeline:
    """Whose run goes on, and where."""

    name: str
    workspace: Workspace
    workspace_dir: str | None

    def next_command(self, *words: str) -> str:
        return next_command(*words, workspace_dir=self.workspace_dir)

    @property
    def run_again(self) -> str:
        """The way out where a run cannot go on."""
        command = self.next_command("run", self.name)
        return f"{command}   (its cache skips what has finished and is the same)"


def resume(
    request: ResumeRequest,
    observer: Observer | None = None,
    engine: Engine | None = None,
) -> RunRecord:
    """Goes on with the last failed, killed or interrupted run.

    Nodes that have finished stay as they are. The run keeps its id and its config.

    Args:
      request: which run.
      observer: follows it; None for nobody.
      engine: executes it; None for processes of this machine.

    Returns:
      The record, also of a run that has failed again.

    Raises:
      UsageError: there is no such run, or code, schema, data or packages have changed
        since it began.
      LockedError: another run of the pipeline is in progress.
      WorkspaceError: the workspace is damaged, or its disk is full.
    """
    observer = observer or Observer()
    pipeline = _find_pipeline(request, observer)
    workspace, name = pipeline.workspace, pipeline.name
    with engine_or_local(engine) as chosen, ExitStack() as stack:
        held = hold_workspace(workspace, request.command, request.wait, observer)
        lock = stack.enter_context(held)
        record = _find_resumable(pipeline, request.run_id, observer)
        run_dir = workspace.run_dir(record.run_id)
        config = _stored_config(pipeline, run_dir)
        require_secrets(config)
        stack.enter_context(private_umask(config.private))
        activate(config.root)
        serving_dir = Path(record.pushes[0].destination)
        stored = SpanChoice.load(run_dir)
        choice = stored.restat() if stored else choose_spans(config)
        inputs = read_inputs(config, workspace, serving_dir, choice)
        is_known = _check_unchanged(pipeline, run_dir, inputs)
        choice.save(run_dir)
        recorder = Recorder(run_dir)
        record = recorder.record
        asked = _asked(recorder)
        prepare_store(serving_dir, config, workspace, asked.to_nodes)
        if not is_known:
            write_inputs(recorder, inputs)
        workers = request.workers or usable_cores()
        again = pipeline.next_command("resume", name, "--run", record.run_id)
        event = RunResumed(
            command=request.command,
            workers=workers,
            resume_command=again,
            notes=lock.notes,
        )
        recorder.apply(event)
        observer.on_event(event, recorder.record)
        plan = Plan(
            run_dir=run_dir,
            workers=workers,
            project_root=config.root,
            workspace=workspace.root,
            use_cache=asked.use_cache,
            forced=asked.forced,
            from_nodes=asked.from_nodes,
            to_nodes=asked.to_nodes,
            accept_data=asked.accept_data,
            retries=retries_of(config),
            memory=memory_of(config),
            resumed=True,
            locks=(lock.descriptor,),
            spans=choice,
        )
        record = execute(plan, recorder, chosen, observer)
        note_acceptance(recorder, plan.accept_data)
        keep_copy(workspace)
        if _is_whole(asked) and inputs == read_inputs(
            config, workspace, serving_dir, choice
        ):
            up_to_date.remember(workspace, record, inputs)
    given = request.workspace_dir
    suggest_predict(record, config, name, given, choice.data, observer)
    return record


def _find_pipeline(request: ResumeRequest, observer: Observer) -> _Pipeline:
    given, warn = request.workspace_dir, observer.on_warning
    if request.name is None:
        workspace, name = newest_resumable(given, warn)
        return _Pipeline(name, workspace, given)
    found = find_run(request.name, given, warn=warn)
    return _Pipeline(request.name, found.workspace, given)


def _stored_config(pipeline: _Pipeline, run_dir: Path) -> Config:
    try:
        return read_stored_config(run_dir / "config.json")
    except FileNotFoundError as error:
        raise UsageError(
            f"run {run_dir.name} cannot go on: `sluice gc` has dropped it",
            where=run_dir,
            hint=pipeline.next_command("run", pipeline.name),
        ) from error


def _find_resumable(
    pipeline: _Pipeline, run_id: str | None, observer: Observer
) -> RunRecord:
    """Returns the run to go on with: the last one that was more than a look.

    An older one is never: its gates compared with what was served then.

    Raises:
      UsageError: there is none, it has ended, or another one was named.
    """
    workspace, name = pipeline.workspace, pipeline.name
    record = last_real_run(workspace, observer.on_warning)
    hint = pipeline.next_command("run", name)
    if record is None:
        raise UsageError(f"{name} has not run yet", where=workspace.root, hint=hint)
    if run_id is not None:
        found = find_run(
            name, pipeline.workspace_dir, workspace=workspace, run_id=run_id
        )
        named = found.record
        if named.run_id != record.run_id:
            raise UsageError(
                f"run {named.run_id} cannot be resumed: {record.run_id} has run since, "
                "and its gates would compare with what was served before that",
                where=workspace.run_dir(named.run_id),
                hint=pipeline.run_again,
            )
    if record.status not in RESUMABLE:
        raise UsageError(
            f"there is no run of {name} to go on with: the last one has "
            + _ended(record),
            where=workspace.run_dir(record.run_id),
            hint=hint,
        )
    return record


def _ended(record: RunRecord) -> str:
    return {
        "succeeded": "succeeded",
        "up_to_date": "had nothing to do",
        "blocked": "been stopped by a gate, which the same data and code stop again",
    }.get(record.status, record.status)


def _check_unchanged(pipeline: _Pipeline, run_dir: Path, now: RunInputs) -> bool:
    """Whether it is known what the run was made of when it began.

    Raises:
      UsageError: that has changed since.
    """
    stored = run_dir / INPUTS_FILE
    if not stored.exists():
        if GraphFile.load(run_dir) is None:
            # Stopped before its first node.
            return False
        raise UsageError(
            f"run {run_dir.name} cannot go on: what it was made of is not known",
            where=stored,
            hint=pipeline.next_command("run", pipeline.name),
        )
    before = json.loads(stored.read_text())
    parts = ("schema", "code", "data", "packages")
    if changed := differences(before, now.to_dict(), parts):
        raise UsageError(
            f"run {run_dir.name} cannot go on: what it is made of has changed since",
            where=run_dir,
            examples=changed,
            hint=pipeline.run_again,
        )
    return True


def _asked(recorder: Recorder) -> RunStarted:
    """Returns the event that says how the run was begun."""
    events = Journal(recorder.run_dir).events()
    return next(event for event in events if isinstance(event, RunStarted))


def _is_whole(asked: RunStarted) -> bool:
    """Whether the run was asked for without options that make it do more or less."""
    part = asked.forced or asked.from_nodes or asked.to_nodes
    return asked.use_cache and not part and not asked.accept_data
