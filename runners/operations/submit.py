"""Operation: submits a pipeline to the service of its ``cloud`` section."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from runners.cloud.cloud_locations import cloud_locations
from runners.cloud.lint.finding import refuse
from runners.cloud.lint.lint_config import lint_config
from runners.cloud.refresh import follow
from runners.cloud.registry import check_images
from runners.cloud.service_engine import ServiceEngine
from runners.engine import Observer
from runners.operations.lock_workspace import lock_workspace
from runners.operations.prepared_run import PreparedRun, record_inputs
from runners.operations.run import RunRequest, begin_record, check_request
from runners.operations.run_lifecycle import execute, make_plan
from runners.operations.service_runs import service_for
from sluice.errors import RemoteError
from sluice.record.recorder import Recorder
from sluice.record.run_record import RunRecord
from sluice.workspace import private_umask

POLL_S = 10.0


@dataclass(frozen=True, kw_only=True)
class SubmitRequest(RunRequest):
    """Request to run a pipeline in a service.

    Attributes:
      follow: whether to wait for the end of the run.
      poll_s: how often the service is asked meanwhile.
    """

    command: str = "runners.operations.submit"
    follow: bool = False
    poll_s: float = POLL_S


def submit(
    request: SubmitRequest,
    observer: Observer | None = None,
) -> RunRecord:
    """Submits a run; its spans are chosen now, as those of a local run.

    Args:
      request: what to run.
      observer: of the run; None for none.

    Returns:
      The record; its status is ``running`` where the run goes on in the service.

    Raises:
      LintError: the service would refuse the pipeline, or a run there would fail.
      UsageError: the request, the config or the data is wrong, or an image does not
        hold the code.
      RemoteError: the service has not answered: ``status`` says later whether it took
        the job.
      LockedError: another process submits or runs the pipeline.
    """
    observer = observer or Observer()
    # Before the data is looked for: data of this machine is a finding.
    if (loaded := request.load_config()).cloud is not None:
        refuse(lint_config(loaded), loaded)
    # The client takes a second to import.
    from sluice.storage.gcs_storage import giving_up_soon

    # The data is listed: without a network this fails soon, and nothing has begun.
    with giving_up_soon():
        prepared = check_request(request, observer)
    config, workspace = prepared.config, prepared.workspace
    service = service_for(config)
    engine = ServiceEngine(service, check_images(config, observer.on_warning))
    prepared = replace(prepared, serving_dir=cloud_locations(config).serving_dir)
    locking = lock_workspace(workspace, request.command, request.wait, observer)
    with private_umask(config.private):
        with locking as locked:
            recorder = begin_record(request, prepared, locked, observer)
            record_now = partial(record_inputs, recorder, prepared)
            submit_begun(recorder, prepared, engine, observer, record_now)
        record = recorder.refresh()
        if request.follow and record.status == "running":
            record = follow(recorder.run_dir, service, observer, request.poll_s)
    return record


def submit_begun(
    recorder: Recorder,
    prepared: PreparedRun,
    engine: ServiceEngine,
    observer: Observer,
    record_now: partial[None] | None = None,
    *,
    resumed: bool = False,
) -> None:
    """Submits a run whose record has begun.

    Raises:
      RemoteError: whether the service took the job is not known.
    """
    workers = recorder.run_started.workers
    plan = make_plan(recorder, prepared, workers=workers, locks=(), resumed=resumed)
    execute(plan, recorder, engine, observer, record_now or (lambda: None))
    if unanswered := engine.unanswered:
        raise RemoteError(
            f"it is not known whether run {recorder.run_dir.name} was submitted",
            details=str(unanswered).splitlines(),
            hint=f"sluice status {prepared.config.name}   (asks the service again)",
        )
