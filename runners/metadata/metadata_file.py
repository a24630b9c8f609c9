"""Checks, copies and restores the SQLite file of ML Metadata.

All of a pipeline's history is in this one file. A damaged one is renamed, never
deleted, and replaced by the copy made at the end of the previous run.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, suppress
from datetime import datetime, timezone
from pathlib import Path

from sluice.errors import WorkspaceError
from sluice.workspace import Workspace

_COPY = "metadata.copy.db"
_EMPTY = "it is empty"
_NOT_OURS = ("file is not a database", "it is not a database of ML Metadata")


def check_metadata(workspace: Workspace) -> list[str]:
    """Sees that ML Metadata can be read, and goes back to the copy if it cannot.

    The caller holds the run lock.

    Returns:
      Notes for the run's record.

    Raises:
      WorkspaceError: the file is damaged and there is no copy that is not, or it can
        neither be read nor be called damaged, such as one that another process locks.
    """
    path, copy = workspace.metadata_db, workspace.root / "state" / _COPY
    problem = _problem(path)
    if problem is None:
        return []
    problem = " ".join(problem.split())  # SQLite's own has several lines.
    if not copy.exists() or _problem(copy) is not None:
        if problem == _EMPTY:
            return []
        raise _refusal(path, problem, has_copy=False)
    stamp = datetime.now(timezone.utc).strftime("%Y%m%dT%H%M%SZ")
    aside = path.with_name(f"{path.name}.damaged-{stamp}")
    _replace(path, copy, aside)
    made = datetime.fromtimestamp(copy.stat().st_mtime, timezone.utc)
    return [
        f"the metadata was damaged ({problem}): went back to the copy of "
        f"{made:%Y-%m-%d %H:%M:%S} UTC; the damaged file is kept as {aside.name}"
    ]


def check_readable(workspace: Workspace) -> None:
    """Refuses metadata that is damaged, or is another file; changes nothing.

    Raises:
      WorkspaceError: the file is not a sound database of ML Metadata.
    """
    path, copy = workspace.metadata_db, workspace.root / "state" / _COPY
    if problem := _problem(path):
        has_copy = copy.exists() and _problem(copy) is None
        raise _refusal(path, " ".join(problem.split()), has_copy)


def _refusal(path: Path, problem: str, has_copy: bool) -> WorkspaceError:
    is_other = problem in _NOT_OURS
    what = "is not a database of ML Metadata" if is_other else "is damaged"
    aside = f"mv {path} {path}.{'other' if is_other else 'damaged'}"
    return WorkspaceError(
        f"the pipeline's metadata {what}"
        + ("" if has_copy else ", and there is no copy of it"),
        where=path,
        actual=problem,
        hint=f"sluice run {path.parent.name}: a run replaces it with the copy that was "
        "made at the end of the last run"
        if has_copy
        else f"{aside}, then run again: history and cache start empty; served versions "
        "are kept",
    )


def keep_copy(workspace: Workspace) -> None:
    """Copies ML Metadata's file; on a full disk the copy of before stays."""
    path, copy = workspace.metadata_db, workspace.root / "state" / _COPY
    if not path.exists():
        return
    if copy.exists() and copy.stat().st_mtime_ns >= path.stat().st_mtime_ns:
        return
    with suppress(OSError, sqlite3.Error):
        copy_metadata(path, copy)


def copy_metadata(source: Path, target: Path) -> None:
    """Copies a database by SQLite's own means; the target appears whole.

    It is readable by no more users than the source.
    """
    temporary = target.with_name(f".{target.name}.new")
    temporary.unlink(missing_ok=True)
    temporary.touch(source.stat().st_mode & 0o777)
    try:
        with (
            closing(sqlite3.connect(source)) as reading,
            closing(sqlite3.connect(temporary)) as writing,
        ):
            reading.backup(writing)
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def _replace(path: Path, copy: Path, aside: Path) -> None:
    """Puts the copy in the place of the file; at no time is there neither of them."""
    incoming = path.with_name(f"{path.name}.copy")
    try:
        copy_metadata(copy, incoming)
    except (OSError, sqlite3.Error) as error:
        raise WorkspaceError(
            "the pipeline's metadata is damaged, and it could not be restored from "
            "its copy",
            where=path,
            actual=str(error),
            hint="free some space if the disk is full, then run the command again",
        ) from error
    # The journal belongs to the damaged file: it must not be applied to the copy.
    for suffix in ("-journal", "-wal", "-shm"):
        with suppress(FileNotFoundError):
            os.replace(f"{path}{suffix}", f"{aside}{suffix}")
    try:
        os.link(path, aside)
    except OSError:  # a file system without links
        os.replace(path, aside)
    os.replace(incoming, path)


def _problem(path: Path) -> str | None:
    """Returns what is wrong with a database, None where nothing is, or no file.

    Raises:
      WorkspaceError: it cannot be read, which does not mean that it is damaged.
    """
    if not path.exists():
        return None
    try:
        with closing(sqlite3.connect(path, timeout=30)) as database:
            # Not read-only: a killed run may have left a journal to be rolled back.
            (answer,) = database.execute("PRAGMA quick_check(1)").fetchone()
            if answer != "ok":
                return str(answer)
            tables = database.execute("SELECT name FROM sqlite_master").fetchall()
    except sqlite3.OperationalError as error:
        raise WorkspaceError(
            "the pipeline's metadata cannot be read",
            where=path,
            actual=str(error),
            hint="free some space if its disk is full, check that no other process "
            "has it open and that you may write to it; then run the command again",
        ) from error
    except sqlite3.Error as error:
        return str(error)
    if not tables:
        return _EMPTY
    if ("MLMDEnv",) not in tables:
        return _NOT_OURS[1]
    return None
