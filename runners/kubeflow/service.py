"""Kubeflow Pipelines as a ``Service``: submits, reads and cancels runs.

A run there has no labels and no id that the caller chooses: its display name is the
job's id, and its description has the labels. Its API tells the states of tasks, but not
their artifacts, errors and attempts: these are in the task records that the containers
write (``components.kubeflow_entrypoint``).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice, pairwise
from typing import Any

import kfp_server_api

from pipeline.config.cloud import Cloud
from runners.cloud.service import (
    ENDED,
    PIPELINE_LABEL,
    FailedAttempt,
    JobState,
    ServiceJob,
    ServiceTask,
    Submission,
    TaskState,
    unanswered_after,
)
from runners.cloud.spec import Container, Spec, read_spec
from runners.cloud.task_event import record_artifact
from runners.kubeflow.client import KfpClient, iso_time
from sluice.errors import RemoteError, UsageError
from sluice.record.events import Artifact
from sluice.storage.storage import storage_for

_JOB_STATES: dict[str, JobState] = {
    "RUNTIME_STATE_UNSPECIFIED": "pending",
    "PENDING": "pending",
    "RUNNING": "running",
    "PAUSED": "running",
    "SUCCEEDED": "succeeded",
    "SKIPPED": "succeeded",
    "FAILED": "failed",
    "CANCELING": "cancelling",
    "CANCELED": "cancelled",
}
_TASK_STATES: dict[str, TaskState] = {
    "PENDING": "pending",
    "RUNNING": "running",
    "SUCCEEDED": "succeeded",
    "SKIPPED": "skipped",
    "FAILED": "failed",
    "CANCELING": "running",
    "CANCELED": "cancelled",
}
_Records = Mapping[str, Mapping[str, Any]]


class KubeflowService:
    """Client of one Kubeflow Pipelines installation; see ``Service``.

    Args:
      cloud: the config's section.
      pipeline: the pipeline's name, that of its experiment by default.

    Raises:
      UsageError: ``cloud.kubeflow`` is missing, or the package of the client.
    """

    engine = "kubeflow"

    def __init__(
        self, cloud: Cloud, pipeline: str, timeout_s: float | None = None
    ) -> None:
        if cloud.kubeflow is None:
            raise UsageError(
                "the config does not say where Kubeflow Pipelines is",
                where="cloud.kubeflow.host",
                hint="set cloud.kubeflow.host to the address of its API",
            )
        self.client = KfpClient(cloud.kubeflow, timeout_s)
        self.service_account = cloud.service_account
        self._experiment = cloud.kubeflow.experiment or pipeline

    def experiment_id(self) -> str:
        """Returns the id of the pipeline's experiment, which is created if needed."""
        return self.client.experiment_id(self._experiment)

    def submit(self, submission: Submission) -> str:
        """Creates a run, or returns the one of this id."""
        settings = submission.job["runtimeConfig"]
        body = kfp_server_api.V2beta1Run(
            display_name=submission.job_id,
            description=json.dumps(dict(submission.labels)),
            experiment_id=self.experiment_id(),
            pipeline_spec=submission.job["pipelineSpec"],
            runtime_config=kfp_server_api.V2beta1RuntimeConfig(
                parameters=settings.get("parameterValues") or None,
                pipeline_root=settings["gcsOutputDirectory"],
            ),
            service_account=self.service_account,
        )
        made = self.client.create_once(
            lambda: next(iter(self._named(submission.job_id)), None),
            self.client.runs.run_service_create_run,
            body,
        )
        # A request whose answer was lost may have arrived after the next look-up.
        with unanswered_after([made]):
            first, *others = self._named(submission.job_id) or [made]
            for run in others:
                self.cancel(run.run_id)
                self.client.call(self.client.runs.run_service_delete_run, run.run_id)
        return str(first.run_id)

    def get(self, name: str) -> ServiceJob | None:
        """Returns a run with its tasks and spec."""
        run = self.client.found(self.client.runs.run_service_get_run, name)
        return None if run is None else _job_of(run)

    def find(self, job_id: str) -> ServiceJob | None:
        """Returns the first run of this display name."""
        run = next(iter(self._named(job_id)), None)
        return None if run is None else self.get(run.run_id)

    def list(self, pipeline: str, limit: int) -> list[ServiceJob]:
        """Returns the newest runs of a pipeline in its experiment."""
        experiment = self.client.find_experiment(self._experiment)
        if experiment is None:
            return []
        runs = self.client.listed(
            self.client.runs.run_service_list_runs,
            "runs",
            {},
            experiment_id=experiment.experiment_id,
            sort_by="created_at desc",
        )
        mine = (run for run in runs if _pipeline_of(run) == pipeline)
        return [_summary(run) for run in islice(mine, limit)]

    def cancel(self, name: str) -> Sequence[str]:
        """Terminates a run, unless it has ended."""
        run = self.client.found(self.client.runs.run_service_get_run, name)
        if run and _summary(run).state not in (*ENDED, "cancelling"):
            self.client.call(self.client.runs.run_service_terminate_run, name)
        return []

    def logs(self, name: str, task: str, limit: int) -> Iterator[str]:
        """Yields the last lines of a task's pod; none before its container starts."""
        run = self.client.found(self.client.runs.run_service_get_run, name)
        spec = None if run is None else _spec_of(run)
        record = {} if spec is None else _read_records(spec, name, [task]).get(task, {})
        if pod := record.get("pod"):
            lines = self.client.read_log(name, pod).splitlines()
            yield from lines[-limit:]

    def page(self, name: str) -> str | None:
        """Returns the run's page of the installation's UI."""
        return f"{self.client.settings.host.rstrip('/')}/#/runs/details/{name}"

    def _named(self, job_id: str) -> Sequence[Any]:
        """Returns the runs of a display name, the first one first."""
        runs = self.client.listed(
            self.client.runs.run_service_list_runs,
            "runs",
            {"display_name": ("EQUALS", job_id)},
            namespace=self.client.settings.namespace,
        )
        return sorted(runs, key=lambda run: run.created_at)


