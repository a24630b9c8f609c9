"""Operations: run the nodes of one run one by one, each in its own process.

For schedulers that call a process per node, such as Airflow::

    run = begin_run(RunRequest(name="digits"))            # the first task
    run_node(SharedRun(run.workspace, run.run_id), node)  # a task per node
    end_run(SharedRun(run.workspace, run.run_id))         # the last task

No process needs to stay between the calls. The workspace stays locked until the run is
ended, cancelled or resumed, or no call has touched it for ``silent_s``.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, cast

from runners.engine import Engine, NodeEngine, Observer, Plan
from runners.local.write_report import write_report
from runners.operations.complete_killed_runs import record_killed_nodes
from runners.operations.find_run import RESUMABLE
from runners.operations.lock_workspace import lock_workspace, prepare_store
from runners.operations.prepared_run import (
    PreparedRun,
    load_prepared_run,
    record_inputs,
    require_unchanged_inputs,
)
from runners.operations.run import (
    RunRequest,
    begin_record,
    check_request,
    choose_spans_after_wait,
)
from runners.operations.run_lifecycle import engine_or_local, finish_run, make_plan
from runners.operations.shared_run import (
    SharedRun,
    close_cancelled_run,
    end_cancelled_run,
    is_cancelled,
    node_lock,
)
from sluice.errors import (
    ExitCode,
    LockedError,
    NodeError,
    SluiceError,
    UsageError,
    unknown_node,
)
from sluice.record.events import Event
from sluice.record.journal import Journal
from sluice.record.load_record import load_record
from sluice.record.recorder import Recorder
from sluice.record.run_record import RECORD_FILE, NodeRecord, RunRecord
from sluice.run_lock import RunLock, cannot_join, workspace_command
from sluice.workspace import Workspace, private_umask

SILENT_S = 6 * 3600.0
_RUN_ID = re.compile(r"\d{8}T\d{6}Z-[a-z0-9]+")


class _TouchLock(Observer):
    """Forwards to another observer; touches the lock of a shared run at each tick."""

    def __init__(self, observer: Observer, lock: RunLock) -> None:
        self._observer, self._lock = observer, lock

    def on_event(self, event: Event, record: RunRecord) -> None:
        self._observer.on_event(event, record)

    def on_progress(self, node: str, facts: dict[str, Any]) -> None:
        self._observer.on_progress(node, facts)

    def on_tick(self) -> None:
        self._lock.touch()
        self._observer.on_tick()


def begin_run(
    request: RunRequest,
    observer: Observer | None = None,
    engine: Engine | None = None,
    *,
    run_id: str | None = None,
    silent_s: float = SILENT_S,
) -> SharedRun:
    """Begins a shared run and compiles its graph; runs no node.

    A scheduler may call it again with the same ``run_id``, as Airflow does after the
    task was killed: a run that is shared is returned as it is, and one of which no node
    was started is begun again.

    Args:
      request: what to run.
      observer: of the run; None for none.
      engine: compiles the graph; None for a local one.
      run_id: the id, in the form of ``sluice.workspace.new_run_id`` and later than
        those of all other runs; None for a new one.
      silent_s: seconds without a call after which another run may begin.

    Raises:
      UsageError: the request, the config, the data or the graph is wrong; the engine
        cannot run nodes one by one; the run was begun before and cannot be begun again.
      LockedError: another run of the pipeline is in progress.
      WorkspaceError: the workspace is damaged, or its disk is full.
    """
    observer = observer or Observer()
    prepared = check_request(request, observer)
    config, workspace = prepared.config, prepared.workspace
    if run_id is not None:
        with suppress(UsageError, LockedError), workspace.join(run_id):
            return _shared_run(workspace, run_id)
    with ExitStack() as stack:
        chosen = stack.enter_context(_node_engine(engine))
        chosen.prewarm(config.root)
        stack.enter_context(private_umask(config.private))
        locking = lock_workspace(workspace, request.command, request.wait, observer)
        locked = stack.enter_context(locking)
        if run_id is not None:
            _delete_unstarted_run(workspace, run_id)
        prepared = choose_spans_after_wait(request, prepared)
        prepare_store(prepared.serving_dir, config, workspace, request.to_nodes)
        recorder = begin_record(request, prepared, locked, observer, run_id=run_id)
        try:
            record_inputs(recorder, prepared)
        except SluiceError as error:
            recorder.stop(error)
            write_report(recorder)
            raise
        locks = (locked.lock.descriptor,)
        workers = recorder.run_started.workers
        plan = make_plan(recorder, prepared, workers=workers, locks=locks)
        record = chosen.prepare(plan, observer)
        if record.status != "running":
            recorder.refresh()
            write_report(recorder)
            raise _as_error(record)
        locked.lock.share(record.run_id, request.command, silent_s)
    return _shared_run(workspace, record.run_id)


def run_node(
    run: SharedRun,
    node: str,
    observer: Observer | None = None,
    engine: Engine | None = None,
) -> NodeRecord:
    """Runs one node of a shared run; several may run at once, each in its process.

    A node that has finished is not run again; one that has failed, was killed or
    interrupted is. A node that others have stopped, such as a gate, is recorded as such
    and not started.

    Returns:
      The node's record: ``state``, ``reason``, and ``outputs``.

    Raises:
      UsageError: the run is not shared or has no such node; an upstream node has not
        finished; code, schema, data or packages have changed since the run began; the
        engine cannot run nodes one by one.
      LockedError: another process runs this node.
      NodeError: the process that starts the node has ended.
    """
    observer = observer or Observer()
    workspace = Workspace(run.workspace)
    try:
        with workspace.join(run.run_id) as lock:
            recorder = Recorder(run.run_dir, observer.on_event)
            names = [item.id for item in recorder.record.nodes]
            if node not in names:
                raise unknown_node(node, names, recorder.record.pipeline)
            with node_lock(run, node) as held:
                return _run_locked(run, node, recorder, (lock, held), observer, engine)
    finally:
        if is_cancelled(run.run_dir):
            # The last process of a cancelled run closes its record.
            end_cancelled_run(workspace, run.run_id)


def _run_locked(
    run: SharedRun,
    node: str,
    recorder: Recorder,
    locks: tuple[RunLock, int],
    observer: Observer,
    engine: Engine | None,
) -> NodeRecord:
    """Runs a node whose lock is held, unless it has finished."""
    workspace, (lock, held) = Workspace(run.workspace), locks
    if is_cancelled(run.run_dir):
        raise cannot_join(run.run_id, workspace.lock_file)
    # Another process may have run it until now.
    recorder.refresh()
    record_killed_nodes(recorder, node)
    if _has_finished(recorder.record.node(node)):
        return recorder.record.node(node)
    with _continued(workspace, recorder, lock.descriptor, held) as (prepared, plan):
        inputs, root = prepared.read_inputs(), workspace.root
        require_unchanged_inputs(recorder, inputs, workspace_command("run", root))
        with _node_engine(engine) as chosen:
            found = chosen.run_node(plan, node, _TouchLock(observer, lock))
    if found is None:
        raise _upstream_unfinished(recorder.refresh(), node)
    return found


def end_run(
    run: SharedRun,
    observer: Observer | None = None,
    engine: Engine | None = None,
) -> RunRecord:
    """Ends a shared run: its record gets a status and an exit code.

    Nodes that others have stopped are recorded as such. If others are left to run, the
    run has failed and can be resumed. A run that has ended already stays as it is.

    Returns:
      The record, as ``run`` returns it.

    Raises:
      UsageError: its config is gone, or the engine cannot run nodes one by one.
      LockedError: some of its nodes still run, or another run has begun since.
    """
    observer = observer or Observer()
    workspace = Workspace(run.workspace)
    recorder = Recorder(run.run_dir, observer.on_event)
    record = recorder.record
    if record.status != "running":
        return record
    with workspace.exclusive(record.command, brief=True, end_shared=run.run_id) as lock:
        if recorder.refresh().status != "running":
            # Another process has ended it meanwhile.
            return recorder.record
        if is_cancelled(run.run_dir):
            close_cancelled_run(recorder)
            return recorder.record
        with _continued(workspace, recorder, lock.descriptor) as (prepared, plan):
            record_killed_nodes(recorder, *(item.id for item in record.nodes))
            with _node_engine(engine) as chosen:
                chosen.end_run(plan, observer)
            finish_run(recorder, prepared)
        return recorder.record


@contextmanager
def _node_engine(engine: Engine | None) -> Iterator[NodeEngine]:
    """Yields the engine, or a local one; raises if it cannot run single nodes."""
    with engine_or_local(engine) as chosen:
        if not chosen.capabilities.run_node:
            raise UsageError(f"{type(chosen).__name__} cannot run nodes one by one")
        yield cast(NodeEngine, chosen)


@contextmanager
def _continued(
    workspace: Workspace, recorder: Recorder, *locks: int
) -> Iterator[tuple[PreparedRun, Plan]]:
    """Yields the stored config and spans of a shared run, and its plan."""
    prepared = load_prepared_run(workspace, recorder)
    with private_umask(prepared.config.private):
        plan = make_plan(recorder, prepared, workers=1, locks=locks, resumed=True)
        yield prepared, plan


def _shared_run(workspace: Workspace, run_id: str) -> SharedRun:
    record = load_record(workspace.run_dir(run_id))
    return SharedRun(workspace.root, run_id, tuple(node.id for node in record.nodes))


def _delete_unstarted_run(workspace: Workspace, run_id: str) -> None:
    """Makes way for a run with an id: deletes one of which no node was started."""
    others = (path.name for path in workspace.runs.iterdir() if path.name != run_id)
    latest = max(others, default="")
    if not _RUN_ID.fullmatch(run_id) or run_id <= latest:
        raise UsageError(
            f"{run_id!r} is not a valid id for a new run",
            where=workspace.runs,
            expected="YYYYMMDDTHHMMSSZ and a suffix, such as 20260131T120000Z-a1b2, "
            "later than that of every other run",
            actual=f"the last one is {latest}" if latest else None,
        )
    run_dir = workspace.run_dir(run_id)
    if (run_dir / RECORD_FILE).exists() or Journal(run_dir).events():
        record = load_record(run_dir)
        started = any(node.attempts for node in record.nodes)
        if started or record.status not in RESUMABLE or is_cancelled(run_dir):
            raise UsageError(
                f"run {run_id} cannot be begun again",
                where=run_dir,
                expected="a run of which no node was started",
                actual=f"it was begun before, and has {record.status}",
                hint=workspace_command("resume", workspace.root)
                if record.status in RESUMABLE
                else None,
            )
    if run_dir.exists():
        shutil.rmtree(run_dir)


def _has_finished(node: NodeRecord) -> bool:
    """Whether a node need not run again; the Pusher has run where it is blocked."""
    pushed_nothing = node.state == "blocked" and bool(node.outputs)
    return node.state in ("ran", "cached", "skipped") or pushed_nothing


def _upstream_unfinished(record: RunRecord, node: str) -> UsageError:
    upstream = (record.node(name) for name in record.node(node).upstream)
    waits_for = [item.id for item in upstream if not _has_finished(item)]
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
