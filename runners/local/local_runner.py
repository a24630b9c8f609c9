"""``LocalRunner``: a parallel, resumable replacement of TFX's LocalDagRunner.

``LocalRunner().run(pipeline)`` runs any TFX pipeline whose metadata is in SQLite.
Nested pipelines are not supported.
"""

from __future__ import annotations

import atexit
import os
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from tfx.dsl.compiler import compiler, constants
from tfx.orchestration.pipeline import Pipeline
from tfx.orchestration.portable import runtime_parameter_utils, tfx_runner
from tfx.proto.orchestration import pipeline_pb2

from runners.engine import MemoryLimits, Plan
from runners.local.execute import execute
from runners.local.graph_file import IR_FILE, GraphFile
from runners.local.job_environment import JobEnvironment
from runners.local.job_result import PREPARE, read_exception
from runners.local.prepare_job import connection_of, read_ir
from runners.local.processes.job import INSIDE_JOB
from runners.local.processes.process_pool import PRELOADED, ProcessPool, can_fork
from runners.local.run_result import NodeResult, RunResult
from runners.local.scheduler import RunCallbacks
from runners.local.stop_request import StopRequest
from runners.local.write_report import write_report
from sluice.errors import (
    DataError,
    ExitCode,
    LockedError,
    NodeError,
    ServingError,
    SluiceError,
    UsageError,
    bounded,
)
from sluice.machine_resources import usable_cores
from sluice.project import check_imports
from sluice.record.events import RunResumed, RunStarted
from sluice.record.recorder import Recorder
from sluice.record.run_record import RunRecord
from sluice.retries import Retries
from sluice.storage import atomic
from sluice.workspace import new_run_id

_KINDS: dict[int, type[SluiceError]] = {
    kind.exit_code: kind for kind in (UsageError, DataError, ServingError)
}
# The only packages of ours that foreign nodes import: the user's own packages may have
# any other name.
_NEEDED = ("runners", "serving", "sluice")
# The zygotes kept for the next run of this process, by their settings.
_KEPT: dict[tuple[Any, ...], ProcessPool] = {}


