"""Operation: runs a pipeline in a service."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.checks.before_run import check_before_run
from pipeline.config.config import Config
from runners.cloud.job_inputs import (
    CompiledJob,
    cloud_locations,
    explain_storage,
    job_parameters,
    upload,
)
from runners.cloud.refresh import follow, record_uri_of
from runners.cloud.spec import read_spec
from runners.cloud.submitted_job import job_lock, save_job
from runners.cloud.task_settings import tasks_of
from runners.cloud.vertex_client import RUN_LABEL, VertexService, service_of, vertex_job
from runners.engine import Observer
from runners.operations.compile import compile_checked
from runners.operations.notify import notify
from runners.operations.prepared_run import PreparedRun
from runners.operations.run import parse_tags, prepare_run
from sluice.errors import SluiceError
from sluice.record.run_record import RunOptions, RunRecord
from sluice.storage.storage import storage_for
from sluice.workspace import private_umask


def submit(
    config: Config,
    options: RunOptions,
    *,
    command: str = "runners.operations.submit",
    observer: Observer,
    tags: Sequence[str] = (),
    wait: bool = False,
) -> RunRecord:
    """Submits a run; its spans are chosen now, as those of a local run.

    Args:
      config: of the pipeline, with a ``cloud`` section.
      options: of the run: the cache and the data gate.
      command: the command line or the caller, for the record.
      observer: of the run.
      tags: see ``run``.
      wait: whether to wait for the end of the run.

    Returns:
      The record; its status is ``running`` where the run goes on in the service.

    Raises:
      UsageError: the config or the data is wrong.
      RemoteError: the service does not answer any more while its run is waited for.
    """
    tag_values = parse_tags(tags)
    # Before the data is looked for: data of this machine is a problem.
    warn = observer.on_warning
    config = check_before_run(config, in_service=True, on_warning=warn)
    service = service_of(config)
    # The data is listed: without a network this fails, and nothing has begun.
    prepared = prepare_run(config, cloud_locations(config).serving_dir)
    observer.on_note("compiling for the service")
    compiled = compile_checked(config)
    with private_umask(config.private):
        record = prepared.begin(options, command, tag_values)
        run_dir = prepared.workspace.run_dir(record.run_id)
        with job_lock(run_dir):
            _submit(prepared, compiled, record, service, observer)
            record.save(run_dir)
        if wait and record.status == "running":
            record = follow(run_dir, config, observer)
            notify(config.notify, prepared.workspace, record)
    return record


def _submit(
    prepared: PreparedRun,
    compiled: CompiledJob,
    record: RunRecord,
    service: VertexService,
    observer: Observer,
) -> None:
    """Submits a run that has begun; a refusal ends its record."""
    config, job = prepared.config, compiled.job
    run_dir = prepared.workspace.run_dir(record.run_id)
    job_id = f"run-{config.name[:100]}-{record.run_id}".lower()
    # First: if this process is killed, the service is asked for the job of this name.
    page = service.page(job_id)
    save_job(run_dir, service.name_of(job_id), page)
    record.set_graph(read_spec(job).graph())
    prepared.save(record)
    observer.on_begin(record)
    try:
        prepared.record_inputs(record)
        with explain_storage(config):
            values = job_parameters(
                job,
                prepared.serving_dir,
                cloud_locations(config).inputs_uri,
                prepared.choice,
                record.options.accept_data,
            )
            for item in compiled.uploads:
                upload(item)
            uri = f"{record_uri_of(config, record.run_id)}/config.json"
            content = (run_dir / "config.json").read_bytes()
            storage_for(uri).write_atomically(uri, content)
        job["runtimeConfig"].setdefault("parameterValues", {}).update(values)
        if not record.options.use_cache:
            for task in tasks_of(job["pipelineSpec"]).values():
                task["cachingOptions"] = {"enableCache": False}
        labels = {RUN_LABEL: record.run_id.lower()}
        service.submit(job_id, vertex_job(config, job, labels))
        observer.on_note(f"submitted: {page}")
    except SluiceError as error:
        record.fail(str(error), error.exit_code)
        record.end()