def _summary(run: Any) -> ServiceJob:
    """Returns a run without tasks and spec."""
    state = _JOB_STATES.get(run.state or "PENDING")
    if state is None:
        raise RemoteError(
            "a run of Kubeflow Pipelines is in an unknown state",
            where=run.run_id,
            expected="one of " + ", ".join(_JOB_STATES),
            actual=run.state,
        )
    return ServiceJob(
        name=run.run_id,
        state=state,
        labels=_labels_of(run),
        created_at=iso_time(run.created_at),
        started_at=iso_time(run.created_at),
        ended_at=iso_time(run.finished_at) if state in ENDED else None,
        error=run.error.message if run.error else None,
    )


def _job_of(run: Any) -> ServiceJob:
    """Returns a run with its tasks and spec."""
    job, spec = _summary(run), _spec_of(run)
    if spec is None:
        return job
    details = (run.run_details.task_details if run.run_details else None) or []
    by_name = {one.display_name: one for one in details}
    names = [task.id for task in spec.tasks]
    records = _read_records(spec, run.run_id, names)
    outputs = _outputs(spec, records)
    tasks = [
        _task_of(name, by_name, records.get(name, {}), outputs.get(name, {}))
        for name in names
        if {name, f"{name}-driver"} & set(by_name) or name in records
    ]
    return replace(job, tasks=tuple(tasks), spec={"pipelineSpec": run.pipeline_spec})


def _task_of(
    name: str,
    details: Mapping[str, Any],
    record: Mapping[str, Any],
    outputs: Mapping[str, tuple[Artifact, ...]],
) -> ServiceTask:
    """Returns a task, from what the service and the task record say."""
    detail, driver = details.get(name), details.get(f"{name}-driver")
    state = _TASK_STATES.get(detail.state if detail else "PENDING", "pending")
    error = record.get("error") or _message_of(detail)
    if driver and driver.state == "FAILED":
        # It prepares the task, which then does not start.
        state, error = "failed", error or _message_of(driver) or "its driver failed"
    if state == "succeeded" and not record:
        state = "cached"
    if state == "pending" and record:
        state = "running"
    return ServiceTask(
        name=name,
        state=state,
        started_at=record.get("started_at")
        or (iso_time(detail.start_time) if detail else None),
        ended_at=record.get("ended_at")
        or (iso_time(detail.end_time) if detail else None),
        failed_attempts=tuple(
            FailedAttempt(one["at"], one["reason"])
            for one in record.get("failed_attempts", ())
        ),
        error=error if state == "failed" else None,
        inputs=_artifacts(record.get("inputs", {})),
        outputs=outputs,
    )


def _message_of(detail: Any) -> str | None:
    return detail.error.message if detail and detail.error else None


def _outputs(
    spec: Spec, records: _Records
) -> dict[str, dict[str, tuple[Artifact, ...]]]:
    """Returns the output artifacts of each task.

    A task that was taken from the cache has no record: its artifacts are among the
    inputs of the tasks that use them.
    """
    found: dict[str, dict[str, tuple[Artifact, ...]]] = {}
    for task in spec.tasks:
        inputs = _artifacts(records.get(task.id, {}).get("inputs", {}))
        for key, source in task.artifacts.items():
            if key in inputs:
                found.setdefault(source.task, {})[source.key] = inputs[key]
    for name, record in records.items():
        found[name] = {**found.get(name, {}), **_artifacts(record.get("outputs", {}))}
    return found


def _artifacts(
    described: Mapping[str, Iterable[Mapping[str, Any]]],
) -> dict[str, tuple[Artifact, ...]]:
    return {
        key: tuple(
            record_artifact(one["uri"], one["type"], one["uri"], one["properties"])
            for one in items
        )
        for key, items in described.items()
    }


def _read_records(spec: Spec, run_id: str, names: Iterable[str]) -> _Records:
    """Returns the task records of a run that exist, by task.

    Raises:
      RemoteError: they cannot be read.
    """
    root = _records_folder(spec)
    if root is None:
        return {}
    folder, storage = f"{root}/{run_id}", storage_for(root)
    try:
        there = set(storage.names(folder))
        return {
            name: json.loads(storage.read(f"{folder}/{name}.json"))
            for name in names
            if f"{name}.json" in there
        }
    except OSError as error:
        raise RemoteError(
            "what the tasks of the run have recorded cannot be read",
            where=folder,
            actual=error.strerror or str(error),
            hint="let your account read this bucket: roles/storage.objectViewer",
        ) from error


def _records_folder(spec: Spec) -> str | None:
    """Returns where the containers write the task records."""
    for task in spec.tasks:
        args = task.executor.args if isinstance(task.executor, Container) else ()
        for flag, value in pairwise(args):
            if flag == "--task_records":
                return value
    return None


def _spec_of(run: Any) -> Spec | None:
    if not run.pipeline_spec:
        return None
    return read_spec({"pipelineSpec": run.pipeline_spec}, where=run.run_id)


def _pipeline_of(run: Any) -> str:
    return (run.pipeline_spec or {}).get("pipelineInfo", {}).get("name", "")


def _labels_of(run: Any) -> dict[str, str]:
    """Returns the labels; those of a scheduled run are not known."""
    try:
        labels = json.loads(run.description or "")
    except ValueError:
        labels = None
    own = isinstance(labels, dict) and PIPELINE_LABEL in labels
    return labels if own else {PIPELINE_LABEL: _pipeline_of(run)}
