"""Deletes artifacts and runs that no kept run or served model needs.

An artifact is marked as deleted in ML Metadata before its files are deleted. A kill in
between leaves unreferenced files, which the next collection deletes, and never a
damaged artifact that the cache would use. Nothing is removed from ML Metadata, so
history and lineage stay readable.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from components.baseline_model.blessed_models import blessed_models, search_baseline
from runners.cache import up_to_date
from runners.metadata.read_metadata import change_artifacts, read_metadata
from runners.metadata.trace_lineage import served_models
from runners.retention.find_garbage import (
    Garbage,
    find_garbage,
    old_versions,
    select_kept,
)
from serving.model_store import store_at
from serving.store_owner import Owner
from sluice.errors import WorkspaceError
from sluice.record.run_record import RunRecord
from sluice.storage.storage import storage_for
from sluice.storage.storage_errors import explain_unreadable
from sluice.workspace import Workspace


def collect_garbage(
    workspace: Workspace,
    serving_dirs: Sequence[str | Path],
    *,
    keep: int,
    keep_versions: int | None = None,
    dry_run: bool = False,
    command: str = "sluice gc",
) -> Garbage:
    """Deletes unneeded artifacts and runs, or only finds them.

    Args:
      workspace: of the pipeline; it need not exist.
      serving_dirs: the current serving directories, the one that is pushed to first;
        those of earlier runs are added.
      keep: the number of newest runs to keep, at least 1.
      keep_versions: the number of newest versions to keep, at least 1, in the first
        serving directory; that of the next baseline is kept too. None keeps all.
      dry_run: delete nothing.
      command: shown to other commands while this holds the lock.

    Returns:
      What was deleted, or would be.

    Raises:
      LockedError: a run of the pipeline is in progress.
      UsageError: a folder cannot be read; nothing was deleted. Or a file cannot be
        deleted, and the next collection goes on there.
      WorkspaceError: the metadata cannot be read.
      ServingError: a serving directory cannot be read, or a version be deleted.
    """
    if not workspace.root.exists():
        return Garbage()
    workspace.prepare()
    with workspace.exclusive(command):
        garbage = _find(workspace, serving_dirs, keep, keep_versions)
        if not dry_run:
            with up_to_date.kept(workspace):
                _delete_versions(workspace, garbage)
                change_artifacts(workspace.metadata_db, garbage.mark, _mark_deleted)
                _delete(workspace, garbage)
        return garbage


def _find(
    workspace: Workspace,
    serving_dirs: Sequence[str | Path],
    keep: int,
    keep_versions: int | None,
) -> Garbage:
    graph = read_metadata(workspace.metadata_db)
    records = {}
    for run_id in workspace.run_ids():
        with contextlib.suppress(WorkspaceError):  # It cannot be read.
            records[run_id] = RunRecord.load(workspace.run_dir(run_id))
    served = served_models(graph, serving_dirs)
    blessed = search_baseline(blessed_models(graph.artifacts.values()))
    baselines = [model for model, _ in blessed if model.retired is None]
    versions = []
    if keep_versions is not None:
        versions = old_versions(serving_dirs[0], baselines, keep_versions)
        deleted = {version.uri for version in versions}
        served = [item for item in served if item.version.uri not in deleted]
    kept = select_kept(graph, records, served, baselines, keep)
    with explain_unreadable(str(workspace.root), "the workspace cannot be read"):
        return find_garbage(workspace, graph, kept, versions)


def _delete_versions(workspace: Workspace, garbage: Garbage) -> None:
    owner = Owner(workspace.root.name, workspace.id)
    for version in garbage.items["versions"]:
        place, _, number = version.name.rpartition("/")
        store_at(place).delete(int(number), owner)


def _mark_deleted(artifact: Any) -> None:
    artifact.state = artifact.DELETED


def _delete(workspace: Workspace, garbage: Garbage) -> None:
    for item in (item for items in garbage.items.values() for item in items):
        for path in item.paths:
            with explain_unreadable(str(path), "garbage cannot be deleted"):
                storage_for(path).delete_tree(str(path))
            with contextlib.suppress(OSError):  # It is not empty.
                path.parent.rmdir()
