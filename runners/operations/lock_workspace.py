"""Locks a workspace for a run, ends a killed run, and checks that it can push."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pipeline.config.config import Config
from pipeline.graph.custom_nodes import selected_nodes
from pipeline.graph.node_registry import PUSHER
from runners.cloud.submitted_job import is_service_run
from runners.engine import Observer
from runners.local.write_report import write_report
from runners.operations.pipeline_request import next_command
from serving.model_store import store_at
from serving.store_owner import Owner
from sluice.errors import UsageError, WorkspaceError
from sluice.record.run_record import RunRecord
from sluice.storage.storage import is_remote
from sluice.storage.storage_errors import explain_full_disk, require_free_space
from sluice.workspace import Workspace

# Record, compiled graph and ML Metadata of a run before its first output: 0.6 MB for
# `digits`. With less, SQLite fails inside TFX.
_RUN_BYTES = 4_000_000


@contextmanager
def lock_workspace(
    workspace: Workspace, command: str, wait: bool, observer: Observer
) -> Iterator[None]:
    """Holds the run lock of a pipeline; first ends the record of a killed run.

    Raises:
      LockedError: another run is in progress.
      WorkspaceError: the disk is full.
    """
    require_free_space(workspace.root, _RUN_BYTES)
    with (
        explain_full_disk(workspace.root),
        workspace.exclusive(
            command,
            wait=wait,
            on_wait=lambda owner: observer.on_note(f"waiting for {owner}"),
        ),
    ):
        workspace.ensure_id()
        _end_killed_run(workspace)
        yield


def read_record(workspace: Workspace, run_id: str) -> RunRecord:
    """Returns the record of a run; one whose process was killed is interrupted.

    Nothing is written: that is left to the next run.

    Raises:
      WorkspaceError: it cannot be read.
    """
    run_dir = workspace.run_dir(run_id)
    if is_service_run(run_dir) or workspace.is_running():
        return RunRecord.load(run_dir)
    record = RunRecord.load_ended(run_dir)
    if record.status == "interrupted" and record.exit_code is None:
        record.resume_command = resume_command(record)
    return record


def resume_command(record: RunRecord) -> str:
    """Returns the command that resumes a run of this machine."""
    return next_command("resume", record.pipeline, "--run", record.run_id)


def _end_killed_run(workspace: Workspace) -> None:
    """Writes how a killed run ended; runs follow each other, so it is the newest."""
    for run_id in reversed(workspace.run_ids()):
        run_dir = workspace.run_dir(run_id)
        if is_service_run(run_dir):
            continue
        try:
            if RunRecord.load(run_dir).status == "running":
                record = RunRecord.load_ended(run_dir)
                record.resume_command = resume_command(record)
                record.save(run_dir)
                write_report(record, run_dir)
        except WorkspaceError:
            # A damaged record must not keep the next run from beginning.
            continue
        return


def prepare_store(
    serving_dir: str, config: Config, workspace: Workspace, to_nodes: Sequence[str]
) -> None:
    """Checks that the run can push its model; see ``ModelStore.prepare``.

    Raises:
      UsageError: nothing can be pushed there.
    """
    if PUSHER not in selected_nodes(config, to_nodes):
        return
    for own in workspace.folders:
        if is_remote(serving_dir):
            break
        if Path(serving_dir).resolve().is_relative_to(own.resolve()):
            raise UsageError(
                "push.serving_dir is inside a folder that runs of this pipeline use",
                where=serving_dir,
                expected=f"a directory outside of {own}",
            )
    store_at(serving_dir).prepare(Owner(config.name, workspace.id))
