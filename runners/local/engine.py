"""The local engine: runs each node in a process of its own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runners.engine import Graph, Observer, Plan
from runners.local import processes
from runners.local.stop_request import StopRequest
from runners.local.write_report import prepare_report
from sluice import interrupt
from sluice.compat import prepare_environment
from sluice.errors import SluiceError
from sluice.node_environment import NodeEnvironment

if TYPE_CHECKING:
    from sluice.record.parts import NodeRecord
    from sluice.record.run_record import RunRecord


class LocalEngine:
    """Executes plans in processes of this machine."""

    def __init__(self) -> None:
        """Starts the import of TFX in another process."""
        prepare_environment()
        if not processes.can_fork():
            processes.start_server(components=True)

    def run(self, plan: Plan, record: RunRecord, observer: Observer) -> None:
        """Runs the nodes and ends the record; see ``Engine.run``."""
        from components.tfrecord_gen.input_files import SPANS_FILE
        from pipeline.config.serialize import workers_of
        from sluice import secrets
        from sluice.storage import atomic
        from sluice.storage.storage import is_remote
        from sluice.workspace import Workspace

        config = plan.run_dir / "config.json"
        secrets.remember(config.read_text(encoding="utf-8"))
        spans_file = plan.run_dir / SPANS_FILE
        atomic.write_bytes(spans_file, plan.spans.to_json())
        # Which another machine has only if it shares the storage.
        shared = [str(plan.run_dir)]
        for window in plan.spans.windows.values():
            shared += [x.path for x in window.files[:1] if not is_remote(x.path)]
        workspace = Workspace(plan.workspace)
        told = NodeEnvironment(
            spans=str(spans_file),
            file_digests=str(workspace.digests_file),
            source_files=str(workspace.sources_file),
            workers=workers_of(config),
            training_file=str(training_file(plan.run_dir)),
            shared_paths="\n".join(shared),
        )
        graph = Graph(plan.run_dir, plan.project_root, plan.workspace)
        if not processes.can_fork():
            prepare_report()
        run_nodes(
            record,
            graph,
            observer,
            cwd=plan.project_root,
            told=told,
            resumed=plan.resumed,
        )


def training_file(run_dir: Path) -> Path:
    """Returns the file that is there while a run trains on several machines."""
    return run_dir / "training.json"


def run_nodes(
    record: RunRecord,
    graph: Graph,
    observer: Observer,
    *,
    cwd: Path,
    told: NodeEnvironment,
    resumed: bool = False,
) -> dict[str | None, Any]:
    """Compiles the pipeline, runs its nodes and ends the record.

    Args:
      record: of the run.
      graph: of the run.
      observer: of the run.
      cwd: the working directory of the nodes.
      told: to the nodes' processes.
      resumed: whether the run was prepared before.

    Returns:
      What the nodes of a script's pipeline have raised, by node.

    Raises:
      WorkspaceError: the record cannot be written.
    """
    # ML Metadata's client: not before TFX is being imported.
    from runners.local.scheduler import Scheduler, progress_file

    run_dir, stop = graph.run_dir, StopRequest()
    start_log = run_dir / "logs" / "start.log"
    with stop.listen(), processes.temporary_folder() as folder:
        around = processes.Surroundings(cwd, Path(folder), told)

        def start(node: NodeRecord) -> processes.Child:
            use_cache = (
                record.options.use_cache and node.id not in record.options.forced
            )
            # Later attempts resume the training that the first one began.
            from_scratch = not use_cache and node.attempts == 1
            reports_to = str(progress_file(run_dir, node.id))
            return processes.Child(
                node.id,
                run_dir / "logs" / f"{node.id}.log",
                replace(around, told=replace(told, progress_file=reports_to)),
                "runners.local.node_job:run_node",
                graph,
                node.id,
                use_cache,
                from_scratch,
            )

        try:
            nodes, ends = processes.call(
                "runners.local.prepare:prepare",
                graph,
                record.options,
                resumed,
                log=start_log,
                around=around,
                on_tick=observer.on_tick,
                stopped=lambda: stop.signal is not None,
            )
        except (SluiceError, interrupt.Interrupted) as error:
            if isinstance(error, SluiceError):
                log = str(start_log) if start_log.exists() else None
                record.fail(str(error), error.exit_code, log)
            record.end(stop.exit_code, stop.reason)
            record.save(run_dir)
            return {None: error}
        record.set_graph(nodes)
        observer.on_begin(record)
        for end in ends:
            record.start_node(end.node)
            record.end_node(end)
            observer.on_node(record, record.node(end.node))
        scheduler = Scheduler(record, run_dir, start, observer, stop)
        is_complete = scheduler.run()
        # A signal does not count if every node had ended before.
        record.end(None if is_complete else stop.exit_code, stop.reason)
        record.save(run_dir)
        observer.on_tick()
    return scheduler.exceptions
