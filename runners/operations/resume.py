"""Operation: resumes an unfinished run."""

from __future__ import annotations

from itertools import chain

from components.baseline_model.blessed_models import RETIRED
from pipeline.training.strategy.cluster import join_as_chief
from runners.cloud.submitted_job import is_service_run
from runners.engine import Engine, Observer
from runners.metadata.metadata_file import check_metadata
from runners.metadata.read_metadata import read_metadata
from runners.operations.find_run import (
    RESUMABLE,
    find_run,
    find_workspace,
    last_real_run,
    newest_resumable,
    not_run_yet,
)
from runners.operations.prepared_run import (
    load_prepared_run,
    lock_workspace,
    require_unchanged_inputs,
)
from runners.operations.run import execute
from sluice.errors import UsageError
from sluice.machine_resources import usable_cores
from sluice.record.run_record import REHEARSAL, RunRecord
from sluice.workspace import Workspace, next_command, private_umask


def resume(
    name: str | None = None,
    *,
    run_id: str | None = None,
    command: str = "runners.operations.resume",
    workers: int | None = None,
    wait: bool = False,
    observer: Observer | None = None,
    engine: Engine | None = None,
) -> RunRecord:
    """Resumes the last failed, killed or interrupted run.

    Nodes that have finished are not run again. The run keeps its id and its config.

    Args:
      name: a config's name or path; None for the pipeline with the newest unfinished
        run.
      run_id: the run; None for the last.
      command: the command line or the caller, for the record.
      workers: number of nodes to run in parallel; None for one per core.
      wait: whether to wait for another run to end.
      observer: of the run.
      engine: None for processes of this machine.

    Returns:
      The record, also of a run that has failed again.

    Raises:
      UsageError: there is no such run, or code, schema, data or packages have changed
        since it began, its baseline was retired, or this is a worker of a cluster.
      LockedError: another run of the pipeline is in progress.
      WorkspaceError: the workspace is damaged, or its disk is full.
    """
    observer = observer or Observer()
    join_as_chief()
    if name is None:
        workspace, name = newest_resumable()
    else:
        workspace = find_workspace(name)
        if not workspace.root.is_dir():
            raise not_run_yet(name, workspace)
    with lock_workspace(workspace, command, wait, observer):
        record = _find_resumable(name, workspace, run_id)
        run_dir = workspace.run_dir(record.run_id)
        run_again = _run_again(name, record)
        prepared = load_prepared_run(workspace, record)
        with private_umask(prepared.config.private):
            inputs = prepared.read_inputs()
            require_unchanged_inputs(run_dir, inputs, run_again)
            prepared.prepare_store(record.options.to_nodes)
            check_metadata(workspace, (prepared.serving_dir, workspace.serving))
            _refuse_retired_baseline(workspace, record, run_again)
            record.resume(command, workers or usable_cores())
            record.save(run_dir)
            observer.on_begin(record)
            execute(prepared, record, engine, observer, inputs, resumed=True)
    return record


def _find_resumable(name: str, workspace: Workspace, run_id: str | None) -> RunRecord:
    """Returns the run to resume: the last one that was not an up-to-date check.

    An older one cannot be resumed: its gates would compare with an outdated baseline.
    """
    record = last_real_run(workspace)
    if record is None:
        raise not_run_yet(name, workspace)
    if run_id is not None:
        named = find_run(name, workspace=workspace, run_id=run_id).record
        if named.options.dry_run:
            record = named
        elif named.run_id != record.run_id:
            raise UsageError(
                f"run {named.run_id} cannot be resumed: {record.run_id} has run since, "
                "and its gates would compare with an outdated baseline",
                where=workspace.run_dir(named.run_id),
                hint=_run_again(name, named),
            )
    if is_service_run(workspace.run_dir(record.run_id)):
        hint = next_command("submit", name)
    elif REHEARSAL in record.tags:
        hint = next_command("rehearse", name)
    elif record.options.dry_run:
        hint = next_command("retrain", name)
    elif record.status in RESUMABLE:
        return record
    else:
        hint = _run_again(name, record)
    raise UsageError(
        f"run {record.run_id} cannot be resumed: its status is {record.status}",
        where=workspace.run_dir(record.run_id),
        hint=hint,
    )


def _refuse_retired_baseline(
    workspace: Workspace, record: RunRecord, run_again: str
) -> None:
    """Refuses to go on with a model of another run that was retired meanwhile."""
    graph = read_metadata(workspace.metadata_db)
    for execution in graph.executions_of([record.run_id]):
        for artifact_id in chain.from_iterable(execution.outputs.values()):
            maker, found = graph.producer(artifact_id), graph.artifacts[artifact_id]
            if RETIRED in found.properties and maker and maker.node != execution.node:
                raise UsageError(
                    f"run {record.run_id} cannot be resumed: {execution.node} found a "
                    f"model that was retired since: {found.properties[RETIRED]}",
                    where=found.uri,
                    hint=run_again,
                )


def _run_again(name: str, record: RunRecord) -> str:
    return next_command("try" if record.options.trial else "run", name)
