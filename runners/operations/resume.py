"""Operation: resumes an unfinished run."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass

from runners.cloud.submitted_job import SubmittedJob, is_service_run
from runners.engine import Engine, Observer
from runners.operations.find_run import (
    RESUMABLE,
    find_run,
    last_real_run,
    newest_resumable,
    not_run_yet,
)
from runners.operations.lock_workspace import lock_workspace, prepare_store
from runners.operations.pipeline_request import WorkspaceRequest
from runners.operations.prepared_run import (
    PreparedRun,
    load_prepared_run,
    record_inputs,
    require_unchanged_inputs,
    stored_inputs,
)
from runners.operations.run_lifecycle import (
    engine_or_local,
    execute,
    finish_run,
    make_plan,
    suggest_predict,
)
from sluice.errors import UsageError
from sluice.machine_resources import usable_cores
from sluice.record.events import RunResumed
from sluice.record.recorder import Recorder
from sluice.record.run_record import REHEARSAL, RunRecord
from sluice.run_lock import ANY
from sluice.workspace import Workspace, private_umask


@dataclass(frozen=True, kw_only=True)
class ResumeRequest:
    """Request to resume an unfinished run.

    Attributes:
      name: a config's name or path; None for the pipeline with the newest unfinished
        run.
      run_id: the run; None for the last.
      workspace_dir: as for ``PipelineRequest``.
      command: the command line or the caller, for the record.
      workers: number of nodes to run in parallel; None for one per core.
      wait: whether to wait for another run to end.
    """

    name: str | None = None
    run_id: str | None = None
    workspace_dir: str | None = None
    command: str = "runners.operations.resume"
    workers: int | None = None
    wait: bool = False


@dataclass(frozen=True, kw_only=True)
class _Pipeline(WorkspaceRequest):
    """The pipeline whose run is resumed, and the commands for it."""

    workspace: Workspace

    @property
    def run_again(self) -> str:
        """The command to try where a run cannot be resumed."""
        command = self.next_command("run", self.name)
        return f"{command}   (its cache skips unchanged nodes that have finished)"


def resume(
    request: ResumeRequest,
    observer: Observer | None = None,
    engine: Engine | None = None,
) -> RunRecord:
    """Resumes the last failed, killed or interrupted run.

    Nodes that have finished are not run again. The run keeps its id and its config.

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
    last = last_real_run(workspace)
    if last is not None and is_service_run(workspace.run_dir(last.run_id)):
        return _resume_in_service(request, pipeline, observer)
    with engine_or_local(engine) as chosen, ExitStack() as stack:
        if not chosen.capabilities.resume:
            raise UsageError(
                f"{type(chosen).__name__} cannot resume runs", hint=pipeline.run_again
            )
        command, wait = request.command, request.wait
        # Of a shared run no process may be left that could end it.
        locking = lock_workspace(workspace, command, wait, observer, end_shared=ANY)
        locked = stack.enter_context(locking)
        record = _find_resumable(pipeline, request.run_id)
        run_dir = workspace.run_dir(record.run_id)
        recorder = Recorder(run_dir, observer.on_event)
        begun = recorder.run_started
        if begun.resume_command is None:
            raise UsageError(
                f"run {record.run_id} cannot be resumed: its engine cannot resume runs",
                where=run_dir,
                hint=pipeline.next_command("rehearse", pipeline.name)
                if REHEARSAL in record.tags
                else pipeline.run_again,
            )
        prepared = _load(pipeline, recorder)
        config, serving_dir = prepared.config, prepared.serving_dir
        stack.enter_context(private_umask(config.private))
        inputs = prepared.read_inputs()
        require_unchanged_inputs(recorder, inputs, pipeline.run_again)
        prepare_store(serving_dir, config, workspace, begun.to_nodes)
        if stored_inputs(run_dir) is None:
            record_inputs(recorder, prepared, inputs)
        workers = request.workers or usable_cores()
        event = RunResumed(
            command=command,
            workers=workers,
            resume_command=pipeline.next_command(
                "resume", name, "--run", record.run_id
            ),
            notes=locked.notes_for(record.run_id),
        )
        recorder.apply(event)
        locks = (locked.lock.descriptor,)
        plan = make_plan(recorder, prepared, workers=workers, locks=locks, resumed=True)
        execute(plan, recorder, chosen, observer)
        finish_run(recorder, prepared)
    suggest_predict(recorder, prepared, name, request.workspace_dir, observer)
    return recorder.record


