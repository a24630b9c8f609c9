"""Ends the records of runs that were killed before they could do so themselves."""

from __future__ import annotations

from pathlib import Path

from runners.local.job_result import read_result
from runners.local.record_run import RecordRun
from sluice.errors import LockedError, SluiceError, WorkspaceError
from sluice.record.journal import Journal
from sluice.record.run_record import RunRecord
from sluice.storage.storage_errors import explain_full_disk
from sluice.workspace import Workspace

_INCOMPLETE = (OSError, ValueError, KeyError, TypeError, SluiceError)
_KILLED = "was killed"
_COMMAND = "complete the record of a killed run"


def complete_killed_runs(workspace: Workspace, *, locked: bool = False) -> list[str]:
    """Brings the record of every killed run up to what really happened.

    Nodes that had finished keep what they made; the others are interrupted, and their
    executions in ML Metadata are closed.

    Args:
      workspace: whose runs are looked at.
      locked: whether the caller holds the run lock.

    Returns:
      The ids of the runs that were completed; none while a run is in progress.

    Raises:
      WorkspaceError: a record or the metadata cannot be written: the disk is full.
    """
    if not _open_runs(workspace):
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


def _open_runs(workspace: Workspace) -> list[str]:
    return [run_id for run_id in workspace.run_ids() if _is_open(workspace, run_id)]


def _complete_all(workspace: Workspace, note: str | None = None) -> list[str]:
    run_ids = _open_runs(workspace)
    for run_id in run_ids:
        _complete(workspace.run_dir(run_id), note)
    return run_ids


def _is_open(workspace: Workspace, run_id: str) -> bool:
    try:
        return RunRecord.load(workspace.run_dir(run_id)).status == "running"
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _complete(run_dir: Path, note: str | None) -> None:
    record = RunRecord.load(run_dir)
    if note and note not in record.notes:
        record.notes.append(note)
    recorder = RecordRun(record, run_dir, Path(record.pushes[0].destination))
    events = Journal(run_dir).events()
    if any(event["event"] == "graph" for event in events):
        # The journal has it all, and tries must not be counted twice.
        record.nodes = []
    try:
        for event in events:
            recorder.replay(event)
        _read_back(recorder, run_dir)
    except _INCOMPLETE as error:
        # What is gone must not keep the next run from beginning.
        reason = str(error).partition("\n")[0]
        record.notes.append(f"the record is not whole: {reason}")
    recorder.close_killed(_KILLED)


def _read_back(recorder: RecordRun, run_dir: Path) -> None:
    """Takes in what the running nodes had done when the run was killed."""
    # ML Metadata's client, which is rarely needed here.
    from runners.local.graph_file import GraphFile
    from runners.local.read_back import read_back
    from runners.local.scheduler import result_of
    from runners.metadata.read_metadata import open_store

    running = [node.id for node in recorder.record.nodes if node.state == "running"]
    graph = GraphFile.load(run_dir)
    if graph is None or not running:
        return
    for node in graph.nodes:
        if node.id not in running:
            continue
        facts = read_result(run_dir, node.id) or {}
        with open_store(graph.connection_config()) as store:
            result = read_back(store, node, 0.0, None, stopped=True)
        if facts and facts["state"] == "failed":
            result = result_of(facts)
        if result.state in ("ran", "cached", "failed"):
            recorder.apply(result.to_event(facts))
