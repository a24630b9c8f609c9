"""The local engine: runs each node in a process of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runners.engine import Capabilities, Observer, Plan
from runners.local.processes.process_pool import ProcessPool, start_method
from runners.local.stop_request import StopRequest
from sluice.errors import NodeError, SluiceError, WorkspaceError, bounded
from sluice.record.run_record import NodeRecord, RunRecord
from sluice.run_lock import workspace_command
from sluice.workspace import check_not_deleted

if TYPE_CHECKING:
    from runners.local.scheduler import RunCallbacks
    from sluice.record.recorder import Recorder


class LocalEngine:
    """Executes plans in processes of this machine; a context manager.

    Leaving the context ends the processes that it has started.
    """

    capabilities = Capabilities(
        resume=True, run_node=True, cancel=True, this_machine=True
    )

    def __init__(self, process_pool: ProcessPool | None = None) -> None:
        """Makes an engine; starts no process.

        Args:
          process_pool: starts the processes; the caller closes it. None for one that
            the engine starts and closes.

        Raises:
          UsageError: SLUICE_START_METHOD is neither fork nor spawn.
        """
        start_method()
        self._shared = process_pool
        self._own: ProcessPool | None = None
        self._root: Path | None = None

    def __enter__(self) -> LocalEngine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the processes that this engine has started."""
        if self._own is not None:
            self._own.close()
            self._own = self._root = None

    def prewarm(self, root: Path) -> None:
        """Starts the import of TFX in another process."""
        if self._shared is None and self._own is None:
            self._own, self._root = ProcessPool(cwd=root), root

    def run(self, plan: Plan, observer: Observer) -> RunRecord:
        """Runs the nodes and closes the record; see ``Engine.run``."""
        with self._recording(plan, observer) as (recorder, process_pool, callbacks):
            from runners.local.execute import execute

            try:
                execute(plan, process_pool, callbacks)
                recorder.end(callbacks.stop.exit_code, callbacks.stop.reason)
            except SluiceError as error:
                recorder.stop(error)
            callbacks.on_tick()
        return recorder.record

    def prepare(self, plan: Plan, observer: Observer) -> RunRecord:
        """Compiles the graph; see ``NodeEngine.prepare``."""
        with self._recording(plan, observer) as (recorder, process_pool, callbacks):
            from runners.local.execute import prepare

            try:
                if prepare(plan, process_pool, callbacks) is None:
                    recorder.end(callbacks.stop.exit_code, callbacks.stop.reason)
            except SluiceError as error:
                recorder.stop(error)
        return recorder.record

    def run_node(self, plan: Plan, node: str, observer: Observer) -> NodeRecord | None:
        """Runs one node of a prepared run; see ``NodeEngine.run_node``."""
        with self._recording(plan, observer) as (recorder, process_pool, callbacks):
            from runners.local.execute import execute_node

            has_ended = execute_node(plan, node, process_pool, callbacks)
        return recorder.record.node(node) if has_ended else None

    def end_run(self, plan: Plan, observer: Observer) -> RunRecord:
        """Closes the record of a prepared run; see ``NodeEngine.end_run``."""
        from runners.local.execute import record_unreachable
        from sluice.record.events import Finished

        recorder, callbacks = self._make_callbacks(plan, observer, StopRequest())
        if left := record_unreachable(plan, callbacks):
            names = ", ".join(bounded(left))
            error = NodeError(
                f"run {plan.run_dir.name} was ended before all of its nodes had run",
                actual=f"{names} left to run",
                hint=recorder.run_started.resume_command,
            )
            recorder.stop(error)
        else:
            callbacks.on_event(Finished())
            recorder.end()
        return recorder.record

    @contextmanager
    def _recording(
        self, plan: Plan, observer: Observer
    ) -> Iterator[tuple[Recorder, ProcessPool, RunCallbacks]]:
        """Yields the recorder, the process pool and the callbacks of a run."""
        stop = StopRequest()
        try:
            with stop.listen(), self._processes(plan) as process_pool:
                recorder, callbacks = self._make_callbacks(plan, observer, stop)
                yield recorder, process_pool, callbacks
        except OSError as error:
            check_not_deleted(plan.run_dir / "config.json")
            assert plan.workspace is not None
            resume = workspace_command("resume", plan.workspace)
            raise WorkspaceError(
                "the record of the run could not be written",
                where=plan.run_dir,
                actual=error.strerror or str(error),
                hint=f"free some space, then: {resume}",
            ) from error

    def _make_callbacks(
        self, plan: Plan, observer: Observer, stop: StopRequest
    ) -> tuple[Recorder, RunCallbacks]:
        # ML Metadata's client and pydantic: not before TFX is being imported, and not
        # where there is nothing to do.
        from runners.local.scheduler import RunCallbacks
        from sluice.record.recorder import Recorder

        recorder = Recorder(plan.run_dir, observer.on_event)

        def on_progress(node: str, facts: dict[str, Any]) -> None:
            recorder.show_progress(node, facts)
            observer.on_progress(node, facts)

        def on_tick() -> None:
            recorder.tick()
            observer.on_tick()

        return recorder, RunCallbacks(recorder.apply, on_progress, on_tick, stop)

    @contextmanager
    def _processes(self, plan: Plan) -> Iterator[ProcessPool]:
        """Yields the pool that starts the processes of a run and ends them with it."""
        if self._shared is not None:
            yield self._shared
            return
        assert plan.project_root is not None
        if self._own and not (self._root == plan.project_root and self._own.is_current):
            self.close()
        self.prewarm(plan.project_root)
        assert self._own is not None
        try:
            self._own.belong_to(plan.run_dir / "logs" / "start.log", plan.locks)
            yield self._own
        except BaseException:
            self.close()
            raise
        if not self._own.ready:
            self.close()
            return
        try:
            # TFX is imported now: the next run of this engine begins at once.
            self._own.release()
        except NodeError:
            self.close()