def _resume_in_service(
    request: ResumeRequest, pipeline: _Pipeline, observer: Observer
) -> RunRecord:
    """Submits a further job of a run, whose finished tasks the service caches.

    The spec is that of the first job, so that the service knows the tasks again; their
    outputs and the spans are in it and in its parameters.
    """
    from runners.cloud.registry import check_unchanged_images
    from runners.cloud.service_engine import ServiceEngine
    from runners.operations.service_runs import service_for
    from runners.operations.submit import submit_begun

    workspace = pipeline.workspace
    locking = lock_workspace(workspace, request.command, request.wait, observer)
    with locking as locked:
        record = _find_resumable(pipeline, request.run_id)
        recorder = Recorder(workspace.run_dir(record.run_id), observer.on_event)
        if recorder.run_started.resume_command is None:
            raise UsageError(
                f"run {record.run_id} cannot be resumed: another machine or a schedule "
                "has submitted it",
                where=recorder.run_dir,
                hint=pipeline.next_command("submit", pipeline.name),
            )
        prepared = _load(pipeline, recorder)
        # Its finished tasks and checkpoints are those of the first job's code.
        images = SubmittedJob.load(recorder.run_dir).images
        check_unchanged_images(images, pipeline.next_command("submit", pipeline.name))
        engine = ServiceEngine(service_for(prepared.config))
        with private_umask(prepared.config.private):
            event = RunResumed(
                command=request.command,
                workers=recorder.run_started.workers,
                resume_command=recorder.run_started.resume_command,
                notes=locked.notes_for(record.run_id),
            )
            recorder.apply(event)
            submit_begun(recorder, prepared, engine, observer, resumed=True)
    return recorder.refresh()


def _find_pipeline(request: ResumeRequest, observer: Observer) -> _Pipeline:
    given = request.workspace_dir
    if request.name is None:
        workspace, name = newest_resumable(given, observer.on_warning)
    else:
        name = request.name
        workspace = find_run(name, given, warn=observer.on_warning).workspace
    return _Pipeline(name=name, workspace=workspace, workspace_dir=given)


def _load(pipeline: _Pipeline, recorder: Recorder) -> PreparedRun:
    try:
        return load_prepared_run(pipeline.workspace, recorder)
    except FileNotFoundError as error:
        run_dir = recorder.run_dir
        raise UsageError(
            f"run {run_dir.name} cannot be resumed: `sluice gc` has deleted its "
            "artifacts",
            where=run_dir,
            hint=pipeline.next_command("run", pipeline.name),
        ) from error


def _find_resumable(pipeline: _Pipeline, run_id: str | None) -> RunRecord:
    """Returns the run to resume: the last one that was not an up-to-date check.

    An older one cannot be resumed: its gates would compare with an outdated baseline.
    """
    workspace, name = pipeline.workspace, pipeline.name
    record = last_real_run(workspace)
    hint = pipeline.next_command("run", name)
    if record is None:
        raise not_run_yet(name, workspace, pipeline.workspace_dir)
    if run_id is not None:
        found = find_run(
            name, pipeline.workspace_dir, workspace=workspace, run_id=run_id
        )
        named = found.record
        if named.run_id != record.run_id:
            raise UsageError(
                f"run {named.run_id} cannot be resumed: {record.run_id} has run since, "
                "and its gates would compare with an outdated baseline",
                where=workspace.run_dir(named.run_id),
                hint=pipeline.run_again,
            )
    if record.status not in RESUMABLE:
        raise UsageError(
            f"there is no run of {name} to resume: the last one has " + _ended(record),
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
