"""Operations: run the nodes of one run one by one, each in its own process.

For schedulers that call a process per node, such as Airflow::

    run = begin_run(RunRequest(name="digits"))            # the first task
    run_node(SharedRun(run.workspace, run.run_id), node)  # a task per node
    end_run(SharedRun(run.workspace, run.run_id))         # the last task

Between the calls no process lives. The workspace is locked all the same, until the run
is ended, cancelled or resumed, or nothing was heard of it for ``silent_s``.
"""

from __future__ import annotations

import re
from contextlib import ExitStack, suppress

from runners.cache.run_inputs import RunInputs
from runners.engine import Observer, Plan
from runners.local.engine import LocalEngine
from runners.local.execute import recorded_results
from runners.operations.lock_workspace import lock_workspace, prepare_store
from runners.operations.run import RunRequest, begin_record, check_request, choose_again
from runners.operations.run_lifecycle import (
    PreparedRun,
    check_unchanged,
    finish_run,
    load_prepared_run,
    make_plan,
    started_event,
    write_inputs,
)
from runners.operations.shared_run import (
    SharedRun,
    cancelled,
    close_cancelled,
    end_cancelled,
    node_lock,
    record_killed_nodes,
)
from sluice.errors import (
    ExitCode,
    NodeError,
    SluiceError,
    UsageError,
    unknown_node,
)
from sluice.record.load_record import load_record
from sluice.record.recorder import Recorder
from sluice.record.run_record import NodeRecord, RunRecord
from sluice.run_lock import RunLock, not_open
from sluice.workspace import Workspace, private_umask

SILENT_S = 6 * 3600.0
_RUN_ID = re.compile(r"\d{8}T\d{6}Z-[a-z0-9]+")
# These need not run again.
_DONE = ("ran", "cached", "skipped")


class _Touch(Observer):
    """Says with every tick that the run is not abandoned, and passes the rest on."""

    def __init__(self, observer: Observer, lock: RunLock) -> None:
        self.on_event = observer.on_event  # type: ignore[method-assign]
        self.on_progress = observer.on_progress  # type: ignore[method-assign]
        self._observer, self._lock = observer, lock

    def on_tick(self) -> None:
        self._lock.touch()
        self._observer.on_tick()


def begin_run(
    request: RunRequest,
    observer: Observer | None = None,
    engine: LocalEngine | None = None,
    *,
    run_id: str | None = None,
    silent_s: float = SILENT_S,
) -> SharedRun:
    """Begins a run and draws its graph; runs no node.

    Called again with the id of a run that is open, it returns that one.

    Args:
      request: what to run.
      observer: follows it; None for nobody.
      engine: draws the graph; None for a process of this machine.
      run_id: names the run, in the form of ``sluice.workspace.new_run_id`` and later
        than all others; None for a new one.
      silent_s: how long nothing may be heard of the run before another one may begin.

    Raises:
      UsageError: the request, the config, the data or the graph is wrong.
      LockedError: another run of the pipeline is in progress.
      WorkspaceError: the workspace is damaged, or its disk is full.
    """
    observer = observer or Observer()
    checked = check_request(request, observer)
    config, workspace = checked.config, checked.workspace
    if run_id is not None:
        if (workspace.run_dir(run_id) / "graph.json").exists():
            with workspace.join(run_id):
                return _shared_run(workspace, run_id)
        _check_run_id(run_id, workspace)
    with ExitStack() as stack:
        chosen = engine or stack.enter_context(LocalEngine())
        chosen.prewarm(config.root)
        stack.enter_context(private_umask(config.private))
        holding = lock_workspace(workspace, request.command, request.wait, observer)
        held = stack.enter_context(holding)
        checked = choose_again(request, checked)
        prepare_store(checked.serving_dir, config, workspace, request.to_nodes)
        recorder = begin_record(request, checked, held.notes, observer, run_id=run_id)
        try:
            write_inputs(recorder, checked, checked.read_inputs())
        except SluiceError as error:
            recorder.stop(error)
            raise
        asked, locks = started_event(recorder), (held.lock.descriptor,)
        plan = make_plan(asked, checked, workers=asked.workers, locks=locks)
        record = chosen.prepare(plan, observer)
        if record.status != "running":
            raise _as_error(record)
        held.lock.leave_open(record.run_id, request.command, silent_s)
    return _shared_run(workspace, record.run_id)


def run_node(
    run: SharedRun,
    node: str,
    observer: Observer | None = None,
    engine: LocalEngine | None = None,
) -> NodeRecord:
    """Runs one node of an open run; several may run at once, each in its process.

    A node that has finished is not run again; one that has failed, was killed or
    interrupted is. A node that is stopped by others, such as by a gate, is not started
    and recorded as such.

    Args:
      run: the run.
      node: the id of the node.
      observer: follows it; None for nobody.
      engine: starts its process; None for a process of this machine.

    Returns:
      How it ended: ``state``, ``reason``, and ``outputs``.

    Raises:
      UsageError: the run is not open or has no such node; a node that it waits for has
        not finished; code, schema, data or packages have changed since the run began.
      LockedError: another process runs this node.
      NodeError: the process that starts the node has ended by itself.
    """
    observer = observer or Observer()
    workspace = Workspace(run.workspace)
    try:
        with workspace.join(run.run_id) as lock:
            return _run_node(workspace, run, node, lock, observer, engine)
    finally:
        if cancelled(run.run_dir):
            # The last one of a run that was cancelled meanwhile closes it.
            end_cancelled(workspace, run.run_id)


