"""The engine of this machine: each node in a process of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from runners.engine import Capabilities, Observer, Plan
from runners.local.processes.process_pool import ProcessPool, start_method
from runners.local.stop_request import StopRequest
from sluice.errors import SluiceError, WorkspaceError
from sluice.record.events import Event
from sluice.record.recorder import Recorder
from sluice.record.run_record import RunRecord
from sluice.workspace import check_not_deleted


class LocalEngine:
    """Runs plans in processes of this machine; a context manager.

    Leaving the context ends the processes that it has started.
    """

    capabilities = Capabilities(resume=True, logs=True, cancel=True, progress=True)

    def __init__(self, process_pool: ProcessPool | None = None) -> None:
        """Starts nothing yet.

        Args:
          process_pool: where processes come from, also for other runs; whoever made it
            closes it. None for one of this engine's own.

        Raises:
          UsageError: SLUICE_START_METHOD is neither fork nor spawn.
        """
        start_method()
        self._shared = process_pool
        self._own: ProcessPool | None = None

    def __enter__(self) -> LocalEngine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the processes that this engine has started."""
        if self._own is not None:
            self._own.close()
            self._own = None

    def prewarm(self, root: Path) -> None:
        """Starts the import of TFX, in a process of its own."""
        if self._shared is None and self._own is None:
            self._own = ProcessPool(cwd=root)

    def run(self, plan: Plan, observer: Observer) -> RunRecord:
        """Runs the nodes and closes the record; see ``runners.engine.Engine``."""
        recorder = Recorder(plan.run_dir)
        try:
            self._run(plan, recorder, observer)
        except OSError as error:
            check_not_deleted(plan.run_dir / "config.json")
            raise WorkspaceError(
                "the run's record could not be written",
                where=plan.run_dir,
                actual=error.strerror or str(error),
                hint="free some space, then: sluice resume",
            ) from error
        return recorder.record

    def _run(self, plan: Plan, recorder: Recorder, observer: Observer) -> None:
        stop = StopRequest()

        def on_event(event: Event) -> None:
            recorder.apply(event)
            observer.on_event(event, recorder.record)

        def on_progress(node: str, facts: dict[str, Any]) -> None:
            recorder.show_progress(node, facts)
            observer.on_progress(node, facts)

        def on_tick() -> None:
            recorder.tick()
            observer.on_tick()

        with stop.listen(), self._processes(plan) as process_pool:
            # ML Metadata's client, which a run with nothing to do does without.
            from runners.local.execute import execute
            from runners.local.scheduler import Watch

            try:
                execute(plan, process_pool, Watch(on_event, on_progress, on_tick, stop))
                recorder.end(stop.exit_code, stop.reason)
            except SluiceError as error:
                recorder.stop(error)
            on_tick()

    @contextmanager
    def _processes(self, plan: Plan) -> Iterator[ProcessPool]:
        """Yields where the processes of a run come from; they end with it."""
        if self._shared is not None:
            yield self._shared
            return
        assert plan.project_root is not None
        self.prewarm(plan.project_root)
        assert self._own is not None
        try:
            self._own.belong_to(plan.run_dir / "logs" / "start.log", plan.locks)
            yield self._own
        finally:
            self.close()
