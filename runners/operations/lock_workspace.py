"""Locks a workspace for a run, and checks that it can push."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pipeline.config.config import Config
from pipeline.graph.custom_nodes import is_needed_for
from pipeline.graph.node_registry import PUSHER
from runners.engine import Observer
from runners.metadata.metadata_file import check_metadata
from runners.operations.complete_killed_runs import complete_killed_runs
from serving.model_store import store_at
from serving.store_owner import Owner
from sluice.errors import UsageError
from sluice.run_lock import RunLock
from sluice.storage.storage import is_remote
from sluice.storage.storage_errors import explain_full_disk, require_free_space
from sluice.workspace import Workspace

# Record, compiled graph and ML Metadata of a run before its first output: 0.6 MB for
# `digits`. With less, SQLite fails inside TFX.
_RUN_BYTES = 4_000_000


@dataclass(frozen=True)
class LockedWorkspace:
    """A workspace whose run lock this process holds.

    Attributes:
      lock: the run lock.
      repairs: what was found damaged and repaired, for the record of the next run.
      killed_runs: the ids of the runs that were killed and are completed now.
    """

    lock: RunLock
    repairs: tuple[str, ...]
    killed_runs: tuple[str, ...]

    def notes_for(self, run_id: str) -> tuple[str, ...]:
        """Returns the notes for the record of a run that begins or is resumed now."""
        return (
            *self.repairs,
            *(
                f"run {killed} was killed; its record is complete now"
                for killed in self.killed_runs
                if killed not in (run_id, self.lock.ended_run)
            ),
        )


@contextmanager
def lock_workspace(
    workspace: Workspace,
    command: str,
    wait: bool,
    observer: Observer,
    end_shared: str | None = None,
) -> Iterator[LockedWorkspace]:
    """Holds the run lock of a pipeline; first repairs what a killed run has left.

    ``end_shared`` is that of ``run_lock.exclusive``; the record of a run that it ends
    is completed.

    Raises:
      LockedError: another run is in progress.
      WorkspaceError: the metadata is damaged, or the disk is full.
    """

    def on_wait(owner: str) -> None:
        observer.on_note(f"waiting for {owner}")

    require_free_space(workspace.root, _RUN_BYTES)
    with (
        explain_full_disk(workspace.root),
        workspace.exclusive(
            command, wait=wait, on_wait=on_wait, end_shared=end_shared
        ) as lock,
    ):
        workspace.ensure_id()
        repairs = check_metadata(workspace)
        killed_runs = complete_killed_runs(workspace, lock)
        if lock.note and not killed_runs:
            repairs.insert(0, lock.note)
        yield LockedWorkspace(lock, tuple(repairs), tuple(killed_runs))


def prepare_store(
    serving_dir: str, config: Config, workspace: Workspace, to_nodes: Sequence[str]
) -> None:
    """Checks that the run can push its model; see ``ModelStore.prepare``.

    Raises:
      UsageError: nothing can be pushed there.
    """
    if to_nodes and not is_needed_for(config, PUSHER, to_nodes):
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
