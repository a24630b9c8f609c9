"""The rehearsal engine: runs a compiled pipeline on this machine, as a service does.

The compiled job itself is run, in ``spec.json`` of the run's folder. Each container
task runs its real command line in a process of its own; what the service does around
them is in ``run_task`` and ``metadata_store``.
"""

from __future__ import annotations

import json
import queue
import uuid
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from pathlib import Path

from runners.cloud.service_run import graph_of, planned_nodes
from runners.cloud.spec import Task, load_spec
from runners.cloud.submitted_job import SPEC_FILE
from runners.engine import Capabilities, Observer, Plan
from runners.local.stop_request import StopRequest
from runners.rehearsal.container import Containers
from runners.rehearsal.describe import Describer
from runners.rehearsal.invocation import Job, job_parameters
from runners.rehearsal.job_api import answering
from runners.rehearsal.metadata_store import MetadataStore, TaskResult
from runners.rehearsal.run_task import EndedTask, Surroundings, run_task
from sluice.errors import SluiceError
from sluice.record.events import (
    Event,
    Finished,
    NodeFinished,
    NodeStarted,
    Note,
    Stopping,
)
from sluice.record.recorder import Recorder
from sluice.record.run_record import RunRecord

_POLL_S = 0.1
_STOPPED = ("failed", "blocked", "not_reached", "interrupted")


@dataclass(frozen=True)
class RehearsalEngine:
    """Runs compiled pipelines without their service.

    Attributes:
      containers: run the commands of container tasks.
      describer: reads verdicts and writes documents.
      for_kubeflow: whether Kubeflow Pipelines is emulated instead of Vertex AI: input
        artifacts have no types, and drivers do not run.
      store: the service's metadata, of all runs.
    """

    containers: Containers
    describer: Describer
    for_kubeflow: bool = False
    store: MetadataStore = field(default_factory=MetadataStore)

    capabilities = Capabilities(cancel=True)

    def prewarm(self, root: Path) -> None:
        """Starts the process that describes artifacts."""
        self.describer.prewarm()

    def run(self, plan: Plan, observer: Observer) -> RunRecord:
        """Runs the job in the run's folder; see ``Engine.run``."""
        recorder = Recorder(plan.run_dir, observer.on_event)
        stop = StopRequest()
        with stop.listen():
            try:
                _JobRun(self, plan, recorder, observer, stop).run()
                recorder.end(stop.exit_code, stop.reason)
            except SluiceError as error:
                recorder.stop(error)
        return recorder.record


