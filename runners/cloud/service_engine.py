"""Engine of a service: compiles, uploads and submits a run, which goes on there."""

from __future__ import annotations

import copy
import errno
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from pipeline.config.config import Config
from pipeline.config.serialize import read_stored_config
from runners.cloud.compile_spec import compile_checked
from runners.cloud.job_inputs import job_parameters, upload
from runners.cloud.lint.finding import refuse
from runners.cloud.lint.lint_kubeflow import lint_kubeflow
from runners.cloud.service import (
    PIPELINE_LABEL,
    RUN_LABEL,
    SPEC_LABEL,
    Service,
    Submission,
)
from runners.cloud.service_run import graph_of
from runners.cloud.spec import read_spec
from runners.cloud.submitted_job import (
    SPEC_FILE,
    SubmittedJob,
    job_id_of,
    record_uri_of,
)
from runners.engine import Capabilities, Observer, Plan
from sluice.clock import utc_now
from sluice.errors import NoAnswerError, RemoteError
from sluice.record.recorder import Recorder
from sluice.record.run_record import RunRecord
from sluice.storage import atomic, digest
from sluice.storage.storage import storage_for

_DONE = ("ran", "cached", "skipped")
_SPEC_LABEL_LENGTH = 16


class ServiceEngine:
    """Submits runs to a service; ``refresh`` brings their records up to date.

    Attributes:
      unanswered: why it is not known whether the last run was submitted; None if it is.

    Args:
      service: that runs the pipelines.
      images: digests of the run's images by name, see ``check_images``.
    """

    capabilities = Capabilities(resume=True, detached=True)

    def __init__(
        self, service: Service, images: Mapping[str, str] | None = None
    ) -> None:
        self._service, self._images = service, dict(images or {})
        self.unanswered: NoAnswerError | None = None

    def prewarm(self, root: Path) -> None:
        """Does nothing: compiling imports TFX in a process of its own."""

    def run(self, plan: Plan, observer: Observer) -> RunRecord:
        """Submits a run, or a further job of a resumed one; see ``Engine.run``.

        Raises:
          UsageError: the pipeline cannot be compiled for the service.
          RemoteError: the service or its storage refuses.
        """
        run_dir = plan.run_dir
        config = read_stored_config(run_dir / "config.json")
        recorder = Recorder(run_dir, observer.on_event)
        if plan.resumed:
            before = SubmittedJob.load(run_dir)
            job = _with_caching(json.loads((run_dir / SPEC_FILE).read_text()), recorder)
            attempt, images = before.attempt + 1, before.images
        else:
            job = self._compiled(plan, config, observer)
            attempt, images = 1, self._images
        text = json.dumps(job, indent=1, sort_keys=True)
        spec_digest = digest.of_bytes(text.encode())
        job_id = job_id_of(config.name, run_dir.name, spec_digest, attempt)
        submitted = SubmittedJob(
            job_id=job_id,
            spec_digest=spec_digest,
            record_uri=record_uri_of(config, run_dir.name),
            submitted_at=utc_now(),
            attempt=attempt,
            images=images,
        )
        atomic.write_text(run_dir / SPEC_FILE, text)
        recorder.apply(graph_of(read_spec(job)))
        submitted.save(run_dir)
        labels = {
            **job.get("labels", {}),
            PIPELINE_LABEL: config.name,
            RUN_LABEL: run_dir.name.lower(),
            SPEC_LABEL: spec_digest[:_SPEC_LABEL_LENGTH],
        }
        try:
            name = self._service.submit(Submission(job_id, job, labels))
        except NoAnswerError as error:
            self.unanswered = error
            return recorder.record
        except KeyboardInterrupt:
            # The service may have taken the job: the run must stay open.
            self.unanswered = NoAnswerError("interrupted before the service answered")
            return recorder.record
        page = self._service.page(name)
        replace(submitted, name=name, page=page).save(run_dir)
        observer.on_note(f"submitted: {page or name}")
        return recorder.record

    def _compiled(
        self, plan: Plan, config: Config, observer: Observer
    ) -> dict[str, Any]:
        """Returns the job with its parameters; what it reads is in the bucket."""
        observer.on_note("compiling for the service")
        compiled = compile_checked(config)
        for finding in compiled.warnings:
            observer.on_warning(f"{finding.where}: {finding.what}; {finding.fix}")
        job = copy.deepcopy(compiled.job)
        assert plan.spans is not None
        with explain_storage(config):
            values = job_parameters(job, config, plan.spans, plan.accept_data)
        runtime = job.setdefault("runtimeConfig", {})
        runtime["parameterValues"] = {**runtime.get("parameterValues", {}), **values}
        if self._service.engine == "kubeflow":
            # Once more: the values, too, count against its limit.
            refuse(lint_kubeflow(read_spec(job)), config)
        if not plan.use_cache:
            for _, task in _named_tasks(job):
                task["cachingOptions"] = {"enableCache": False}
        with explain_storage(config):
            for item in compiled.uploads:
                upload(item)
            stored = (plan.run_dir / "config.json").read_bytes()
            target = f"{record_uri_of(config, plan.run_dir.name)}/config.json"
            storage_for(target).write_atomically(target, stored)
        return job


@contextmanager
def explain_storage(config: Config) -> Iterator[None]:
    """Raises ``RemoteError`` where the bucket of ``cloud.root`` cannot be written."""
    cloud = config.cloud
    assert cloud is not None
    try:
        yield
    except OSError as error:
        bucket = str(config.cloud_dir).split("/")[2]
        text = error.strerror or str(error)
        place = f" --location={cloud.region}" if cloud.region else ""
        project = f" --project={cloud.project}" if cloud.project else ""
        hint = None
        if "there is no bucket" in text:
            hint = (
                f"gcloud storage buckets create gs://{bucket}{place}{project} "
                "--uniform-bucket-level-access"
            )
        elif "permission denied" in text:
            hint = (
                f"gcloud storage buckets add-iam-policy-binding gs://{bucket} "
                "--member=user:YOU --role=roles/storage.objectUser"
            )
        elif error.errno == errno.EHOSTUNREACH:
            hint = "check the network, then try again"
        raise RemoteError(
            "the files of the run cannot be copied into the bucket",
            where=f"cloud.root: {cloud.root}",
            actual=text,
            hint=hint,
        ) from error


def _with_caching(job: dict[str, Any], recorder: Recorder) -> dict[str, Any]:
    """Returns the job with caching on for the tasks that have finished."""
    done = {node.id for node in recorder.record.nodes if node.state in _DONE}
    for name, task in _named_tasks(job):
        if name in done:
            task["cachingOptions"] = {"enableCache": True}
    return job


def _named_tasks(job: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields the tasks of a job and of its inner graphs, by name."""
    spec = job["pipelineSpec"]
    for component in (spec["root"], *spec["components"].values()):
        yield from component.get("dag", {}).get("tasks", {}).items()