class LocalRunner(tfx_runner.IrBasedRunner):
    """Runs TFX pipelines on this machine, each node in its own process."""

    def __init__(
        self,
        *,
        workers: int | None = None,
        runs_dir: str | Path | None = None,
        retries: Retries | None = None,
        memory: MemoryLimits | None = None,
        process_pool: ProcessPool | None = None,
    ) -> None:
        """Sets how pipelines are run.

        Args:
          workers: the maximum number of nodes that run in parallel; None for one per
            core.
          runs_dir: the parent of the runs' folders (logs, journal); None for ``runs/``
            beside the metadata file.
          retries: of transient failures; None for none.
          memory: limits per node; None for no limit.
          process_pool: starts the nodes' processes; None to fork this process, or if it
            cannot be forked (it has threads, or TensorFlow has opened its devices) for
            a zygote that imports TFX (10 to 20 seconds) and is kept for later runs.
        """
        self._workers = workers or usable_cores()
        self._runs_dir = Path(runs_dir) if runs_dir else None
        self._retries = retries or Retries()
        self._memory = memory or MemoryLimits()
        self._process_pool = process_pool

    def run(
        self, pipeline: Pipeline, run_options: Any | None = None, **kwargs: Any
    ) -> RunResult:
        """Compiles a pipeline and runs it; see ``run_with_ir`` for the rest.

        A ``module_file`` is imported in place: TFX would build a wheel from it, which
        needs pip, and install that for every node.

        Args:
          pipeline: any TFX pipeline.
          run_options: ``tfx.orchestration.pipeline.RunOptions``, for a part of it.
          **kwargs: as for ``run_with_ir``.
        """
        options = None
        if run_options is not None:
            options = pipeline_pb2.RunOptions()
            partial = options.partial_run
            partial.from_nodes.extend(run_options.from_nodes or [])
            partial.to_nodes.extend(run_options.to_nodes or [])
            if run_options.base_pipeline_run_id is not None:
                base = partial.snapshot_settings.base_pipeline_run_strategy
                base.base_run_id = run_options.base_pipeline_run_id
        return self.run_with_ir(
            compiler.Compiler().compile(pipeline), options, **kwargs
        )

    def run_with_ir(
        self,
        pipeline: Any,
        run_options: Any | None = None,
        *,
        run_id: str | None = None,
        on_event: Callable[[dict[str, Any]], None] | None = None,
        **kwargs: Any,
    ) -> RunResult:
        """Runs a compiled pipeline; ``run`` compiles one and calls this.

        Args:
          pipeline: the IR.
          run_options: the selected part of the graph, as in TFX.
          run_id: of the run; the id of an earlier run resumes it.
          on_event: called with each event in the journal's form, see
            ``docs/run_record.md``.
          **kwargs: not used; part of TFX's interface.

        Returns:
          The result of each node; none has failed.

        Raises:
          NodeError: a node has failed; nodes that do not depend on it have run. The
            class is DataError, UsageError or ServingError if the node raised one. The
            node's exception is the ``__cause__``, None if the node was killed, and the
            traceback of its process is the cause of that.
          UsageError: the pipeline cannot be run here, or differs from that of the
            resumed run.
          LockedError: another process executes this run.
          KeyboardInterrupt: the run was interrupted.
        """
        if INSIDE_JOB in os.environ:
            raise UsageError(
                "a pipeline was started while a node's process was importing the "
                "script",
                where=getattr(sys.modules["__main__"], "__file__", None),
                hint='put the call to run() under: if __name__ == "__main__":',
            )
        check_imports(_NEEDED)
        run_dir = self._runs_folder(pipeline) / (run_id or new_run_id())
        run_dir.mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            try:
                held = atomic.lock(run_dir / ".lock", wait=False)
                lock = stack.enter_context(held)
            except BlockingIOError as error:
                raise LockedError(
                    "this run is in progress in another process",
                    where=run_dir,
                    hint="wait for it to end, or use another run_id",
                ) from error
            plan = self._plan(pipeline, run_options, run_dir)
            name = pipeline.pipeline_info.id
            return self._execute(plan, name, on_event or (lambda event: None), lock)

    def _plan(self, pipeline: Any, run_options: Any | None, run_dir: Path) -> Plan:
        resumed = GraphFile.load(run_dir) is not None
        if resumed:
            _check_same(pipeline, run_dir)
        else:
            atomic.write_bytes(run_dir / IR_FILE, pipeline.SerializeToString())
        partial = run_options.partial_run if run_options else None
        return Plan(
            run_dir=run_dir,
            workers=self._workers,
            from_nodes=tuple(partial.from_nodes) if partial else (),
            to_nodes=tuple(partial.to_nodes) if partial else (),
            base_run_id=_base_run_id(partial),
            retries=self._retries,
            memory=self._memory,
            resumed=resumed,
        )

    def _execute(
        self,
        plan: Plan,
        pipeline_name: str,
        on_event: Callable[[dict[str, Any]], None],
        lock: int,
    ) -> RunResult:
        recorder = Recorder(
            plan.run_dir, lambda event, record: on_event(event.to_dict())
        )
        recorder.apply(_beginning(plan, pipeline_name))
        stop = StopRequest()
        callbacks = RunCallbacks(
            recorder.apply, recorder.show_progress, recorder.tick, stop
        )
        log = plan.run_dir / "logs" / "start.log"
        with stop.listen(), self._processes(log, lock) as process_pool:
            try:
                result = execute(plan, process_pool, callbacks, _job_environment())
                recorder.end(stop.exit_code, stop.reason)
            except SluiceError as error:
                recorder.stop(error)
                raise
            finally:
                write_report(recorder)
            if stop.signal is not None:
                raise KeyboardInterrupt(stop.reason)
        if result is None:
            raise _as_error(recorder.record, plan.run_dir)
        if failed := [node for node in result.nodes if node.error]:
            raise _failure(failed, plan.run_dir)
        return result

    @contextmanager
    def _processes(self, log: Path, lock: int) -> Iterator[ProcessPool]:
        """Yields the process pool of one run."""
        if self._process_pool is not None:
            yield self._process_pool
            return
        modules, cwd = _modules(), Path.cwd()
        made_with = (os.getpid(), cwd, modules)
        process_pool = _KEPT.pop(made_with, None)
        if process_pool and not process_pool.is_current:
            process_pool.close()
            process_pool = None
        if process_pool is None:
            process_pool = ProcessPool(cwd=cwd, modules=modules, from_here=True)
        with ExitStack() as stack:
            stack.enter_context(process_pool)
            process_pool.belong_to(log, [lock])
            yield process_pool
            if not can_fork() and process_pool.ready:
                # If the zygote is lost by now it is closed; the run has succeeded.
                with suppress(NodeError):
                    process_pool.release()
                    _close_kept()
                    _KEPT[made_with] = process_pool
                    stack.pop_all()

    def _runs_folder(self, pipeline: Any) -> Path:
        if self._runs_dir is not None:
            return self._runs_dir
        connection = connection_of(pipeline)
        uri = getattr(connection, "sqlite", None) and connection.sqlite.filename_uri
        if not uri:
            raise UsageError(
                "the pipeline's metadata is not in an SQLite file",
                where=pipeline.pipeline_info.id,
                hint="name a folder for the runs: LocalRunner(runs_dir=...)",
            )
        return Path(uri).resolve().parent / "runs"