def _run_node(
    workspace: Workspace,
    run: SharedRun,
    node: str,
    lock: RunLock,
    observer: Observer,
    engine: LocalEngine | None,
) -> NodeRecord:
    recorder = Recorder(run.run_dir, observer.on_event)
    names = [item.id for item in recorder.record.nodes]
    if node not in names:
        raise unknown_node(node, names, recorder.record.pipeline)
    with ExitStack() as stack:
        held = stack.enter_context(node_lock(run, node))
        if cancelled(run.run_dir):
            raise not_open(run.run_id, workspace.lock_file)
        # Another process may have run it meanwhile.
        recorder.refresh()
        record_killed_nodes(recorder, node)
        ended = recorded_results(run.run_dir).get(node)
        if ended is not None and ended.state in _DONE:
            return recorder.record.node(node)
        checked = load_prepared_run(workspace, recorder)
        stack.enter_context(private_umask(checked.config.private))
        plan = _plan(recorder, checked, lock.descriptor, held)
        inputs = checked.read_inputs()
        check_unchanged(run.run_dir, inputs, run="sluice run", run_again="sluice run")
        chosen = engine or stack.enter_context(LocalEngine())
        found = chosen.run_node(plan, node, _Touch(observer, lock))
        if found is None:
            raise _waits(recorder.refresh(), node)
        return found


def end_run(run: SharedRun, observer: Observer | None = None) -> RunRecord:
    """Ends an open run: its record gets a status and an exit code.

    Nodes that were not run since others have stopped them are recorded as such. Where
    others are left, the run counts as failed, and can be resumed. A run that has ended
    already stays as it is.

    Args:
      run: the run.
      observer: follows it; None for nobody.

    Returns:
      The record, as ``run`` returns it.

    Raises:
      UsageError: what it needs is gone, such as its config.
      LockedError: some of its nodes still run, or another run has begun since.
    """
    observer = observer or Observer()
    workspace = Workspace(run.workspace)
    recorder = Recorder(run.run_dir, observer.on_event)
    record = recorder.record
    if record.status != "running":
        return record
    with ExitStack() as stack:
        held = workspace.exclusive(record.command, brief=True, end_shared=run.run_id)
        lock = stack.enter_context(held)
        if recorder.refresh().status != "running":
            # Another process was quicker.
            return recorder.record
        if cancelled(run.run_dir):
            close_cancelled(recorder)
            return recorder.record
        checked = load_prepared_run(workspace, recorder)
        stack.enter_context(private_umask(checked.config.private))
        record_killed_nodes(recorder, *(item.id for item in recorder.record.nodes))
        plan = _plan(recorder, checked, lock.descriptor)
        LocalEngine().settle(plan, observer)
        inputs: RunInputs | None = None
        with suppress(SluiceError, OSError):
            # What was edited since it began is the next run's matter.
            now = checked.read_inputs()
            check_unchanged(run.run_dir, now, run="", run_again="")
            inputs = now
        finish_run(recorder, checked, inputs)
        return recorder.record


def _shared_run(workspace: Workspace, run_id: str) -> SharedRun:
    record = load_record(workspace.run_dir(run_id))
    return SharedRun(workspace.root, run_id, tuple(node.id for node in record.nodes))


def _plan(recorder: Recorder, checked: PreparedRun, *locks: int) -> Plan:
    asked = started_event(recorder)
    return make_plan(asked, checked, workers=1, locks=locks, resumed=True)


def _check_run_id(run_id: str, workspace: Workspace) -> None:
    latest = max((path.name for path in workspace.runs.iterdir()), default="")
    if not _RUN_ID.fullmatch(run_id) or run_id <= latest:
        raise UsageError(
            f"{run_id!r} is not a valid id for a new run",
            where=workspace.runs,
            expected="YYYYMMDDTHHMMSSZ and a suffix, such as 20260131T120000Z-a1b2, "
            "later than that of every other run",
            actual=f"the last one is {latest}" if latest else None,
        )


def _waits(record: RunRecord, node: str) -> UsageError:
    upstream = record.node(node).upstream
    waits_for = [name for name in upstream if record.node(name).state not in _DONE]
    return UsageError(
        f"{node} cannot run yet: {', '.join(waits_for)} has not finished",
        where=record.run_id,
        hint=f"run {waits_for[0]} first" if waits_for else None,
    )


def _as_error(record: RunRecord) -> SluiceError:
    if record.status == "interrupted":
        raise KeyboardInterrupt
    message = record.error.message if record.error else f"the run {record.status}"
    usage = record.exit_code == ExitCode.USAGE
    return (UsageError if usage else NodeError).from_text(message)
