"""Deletes artifacts and runs that no kept run or served model needs.

An artifact is marked as deleted in ML Metadata before its files are deleted. A kill in
between leaves unreferenced files, which the next collection deletes, and never a
damaged artifact that the cache would use. Nothing is removed from ML Metadata, so
history and lineage stay readable.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from pathlib import Path

from components.baseline_model.blessed_models import search_baseline
from runners.cache import up_to_date
from runners.metadata.metadata_graph import MetadataGraph
from runners.metadata.read_metadata import open_store, read_metadata
from runners.metadata.served_models import served_models
from runners.retention.deletion_guard import DeletionGuard, folders, remove
from runners.retention.find_garbage import Garbage, find_garbage, kept_uris
from runners.retention.retention_policy import Kept, select_kept
from runners.retention.retire_model import find_blessed_models
from sluice.errors import WorkspaceError
from sluice.record.load_record import load_record
from sluice.record.run_record import RunRecord
from sluice.workspace import Workspace


def collect_garbage(
    workspace: Workspace,
    serving_dirs: Sequence[str | Path],
    *,
    keep: int,
    dry_run: bool = False,
    command: str = "sluice gc",
) -> Garbage:
    """Deletes unneeded artifacts and runs, or only finds them.

    Args:
      workspace: of the pipeline; it need not exist.
      serving_dirs: the current serving directories; those of earlier runs are added.
      keep: the number of newest runs to keep, at least 1.
      dry_run: delete nothing; allowed during a run.
      command: shown to other commands while this holds the lock.

    Returns:
      What was deleted, or would be.

    Raises:
      LockedError: a run of the pipeline is in progress.
      WorkspaceError: the metadata cannot be read, or a file could not be deleted; the
        others were deleted then, and the next collection tries again.
      ServingError: a serving directory cannot be read.
    """
    if dry_run or not workspace.root.exists():
        return _find(workspace, serving_dirs, keep, workspace.is_running())[0]
    workspace.prepare()
    with workspace.exclusive(command), up_to_date.kept(workspace):
        garbage, graph, kept = _find(workspace, serving_dirs, keep, False)
        _mark_deleted(workspace.metadata_db, garbage)
        _delete(workspace, garbage)
        _prune(workspace, kept_uris(graph, kept))
        return garbage


def _find(
    workspace: Workspace, serving_dirs: Iterable[str | Path], keep: int, running: bool
) -> tuple[Garbage, MetadataGraph, Kept]:
    graph = read_metadata(workspace.metadata_db)
    records = _records(workspace)
    served = served_models(graph, serving_dirs)
    baselines = [model for model, _ in search_baseline(find_blessed_models(graph))]
    kept = select_kept(graph, records, served, baselines, keep)
    try:
        garbage = find_garbage(workspace, graph, records, kept, running=running)
    except OSError as error:
        raise WorkspaceError(
            "the workspace cannot be read",
            where=error.filename,
            actual=error.strerror,
            hint="make it readable, then run the command again; nothing was deleted",
        ) from error
    return garbage, graph, kept


def _records(workspace: Workspace) -> dict[str, RunRecord | None]:
    records: dict[str, RunRecord | None] = {}
    for run_id in workspace.run_ids():
        try:
            records[run_id] = load_record(workspace.run_dir(run_id))
        except WorkspaceError:
            records[run_id] = None
    return records


def _mark_deleted(metadata_db: Path, garbage: Garbage) -> None:
    """Marks artifacts as deleted and closes executions of killed runs."""
    if not (garbage.mark or garbage.close):
        return
    with open_store(metadata_db, writable=True) as store:
        executions = store.get_executions_by_id(garbage.close)
        for execution in executions:
            execution.last_known_state = execution.FAILED
        artifacts = store.get_artifacts_by_id(garbage.mark)
        for artifact in artifacts:
            artifact.state = artifact.DELETED
        if executions:
            store.put_executions(executions)
        if artifacts:
            store.put_artifacts(artifacts)


def _delete(workspace: Workspace, garbage: Garbage) -> None:
    failures = []
    for items in garbage.items.values():
        for path in (path for item in items for path in item.paths):
            try:
                remove(path)
            except OSError as error:
                failures.append(f"{error.filename or path}: {error.strerror}")
    if failures:
        raise WorkspaceError(
            "some files could not be deleted",
            where=workspace.root,
            examples=failures,
            hint="fix their permissions, then run 'sluice gc' again; everything else "
            "was deleted",
        )


def _prune(workspace: Workspace, protected: Iterable[str]) -> None:
    """Removes empty folders, except those of protected artifacts."""
    inside = DeletionGuard(workspace.artifacts, protected)
    for node in folders(workspace.artifacts):
        for path in (*node.glob(".system/*"), *node.iterdir(), node):
            if inside.may_delete(path):
                _remove_if_empty(path)
    parents = (workspace.inputs, workspace.runs, workspace.checkpoints)
    for folder in (folder for parent in parents for folder in folders(parent)):
        _remove_if_empty(folder)


def _remove_if_empty(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.rmdir()
