"""Loads the record of a run from ``run.json``, or else from its journal.

``run.json`` is the fold of the journal, so a missing or damaged one can be
folded again. Nothing is written here: ``complete_killed_runs`` writes the file again,
under the lock.
"""

from __future__ import annotations

from pathlib import Path

from sluice.errors import WorkspaceError
from sluice.record.fold import fold
from sluice.record.journal import Journal, JournalError
from sluice.record.run_record import RECORD_FILE, NewerRecordError, RunRecord

_DAMAGED = (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError)


def load_record(run_dir: Path) -> RunRecord:
    """Returns the record of a run; see ``load_or_fold`` for the errors."""
    return load_or_fold(run_dir)[0]


def load_or_fold(run_dir: Path) -> tuple[RunRecord, bool]:
    """Returns the record of a run, and whether it was folded from the journal.

    Raises:
      WorkspaceError: ``run.json`` is unreadable or written by a newer Sluice, or it is
        damaged and so is the journal.
    """
    try:
        return RunRecord.load(run_dir), False
    except NewerRecordError as error:
        raise _unreadable(run_dir, str(error)) from error
    except _DAMAGED as error:
        missing = isinstance(error, FileNotFoundError)
        problem = f"{RECORD_FILE} is {'missing' if missing else f'damaged ({error})'}"
    except OSError as error:
        raise _unreadable(run_dir, error.strerror or str(error)) from error
    journal = Journal(run_dir)
    try:
        return fold(journal.events()), True
    except (OSError, ValueError, JournalError) as error:
        why = error.what if isinstance(error, JournalError) else str(error)
        if not journal.path.exists():
            why = "it is missing"
        problem += f"; {journal.path.name} does not replace it: {why}"
        raise _unreadable(run_dir, problem) from error


def _unreadable(run_dir: Path, problem: str) -> WorkspaceError:
    pipeline = run_dir.parents[1].name
    return WorkspaceError(
        f"the record of run {run_dir.name} cannot be read",
        where=run_dir / RECORD_FILE,
        actual=problem,
        hint=f"start a new run: sluice run {pipeline}   (cached nodes are skipped)",
    )
