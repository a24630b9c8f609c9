"""Completes the records of killed runs, and rewrites damaged ``run.json`` files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from runners.local.job_result import read_result
from sluice.errors import LockedError, SluiceError, WorkspaceError
from sluice.record.events import Event, Note
from sluice.record.fold import Fold
from sluice.record.journal import JournalError
from sluice.record.load_record import load_or_fold
from sluice.record.recorder import Recorder
from sluice.record.run_record import ErrorRecord, RunRecord
from sluice.storage.storage_errors import explain_full_disk
from sluice.workspace import Workspace

_INCOMPLETE = (OSError, ValueError, KeyError, TypeError, SluiceError)
_KILLED = "was killed"
_COMMAND = "complete the record of a killed run"


def complete_killed_runs(workspace: Workspace, *, locked: bool = False) -> list[str]:
    """Brings the record of every killed run up to what really happened.

    Nodes that had finished keep what they made; the others are interrupted, and their
    executions in ML Metadata are closed. A ``run.json`` that is missing or damaged is
    written again from the journal. Every command that reads records calls this first.

    Args:
      workspace: whose runs are looked at.
      locked: whether the caller holds the run lock.

    Returns:
      The ids of the killed runs; none while a run is in progress.

    Raises:
      WorkspaceError: a record or the metadata cannot be written: the disk is full.
    """
    if not _incomplete(workspace):
        return []
    with explain_full_disk(workspace.root):
        if locked:
            return _complete_all(workspace)
        try:
            with workspace.exclusive(_COMMAND, brief=True) as lock:
                return _complete_all(workspace, lock.note)
        except (LockedError, WorkspaceError):
            # Somebody else's run, or somebody else's workspace.
            return []


def _incomplete(workspace: Workspace) -> dict[str, RunRecord]:
    """Returns the records that are open or not in ``run.json``, by run id."""
    found = {}
    for run_id in workspace.run_ids():
        with suppress(WorkspaceError):
            record, is_folded = load_or_fold(workspace.run_dir(run_id))
            if is_folded or record.status == "running":
                found[run_id] = record
    return found


def _complete_all(workspace: Workspace, note: str | None = None) -> list[str]:
    killed = []
    for run_id, record in _incomplete(workspace).items():
        run_dir = workspace.run_dir(run_id)
        if record.status == "running":
            _complete(run_dir, note)
            killed.append(run_id)
        else:
            record.save(run_dir)
    return killed


def _complete(run_dir: Path, note: str | None) -> None:
    try:
        recorder = Recorder(run_dir)
        record = recorder.record
    except JournalError as error:
        _close_unread(run_dir, error)
        return
    if note:
        recorder.apply(Note(text=note))
    try:
        for event in unrecorded_ends(record, run_dir):
            recorder.apply(event)
    except _INCOMPLETE as error:
        # What is gone must not keep the next run from beginning.
        reason = str(error).partition("\n")[0]
        recorder.apply(Note(text=f"the record is incomplete: {reason}"))
    recorder.end_killed(_KILLED)


def _close_unread(run_dir: Path, error: JournalError) -> None:
    """Ends the record of a run where nothing can be taken from its journal.

    Such as that of a run which another version of Sluice has begun. How its nodes have
    ended is taken from ML Metadata.
    """
    record = RunRecord.load(run_dir)
    folded = Fold(record)
    with suppress(*_INCOMPLETE):
        # It also closes the executions of the nodes that were running.
        for event in unrecorded_ends(record, run_dir):
            folded.apply(event)
    for node in record.nodes:
        if node.state == "running":
            node.state, node.reason, node.progress = "interrupted", _KILLED, None
    record.status, record.error = "interrupted", ErrorRecord(None, error.what, None)
    record.save(run_dir)


def unrecorded_ends(
    record: RunRecord, run_dir: Path, only: str | None = None
) -> Iterator[Event]:
    """Yields how killed nodes had ended before the run could write it down.

    Executions of theirs that are open in ML Metadata are closed.

    Args:
      record: of the run.
      run_dir: of the run.
      only: the one node that is looked at; None for all that the record has as running.
    """
    # ML Metadata's client, which is rarely needed here.
    from runners.local.graph_file import GraphFile
    from runners.local.node_event import node_finished
    from runners.local.read_node_result import read_node_result
    from runners.local.scheduler import result_of
    from runners.metadata.read_metadata import open_store

    running = [
        node.id
        for node in record.nodes
        if node.state == "running" and only in (None, node.id)
    ]
    graph = GraphFile.load(run_dir)
    if graph is None or not running:
        return
    for node in graph.nodes:
        if node.id not in running:
            continue
        facts = read_result(run_dir, node.id) or {}
        with open_store(graph.connection_config()) as store:
            result = read_node_result(store, node, 0.0, None, stopped=True)
        if facts and facts["state"] == "failed":
            result = result_of(facts)
        if result.state in ("ran", "cached", "failed"):
            yield node_finished(run_dir, node, result, facts)