def _job_environment() -> JobEnvironment:
    main = sys.modules["__main__"]
    main_path = getattr(main, "__file__", None)
    name = getattr(main.__spec__, "name", "__main__")
    return JobEnvironment(
        python_path=tuple(os.path.abspath(entry) for entry in sys.path),
        main_path=os.path.abspath(main_path) if main_path else None,
        # multiprocessing.spawn does not import a package's __main__ either.
        main_module=None if name.endswith("__main__") else name,
        arguments=tuple(sys.argv),
    )


def _modules() -> tuple[str, ...]:
    """Returns what the zygote imports: TFX's public API if the caller uses it."""
    return (*PRELOADED, "tfx.v1") if "tfx.v1" in sys.modules else PRELOADED


def _check_same(pipeline: Any, run_dir: Path) -> None:
    """Raises a ``UsageError`` if the pipeline differs from that of the resumed run."""
    before = _nodes_of(read_ir(run_dir), run_dir.name)
    now = _nodes_of(pipeline, run_dir.name)
    changed = [name for name in {**before, **now} if before.get(name) != now.get(name)]
    if changed:
        raise UsageError(
            f"run {run_dir.name} cannot be resumed: the pipeline has changed since",
            where=pipeline.pipeline_info.id,
            actual="changed: " + ", ".join(bounded(changed)),
            hint="start a new run; with the cache on, unchanged nodes are skipped",
        )


def _nodes_of(pipeline: Any, run_id: str) -> dict[str, bytes]:
    """Returns each node's proto, without the marks of a partial run."""
    nodes = pipeline_pb2.Pipeline(nodes=pipeline.nodes)
    runtime_parameter_utils.substitute_runtime_parameter(
        nodes, {constants.PIPELINE_RUN_ID_PARAMETER_NAME: run_id}
    )
    found = {}
    for node in nodes.nodes:
        node.pipeline_node.execution_options.ClearField("partial_run_option")
        text = node.SerializeToString(deterministic=True)
        found[node.pipeline_node.node_info.id] = text
    return found


def _base_run_id(partial: Any | None) -> str | None:
    if partial is None:
        return None
    strategy = partial.snapshot_settings.base_pipeline_run_strategy
    return strategy.base_run_id or None


@atexit.register
def _close_kept() -> None:
    """Ends the kept zygotes, unless this is a fork of their owner."""
    while _KEPT:
        (pid, *_), process_pool = _KEPT.popitem()
        if pid == os.getpid():
            process_pool.close()


def _failure(failed: Sequence[NodeResult], run_dir: Path) -> SluiceError:
    """Returns the first node's failure as an error that names the other nodes."""
    lines: list[str] = []
    for node in failed[:1]:
        assert node.error
        lines += [node.error.message, *(f"  | {line}" for line in node.error.log_tail)]
    if others := [node.node for node in failed[1:]]:
        lines.append("  as well:  " + ", ".join(bounded(others)))
    lines.append(f"  log:      {run_dir / 'logs' / failed[0].node}.log")
    code = failed[0].error.exit_code if failed[0].error else ExitCode.NODE
    error = _KINDS.get(code, NodeError).from_text("\n".join(lines))
    error.__cause__ = read_exception(run_dir, failed[0].node)
    return error


def _beginning(plan: Plan, pipeline: str) -> RunStarted | RunResumed:
    command = shlex.join(["python", *sys.argv])
    if plan.resumed:
        return RunResumed(command=command, workers=plan.workers, resume_command=None)
    return RunStarted(
        run_id=plan.run_dir.name,
        pipeline=pipeline,
        command=command,
        destination="",
        config={},
        workers=plan.workers,
        use_cache=plan.use_cache,
        forced=(),
        from_nodes=plan.from_nodes,
        to_nodes=plan.to_nodes,
        accept_data=None,
        resume_command=None,
    )


def _as_error(record: RunRecord, run_dir: Path) -> SluiceError:
    assert record.error is not None and record.exit_code is not None
    error = _KINDS.get(record.exit_code, NodeError).from_text(record.error.message)
    error.__cause__ = read_exception(run_dir, PREPARE)
    return error
