"""Runs one task as the service does: condition, driver, cache, attempts, outputs."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from runners.cloud.spec import (
    Command,
    Container,
    CustomJob,
    Importer,
    Resolver,
    Task,
)
from runners.cloud.task_event import failure_in_log, record_artifact
from runners.rehearsal.condition import ConditionError, holds
from runners.rehearsal.container import Containers, Ended
from runners.rehearsal.invocation import Invocation, Job, resolve, substitute
from runners.rehearsal.metadata_store import (
    MetadataStore,
    Outputs,
    QueryError,
    StoredArtifact,
    TaskResult,
)
from sluice.errors import ExitCode, NodeError, SluiceError
from sluice.process_tree import describe_end
from sluice.record.events import (
    Artifact,
    Event,
    NodeFailure,
    NodeFinished,
    NodeRetried,
    NodeStarted,
)
from sluice.record.run_record import NodeState
from sluice.storage.storage import storage_for

_LOG_LINES = 200
_MISSING_ARTIFACT = "\0"


@dataclass(frozen=True)
class Surroundings:
    """What the tasks of a job share.

    Attributes:
      job: the job.
      store: the service's metadata.
      containers: run the commands.
      run_dir: the run's folder, with the logs.
      use_cache: whether tasks may be cached.
      has_drivers: whether ``lifecycle.preCacheCheck`` is carried out.
      stopping: see ``Containers.run``.
      on_event: receives the retries; called in the task's thread.
    """

    job: Job
    store: MetadataStore
    containers: Containers
    run_dir: Path
    use_cache: bool
    has_drivers: bool
    stopping: Callable[[], str | None]
    on_event: Callable[[Event], None]


@dataclass(frozen=True)
class EndedTask:
    """How a task has ended, and what it passes on.

    Attributes:
      event: its end.
      parameters: its input parameters.
      result: its outputs; None unless it has succeeded.
    """

    event: NodeFinished
    parameters: Mapping[str, Any] = field(default_factory=dict)
    result: TaskResult | None = None


def run_task(
    task: Task, upstream: Mapping[str, TaskResult], around: Surroundings
) -> EndedTask:
    """Runs a task whose upstream tasks have succeeded.

    A failure is the result, not an exception.

    Args:
      task: the task.
      upstream: their results by task.
      around: what the tasks of the job share.
    """
    started = time.monotonic()
    try:
        running = _RunningTask(task, upstream, around)
        ended = running.run()
    except (SluiceError, ConditionError, QueryError) as error:
        text = f"{task.id} failed: {error}"
        code = error.exit_code if isinstance(error, SluiceError) else ExitCode.NODE
        failure = NodeFailure(text, int(code))
        ended = EndedTask(_failed(task.id, failure))
    duration_s = time.monotonic() - started
    return replace(ended, event=replace(ended.event, duration_s=duration_s))


class _RunningTask:
    """One execution of a task."""

    def __init__(
        self, task: Task, upstream: Mapping[str, TaskResult], around: Surroundings
    ) -> None:
        self._task, self._upstream, self._around = task, upstream, around
        self._log = around.run_dir / "logs" / f"{task.id}.log"
        self._peak_memory_bytes = 0
        unique = uuid.uuid4().hex[:12]
        self._call = Invocation.make(around.job, task, upstream, around.store, unique)

    def run(self) -> EndedTask:
        task = self._task
        if task.condition:
            given = self._call.executor_input()["inputs"]
            if not holds(task.condition, given):
                reason = f"its condition does not hold: {task.condition}"
                event = NodeFinished(node=task.id, state="skipped", reason=reason)
                return EndedTask(event)
        match task.executor:
            case Importer():
                return self._published(TaskResult(self._import(task.executor)))
            case Resolver():
                return self._resolve(task.executor)
            case CustomJob():
                text = f"{task.id} is a custom job, which runs on Vertex AI only"
                hint = "compile it without machine_type, workers and tpu"
                raise NodeError(text, hint=hint)
        return self._run_container(task.executor)

    def _import(self, importer: Importer) -> Outputs:
        uri = resolve(importer.uri, self._around.job, self._upstream)
        if not storage_for(uri).exists(uri):
            raise NodeError(f"{uri} does not exist")
        ((key, _),) = self._task.outputs.items()
        name = self._around.store.new_name()
        metadata = dict(importer.metadata)
        return {key: [StoredArtifact(name, importer.type.title, uri, metadata)]}

    def _resolve(self, resolver: Resolver) -> EndedTask:
        found: Outputs = {}
        given = self._call.executor_input()
        for key, query in resolver.queries.items():
            text = substitute(query, given, {}, missing=lambda _: _MISSING_ARTIFACT)
            artifact = None
            if _MISSING_ARTIFACT not in text:
                name = self._around.job.spec.name
                artifact = self._around.store.find_latest(name, text)
            found[key] = [artifact] if artifact else []
        reason = None if any(found.values()) else "found nothing"
        return self._ended("ran", TaskResult(found), reason=reason)

    def _run_container(self, container: Container) -> EndedTask:
        around, call = self._around, self._call
        # A bucket needs no folders. TFX's executors expect local ones to exist.
        storage_for(call.root).make_folder(call.root)
        for artifacts in call.outputs.values():
            for artifact in artifacts:
                storage_for(artifact.uri).make_folder(artifact.uri)
        if container.driver and around.has_drivers:
            ended = self._execute(container.driver)
            if ended.status != 0:
                return self._end_of_failure(ended)
            call = self._call = self._with_driver_output(call)
        key = None
        if self._task.cached and around.use_cache:
            key = call.cache_key()
            cached = around.store.cached(around.job.spec.name, key)
            if cached is not None:
                return self._ended("cached", cached, cache_key=key)
        retry, attempt = self._task.retry, 1
        while (ended := self._execute(container)).status != 0:
            if around.stopping() or retry is None or attempt > retry.max_retries:
                return self._end_of_failure(ended)
            wait_s = min(
                retry.backoff_s * retry.factor ** (attempt - 1), retry.max_backoff_s
            )
            reason = self._failure(ended).message.splitlines()[0]
            node = self._task.id
            around.on_event(
                NodeRetried(node=node, attempt=attempt, wait_s=wait_s, reason=reason)
            )
            self._wait(wait_s)
            attempt += 1
            around.on_event(NodeStarted(node=node, attempt=attempt))
        return self._published(self._reported_result(), key)

    def _execute(self, command: Command) -> Ended:
        around = self._around
        container = self._task.executor
        assert isinstance(container, Container)
        ended = around.containers.run(
            self._call.command_line(command),
            container.env,
            self._log,
            self._task.id,
            around.stopping,
        )
        peak = max(self._peak_memory_bytes, ended.peak_memory_bytes or 0)
        self._peak_memory_bytes = peak
        return ended

    def _wait(self, wait_s: float) -> None:
        until = time.monotonic() + wait_s
        while time.monotonic() < until and not self._around.stopping():
            time.sleep(0.05)

    def _with_driver_output(self, call: Invocation) -> Invocation:
        """Returns the invocation with what the driver has changed."""
        report = self._report()
        parameters = {**call.parameters, **report.get("parameterValues", {})}
        outputs = _merged(call.outputs, report)
        return replace(call, parameters=parameters, outputs=outputs)

    def _reported_result(self) -> TaskResult:
        report = self._report()
        given = report.get("parameterValues", {})
        parameters = {
            key: given.get(key, self._written(key))
            for key in self._task.output_parameters
        }
        return TaskResult(_merged(self._call.outputs, report), parameters)

    def _report(self) -> dict[str, Any]:
        path = self._call.output_file
        storage = storage_for(path)
        return json.loads(storage.read(path)) if storage.exists(path) else {}

    def _written(self, key: str) -> str | None:
        path = f"{self._call.root}/{key}"
        storage = storage_for(path)
        return storage.read(path).decode() if storage.is_file(path) else None

    def _published(self, result: TaskResult, key: str | None = None) -> EndedTask:
        self._around.store.publish(self._around.job.spec.name, result, key)
        return self._ended("ran", result)

    def _ended(
        self,
        state: NodeState,
        result: TaskResult,
        *,
        reason: str | None = None,
        cache_key: str | None = None,
    ) -> EndedTask:
        event = NodeFinished(
            node=self._task.id,
            state=state,
            reason=reason,
            outputs=_for_record(result.outputs),
            inputs=_for_record(self._call.inputs),
            peak_memory_bytes=self._peak_memory_bytes or None,
            cache={"key": cache_key, "parts": {}} if cache_key else None,
        )
        return EndedTask(event, self._call.parameters, result)

    def _failure(self, ended: Ended) -> NodeFailure:
        lines = self._log.read_text(encoding="utf-8", errors="replace").splitlines()
        failure = failure_in_log(self._task.id, lines[-_LOG_LINES:])
        if ended.status == 1:
            return failure
        end = describe_end(ended.status, ended.peak_memory_bytes)
        return replace(failure, message=f"{self._task.id} {end}")

    def _end_of_failure(self, ended: Ended) -> EndedTask:
        event = _failed(self._task.id, self._failure(ended))
        if self._around.stopping():
            event = replace(
                event, state="interrupted", error=None, reason="stopped when asked to"
            )
        event = replace(
            event,
            log=str(self._log),
            inputs=_for_record(self._call.inputs),
            peak_memory_bytes=self._peak_memory_bytes or None,
        )
        return EndedTask(event, self._call.parameters)


def _failed(node: str, failure: NodeFailure) -> NodeFinished:
    reason = failure.message.splitlines()[0]
    return NodeFinished(node=node, state="failed", reason=reason, error=failure)


def _merged(outputs: Outputs, report: Mapping[str, Any]) -> Outputs:
    """Returns the artifacts with the URIs and properties that an executor reports."""
    reported = {
        item.get("name"): item
        for items in report.get("artifacts", {}).values()
        for item in items.get("artifacts", ())
    }
    return {
        key: [
            replace(
                item,
                uri=reported.get(item.name, {}).get("uri", item.uri),
                metadata={
                    **item.metadata,
                    **reported.get(item.name, {}).get("metadata", {}),
                },
            )
            for item in items
        ]
        for key, items in outputs.items()
    }


def _for_record(artifacts: Outputs) -> dict[str, list[Artifact]]:
    return {
        key: [
            record_artifact(item.name, item.title, item.uri, item.metadata)
            for item in items
        ]
        for key, items in artifacts.items()
    }