class _JobRun:
    """One run of a compiled job. Only this thread writes the record."""

    def __init__(
        self,
        engine: RehearsalEngine,
        plan: Plan,
        recorder: Recorder,
        observer: Observer,
        stop: StopRequest,
    ) -> None:
        self._engine, self._plan = engine, plan
        self._recorder, self._observer, self._stop = recorder, observer, stop
        self._spec = load_spec(plan.run_dir / SPEC_FILE)
        self._planned = {node.id: node for node in planned_nodes(self._spec)}
        self._results: dict[str, TaskResult] = {}
        self._ends: dict[str, NodeFinished] = {}
        self._running: dict[Future[EndedTask], Task] = {}
        self._from_threads: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._told_to_stop = False

    def run(self) -> None:
        """Runs until every task has ended or cannot be reached.

        Raises:
          SluiceError: the job cannot be started.
        """
        run_id, for_kubeflow = self._plan.run_dir.name, self._engine.for_kubeflow
        job = Job(
            self._spec,
            # Kubeflow chooses the id, Vertex AI is given one.
            str(uuid.uuid5(uuid.NAMESPACE_URL, run_id))
            if for_kubeflow
            else f"{self._spec.name}-{run_id.lower()}",
            job_parameters(self._spec),
            for_kubeflow,
        )
        around = Surroundings(
            job=job,
            store=self._engine.store,
            containers=self._engine.containers,
            run_dir=self._plan.run_dir,
            use_cache=self._plan.use_cache,
            has_drivers=not for_kubeflow,
            stopping=self._stopping,
            on_event=self._from_threads.put,
        )
        graph = graph_of(self._spec)
        self._recorder.apply(graph)
        with ThreadPoolExecutor(self._plan.workers) as threads:
            try:
                while True:
                    if self._stop.signal is None:
                        self._start_ready(around, threads)
                    if not self._running:
                        break
                    self._wait()
            except BaseException:
                # Else the pool would wait for tasks that nobody ends.
                self._stop.urgent = True
                raise
            if self._stop.signal is None:
                self._run_exit_handler(around)
        if len(self._ends) == len(graph.nodes) and self._stop.signal is None:
            self._recorder.apply(Finished())

    def _start_ready(self, around: Surroundings, threads: ThreadPoolExecutor) -> None:
        for task in self._spec.tasks:
            begun = task.id in self._ends or task in self._running.values()
            if begun or task.is_exit_handler:
                continue
            upstream = [self._ends.get(name) for name in task.upstream]
            if end := _end_by_upstream(task.id, upstream):
                self._record(end)
            elif None not in upstream and len(self._running) < self._plan.workers:
                self._recorder.apply(NodeStarted(node=task.id, attempt=1))
                future = threads.submit(
                    self._run_task, task, dict(self._results), around
                )
                self._running[future] = task

    def _run_task(
        self, task: Task, upstream: dict[str, TaskResult], around: Surroundings
    ) -> EndedTask:
        ended = run_task(task, upstream, around)
        describe, node = self._engine.describer.describe, self._planned[task.id]
        event = describe(around.run_dir, node, ended.event, ended.parameters)
        return replace(ended, event=event)

    def _stopping(self) -> str | None:
        if self._stop.urgent:
            return "kill"
        return "term" if self._stop.signal is not None else None

    def _wait(self) -> None:
        done, _ = wait(self._running, timeout=_POLL_S, return_when=FIRST_COMPLETED)
        self._record_from_threads()
        if self._stop.signal is not None and not self._told_to_stop:
            self._told_to_stop = True
            names = tuple(task.id for task in self._running.values())
            self._recorder.apply(Stopping(signal=self._stop.signal.name, nodes=names))
        for future in done:
            task = self._running.pop(future)
            ended = future.result()
            self._record_from_threads()
            if ended.result is not None:
                self._results[task.id] = ended.result
            self._record(ended.event)
        self._recorder.tick()
        self._observer.on_tick()

    def _record_from_threads(self) -> None:
        while not self._from_threads.empty():
            self._recorder.apply(self._from_threads.get())

    def _record(self, event: NodeFinished) -> None:
        self._ends[event.node] = event
        self._recorder.apply(event)

    def _run_exit_handler(self, around: Surroundings) -> None:
        """Runs the exit handler with the final status; its own failure is a note."""
        handler = self._spec.exit_handler
        if handler is None:
            return
        errors = [end.error for end in self._ends.values() if end.error]
        status = {
            "state": "FAILED" if errors else "SUCCEEDED",
            "error": {"code": 9, "message": errors[0].message} if errors else {},
            "pipelineJobResourceName": around.job.resource_name,
            "pipelineTaskName": "tfx-dag",
        }
        job = replace(around.job, final_status=json.dumps(status))
        with answering(job, self._plan.run_dir) as variables:
            containers = around.containers.with_variables(variables)
            around = replace(around, job=job, containers=containers)
            ended = run_task(handler, self._results, around)
        while not self._from_threads.empty():
            # It is no node of the graph, so its retries are no events of the run.
            self._from_threads.get()
        if ended.event.error:
            text = f"the exit handler {handler.id} failed: {ended.event.reason}"
        else:
            text = (
                f"the exit handler {handler.id} ran in {ended.event.duration_s:.0f} s"
            )
        self._recorder.apply(Note(text=text))


def _end_by_upstream(
    node: str, upstream: list[NodeFinished | None]
) -> NodeFinished | None:
    """Returns the end of a task that an upstream task stops; None if none does."""
    for before in upstream:
        if before is None:
            continue
        if before.state == "skipped":
            reason = f"upstream {before.node} was skipped"
            return NodeFinished(node=node, state="skipped", reason=reason)
        # A Pusher that ran and was blocked by a gate stops no other task.
        if before.state in _STOPPED and not before.push:
            by_gate = before.state == "blocked" or (before.error and before.error.gate)
            return NodeFinished(
                node=node,
                state="blocked" if by_gate else "not_reached",
                reason=f"stopped by {before.node}" if before.error else before.reason,
            )
    return None
