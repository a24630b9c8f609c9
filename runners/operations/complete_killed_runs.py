"""Completes the records of killed runs, and rewrites damaged ``run.json`` files."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from runners.cloud.submitted_job import is_service_run
from runners.local.unrecorded_ends import unrecorded_ends
from runners.local.write_report import write_report
from sluice.errors import LockedError, SluiceError, WorkspaceError
from sluice.record.events import Note
from sluice.record.fold import Fold
from sluice.record.journal import JournalError
from sluice.record.load_record import load_or_fold
from sluice.record.recorder import Recorder
from sluice.record.run_record import ErrorRecord, RunRecord
from sluice.run_lock import RunLock
from sluice.storage.storage_errors import explain_full_disk
from sluice.workspace import Workspace

_INCOMPLETE = (OSError, ValueError, KeyError, TypeError, SluiceError)
_KILLED = "was killed"
_COMMAND = "complete the record of a killed run"


def complete_killed_runs(
    workspace: Workspace, lock: RunLock | None = None
) -> list[str]:
    """Records how the nodes of every killed run ended, and ends its record.

    Nodes that had finished keep their outputs; the others are interrupted, and their
    executions in ML Metadata are closed. A ``run.json`` that is missing or damaged is
    written again from the journal. Every command that reads records calls this first.

    ``lock`` is the run lock, if the caller holds it.

    Returns:
      The ids of the killed runs; none while a run is in progress.

    Raises:
      WorkspaceError: a record or the metadata cannot be written: the disk is full.
    """
    if not _incomplete(workspace):
        return []
    with explain_full_disk(workspace.root):
        if lock:
            return _complete_all(workspace, lock)
        try:
            with workspace.exclusive(_COMMAND, brief=True) as own:
                return _complete_all(workspace, own)
        except (LockedError, WorkspaceError):
            # A run is in progress, or the workspace may only be read.
            return []


def record_killed_nodes(recorder: Recorder, *nodes: str) -> None:
    """Records how nodes ended whose process was killed before it could do so."""
    for node in nodes:
        if recorder.record.node(node).state == "running":
            for event in unrecorded_ends(recorder.record, recorder.run_dir, node):
                recorder.apply(event)


def _incomplete(workspace: Workspace) -> dict[str, RunRecord]:
    """Returns, by run id, the records that are not closed or not in ``run.json``."""
    found = {}
    for run_id in workspace.run_ids():
        with suppress(WorkspaceError):
            run_dir = workspace.run_dir(run_id)
            record, is_folded = load_or_fold(run_dir)
            # That of a service goes on without a process here.
            is_open = record.status == "running" and not is_service_run(run_dir)
            if is_folded or is_open:
                found[run_id] = record
    return found


def _complete_all(workspace: Workspace, lock: RunLock) -> list[str]:
    killed = []
    for run_id, record in _incomplete(workspace).items():
        run_dir = workspace.run_dir(run_id)
        if record.status == "running" and not is_service_run(run_dir):
            _complete(run_dir, lock.note)
            killed.append(run_id)
        else:
            record.save(run_dir)
    return killed


def _complete(run_dir: Path, note: str | None) -> None:
    try:
        recorder = Recorder(run_dir)
        record = recorder.record
    except JournalError as error:
        _complete_without_journal(run_dir, error)
        return
    if note:
        recorder.apply(Note(text=note))
    try:
        record_killed_nodes(recorder, *(node.id for node in record.nodes))
    except _INCOMPLETE as error:
        # A damaged run must not keep the next one from beginning.
        reason = str(error).partition("\n")[0]
        recorder.apply(Note(text=f"the record is incomplete: {reason}"))
    recorder.end_killed(_KILLED)
    write_report(recorder)


def _complete_without_journal(run_dir: Path, error: JournalError) -> None:
    """Ends the record of a run whose journal cannot be read.

    Such as one that another version of Sluice wrote. How its nodes ended is read from
    ML Metadata.
    """
    record = RunRecord.load(run_dir)
    folded = Fold(record)
    with suppress(*_INCOMPLETE):
        for event in unrecorded_ends(record, run_dir):
            folded.apply(event)
    for node in record.nodes:
        if node.state == "running":
            node.state, node.reason, node.progress = "interrupted", _KILLED, None
    record.status, record.error = "interrupted", ErrorRecord(None, error.what, None)
    record.save(run_dir)
