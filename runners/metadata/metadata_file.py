"""The SQLite file of ML Metadata: whether a run may begin with it, and copies.

All of a pipeline's history is in this one file. Without it no model can be compared
with a baseline, so that a worse one would be pushed.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

from serving.model_store import store_at
from sluice.clock import utc_now
from sluice.errors import UsageError, WorkspaceError
from sluice.workspace import Workspace


def check_metadata(
    workspace: Workspace,
    serving_dirs: Iterable[str | Path],
    without_baseline: str | None = None,
) -> list[str]:
    """Refuses a run whose pipeline has pushed a model, but whose metadata is lost.

    Reads one row, since the cost of a whole check grows with the history. The caller
    holds the run lock.

    Args:
      workspace: of the pipeline.
      serving_dirs: where its models are pushed.
      without_baseline: the reason to begin without the lost metadata, whose file is
        moved aside; None to refuse.

    Returns:
      Notes for the run's record.

    Raises:
      WorkspaceError: the metadata is lost, or it cannot be read now.
      UsageError: there is a reason, but the metadata is there.
    """
    path = workspace.metadata_db
    problem = _problem(path)
    if problem is None and without_baseline is not None:
        raise UsageError(
            "the pipeline's metadata is there, and its baseline is in it",
            where=path,
            hint=f"sluice models retire {workspace.root.name} VERSION --reason ...",
        )
    if problem is None or not any(map(_has_pushes, serving_dirs)):
        return []
    if without_baseline is None:
        raise WorkspaceError(
            f"the pipeline's metadata {problem}; without it a new model would be "
            "compared with none",
            where=path,
            hint="put the file back, or begin with neither baseline nor history: "
            f"sluice run {workspace.root.name} --without-baseline REASON",
        )
    note = f"begun without a baseline ({without_baseline}): the metadata {problem}"
    if os.path.lexists(path):
        # SQLite deletes the journal of a file that is gone.
        aside = path.rename(path.with_name(f"{path.name}.lost-{utc_now()}"))
        note += f"; it is kept as {aside.name}"
    return [note]


def _has_pushes(serving_dir: str | Path) -> bool:
    return any(version.digest for version in store_at(str(serving_dir)).versions())


def copy_metadata(source: Path, target: Path) -> None:
    """Copies the database by SQLite's own means.

    Raises:
      WorkspaceError: it is damaged, or cannot be read.
    """
    if problem := _problem(source):
        raise WorkspaceError(f"the pipeline's metadata {problem}", where=source)
    with (
        closing(sqlite3.connect(source)) as reading,
        closing(sqlite3.connect(target)) as writing,
    ):
        reading.backup(writing)


def _problem(path: Path) -> str | None:
    """Returns what is wrong with the metadata, None where it holds an artifact.

    Raises:
      WorkspaceError: it cannot be read, which does not mean that it is lost.
    """
    if not path.exists():
        return "is missing"
    try:
        # Not read-only: a killed run may have left a journal to be rolled back.
        with closing(sqlite3.connect(path, timeout=30)) as database:
            tables = database.execute("SELECT name FROM sqlite_master").fetchall()
            if ("Artifact",) not in tables:
                return "is empty"
            rows = database.execute("SELECT id FROM Artifact LIMIT 1").fetchall()
    except sqlite3.OperationalError as error:
        raise WorkspaceError(
            f"the pipeline's metadata cannot be read: {error}", where=path
        ) from error
    except sqlite3.Error as error:
        return f"is damaged ({error})"
    return None if rows else "is empty"
