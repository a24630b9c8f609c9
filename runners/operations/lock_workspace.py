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
from runners.local.complete_killed_runs import complete_killed_runs
from runners.metadata.metadata_file import check_metadata
from serving.model_store import ModelStore
from serving.store_owner import Owner
from sluice.errors import UsageError
from sluice.run_lock import RunLock
from sluice.storage.storage_errors import explain_full_disk
from sluice.workspace import Workspace


@dataclass(frozen=True)
class LockedWorkspace:
    """A workspace that is this process's own for a while.

    Attributes:
      lock: whoever holds its descriptor open holds the lock.
      notes: what was found and put in order, for the record.
    """

    lock: RunLock
    notes: tuple[str, ...]


@contextmanager
def lock_workspace(
    workspace: Workspace,
    command: str,
    wait: bool,
    observer: Observer,
    end_shared: str | None = None,
) -> Iterator[LockedWorkspace]:
    """Holds the pipeline's lock, and puts in order what a killed run has left.

    Args:
      workspace: of the pipeline.
      command: what this process was called with.
      wait: whether to wait for another run to end.
      observer: is told for whom.
      end_shared: as for ``run_lock.exclusive``; the run's record is completed.

    Raises:
      LockedError: another run is in progress.
      WorkspaceError: the metadata is damaged, or the disk is full.
    """

    def on_wait(owner: str) -> None:
        observer.on_note(f"waiting for {owner}")

    with (
        explain_full_disk(workspace.root),
        workspace.exclusive(
            command, wait=wait, on_wait=on_wait, end_shared=end_shared
        ) as lock,
    ):
        workspace.ensure_id()
        notes = [lock.note] if lock.note else []
        notes += check_metadata(workspace)
        for run_id in complete_killed_runs(workspace, locked=True):
            if run_id == lock.ended_run:
                continue
            notes.append(f"run {run_id} was killed; its record is complete now")
        yield LockedWorkspace(lock, tuple(notes))


def prepare_store(
    serving_dir: Path, config: Config, workspace: Workspace, to_nodes: Sequence[str]
) -> None:
    """Finds before a run what would stop its push; see ``ModelStore.prepare``.

    Args:
      serving_dir: where the model goes.
      config: of the pipeline.
      workspace: locked.
      to_nodes: where the run ends; empty if that is at the push.

    Raises:
      UsageError: nothing can be pushed there.
    """
    if to_nodes and not is_needed_for(config, PUSHER, to_nodes):
        return
    for own in workspace.folders:
        if serving_dir.resolve().is_relative_to(own.resolve()):
            raise UsageError(
                "push.serving_dir is inside a folder that runs of this pipeline use.",
                where=serving_dir,
                expected=f"a directory outside of {own}",
            )
    ModelStore(serving_dir).prepare(Owner(config.name, workspace.id))
