"""Sets the schedule of a pipeline on Vertex AI."""

from __future__ import annotations

from pipeline.config.config import Config
from runners.cloud.check_cloud import check_cloud, cloud_of
from runners.cloud.compile_spec import compile_checked
from runners.cloud.image import check_images
from runners.cloud.job_inputs import explain_storage, upload
from runners.engine import Observer
from runners.operations.pipeline_request import validated
from runners.vertex.client import service_of, vertex_job
from runners.vertex.schedules import ServiceSchedule, VertexSchedules
from sluice.errors import UsageError


def set_schedule(config: Config, observer: Observer) -> ServiceSchedule:
    """Creates the schedule of a pipeline, or changes it in place.

    The pipeline is compiled as it is now: what is changed later runs after the next
    call. Takes as long as importing TFX does.

    Args:
      config: of the pipeline; ``cloud.schedule`` says when.
      observer: its ``on_warning`` and ``on_note`` are called.

    Raises:
      UsageError: the config is wrong.
      RemoteError: the service or its storage refuses, or does not answer.
    """
    check_cloud(config)
    wanted = cloud_of(config).schedule
    if wanted is None:
        raise UsageError(
            "neither the command nor the config says when runs start",
            where="cloud.schedule.cron",
            hint="--cron '0 3 * * *', for three o'clock every night",
        )
    schedules = VertexSchedules(service_of(config))
    config = validated(config)
    check_images(config)
    observer.on_note("compiling for the service")
    compiled = compile_checked(config, scheduled=True)
    for warning in compiled.warnings:
        observer.on_warning(warning)
    with explain_storage(config):
        for item in compiled.uploads:
            upload(item)
    return schedules.put(config.name, wanted, vertex_job(config, compiled.job, {}))
