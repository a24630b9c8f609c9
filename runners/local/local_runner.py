"""``LocalRunner``: a parallel, resumable replacement of TFX's LocalDagRunner.

``LocalRunner().run(pipeline)`` runs any TFX pipeline whose metadata is in SQLite.
Nested pipelines and partial runs are not supported.
"""

from __future__ import annotations

import shlex
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tfx.dsl.compiler import compiler
from tfx.orchestration.pipeline import Pipeline
from tfx.orchestration.portable import tfx_runner

from runners.engine import Graph, Observer
from runners.local.engine import run_nodes
from runners.local.node_failure import as_error
from runners.local.node_job import connection_of
from runners.local.prepare import substitute_run_id
from runners.local.write_report import write_report
from sluice.errors import LockedError, UsageError, bounded
from sluice.machine_resources import usable_cores
from sluice.node_environment import NodeEnvironment
from sluice.project import check_imports
from sluice.record.parts import PushRecord
from sluice.record.run_record import RunOptions, RunRecord
from sluice.storage import atomic
from sluice.workspace import new_run_id

# The only packages of ours that nodes of a script's pipeline import: the user's own
# packages may have any other name.
_NEEDED = ("runners", "serving", "sluice")


class LocalRunner(tfx_runner.IrBasedRunner):
    """Runs TFX pipelines on this machine, each node in its own process.

    This process is forked; if it cannot be (it has threads, or TensorFlow has opened
    its devices), a server imports TFX once more, and is kept for later runs.
    """

    def __init__(
        self, *, workers: int | None = None, runs_dir: str | Path | None = None
    ) -> None:
        """Sets how pipelines are run.

        Args:
          workers: the maximum number of nodes that run in parallel; None for one per
            core.
          runs_dir: the parent of the runs' folders (logs, record); None for ``runs/``
            beside the metadata file.
        """
        self._workers = workers or usable_cores()
        self._runs_dir = Path(runs_dir) if runs_dir else None

    def run(self, pipeline: Pipeline, **kwargs: Any) -> RunRecord:
        """Compiles a pipeline and runs it; see ``run_with_ir`` for the rest.

        A ``module_file`` is imported in place: TFX would build a wheel from it, which
        needs pip, and install that for every node.
        """
        return self.run_with_ir(compiler.Compiler().compile(pipeline), **kwargs)

    def run_with_ir(
        self,
        pipeline: Any,
        run_options: Any | None = None,
        *,
        run_id: str | None = None,
        observer: Observer | None = None,
        **kwargs: Any,
    ) -> RunRecord:
        """Runs a compiled pipeline; ``run`` compiles one and calls this.

        Args:
          pipeline: the IR.
          run_options: of TFX, for a partial run, which is refused.
          run_id: of the run; the id of an earlier run resumes it.
          observer: of the run.
          **kwargs: not used; part of TFX's interface.

        Returns:
          The record of the run, in which no node has failed.

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
        if run_options is not None:
            raise UsageError("LocalRunner runs whole pipelines: leave out run_options")
        check_imports(_NEEDED)
        run_dir = self._runs_folder(pipeline) / (run_id or new_run_id())
        run_dir.mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            try:
                stack.enter_context(atomic.lock(run_dir / ".lock", wait=False))
            except BlockingIOError as error:
                raise LockedError(
                    "this run is in progress in another process",
                    where=run_dir,
                    hint="wait for it to end, or use another run_id",
                ) from error
            return self._execute(pipeline, Graph(run_dir), observer or Observer())

    def _execute(self, pipeline: Any, graph: Graph, observer: Observer) -> RunRecord:
        resumed = graph.ir_file.exists()
        record = self._begin(pipeline, graph, resumed)
        record.save(graph.run_dir)
        raised = run_nodes(
            record,
            graph,
            observer,
            cwd=Path.cwd(),
            told=NodeEnvironment(),
            resumed=resumed,
        )
        write_report(record, graph.run_dir)
        if record.status == "interrupted":
            raise KeyboardInterrupt
        if record.error is not None:
            lines = [record.error.message]
            lines += [f"  | {line}" for line in record.error.log_tail]
            failed = [node.id for node in record.nodes if node.error]
            if others := [name for name in failed if name != record.error.node]:
                lines.append("  as well:  " + ", ".join(bounded(others)))
            lines.append(f"  log:      {record.error.log}")
            error = as_error(record.error, "\n".join(lines))
            raise error from raised.get(record.error.node)
        return record

    def _begin(self, pipeline: Any, graph: Graph, resumed: bool) -> RunRecord:
        """Returns the record of a run that begins, or is resumed."""
        command = shlex.join(["python", *sys.argv])
        if resumed:
            _check_same(pipeline, graph)
            record = RunRecord.load_ended(graph.run_dir)
            record.resume(command, self._workers)
            return record
        atomic.write_bytes(graph.ir_file, pipeline.SerializeToString())
        return RunRecord(
            run_id=graph.run_dir.name,
            pipeline=pipeline.pipeline_info.id,
            command=command,
            options=RunOptions(workers=self._workers),
            pushes=[PushRecord("")],
        )

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


def _check_same(pipeline: Any, graph: Graph) -> None:
    """Raises a ``UsageError`` if the pipeline differs from that of the resumed run."""
    now = type(pipeline).FromString(pipeline.SerializeToString())
    substitute_run_id(now, graph.run_dir.name)
    # The rest holds serialized maps, whose order differs.
    if graph.read_ir().nodes != now.nodes:
        raise UsageError(
            f"run {graph.run_dir.name} cannot be resumed: the pipeline has changed "
            "since",
            where=pipeline.pipeline_info.id,
            hint="start a new run; with the cache on, unchanged nodes are skipped",
        )
