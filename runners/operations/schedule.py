"""Operations: set, list, pause, resume and delete schedules of a service."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from datetime import datetime, timezone
from typing import Any

from pipeline.config.cloud import Schedule
from pipeline.config.config import Config
from runners.cloud.compile_spec import check_cloud, compile_checked
from runners.cloud.cron import Cron
from runners.cloud.job_inputs import upload
from runners.cloud.lint.finding import SERVICES, refuse
from runners.cloud.lint.lint_config import lint_config
from runners.cloud.registry import check_images
from runners.cloud.schedule import Schedules, ServiceSchedule, WantedSchedule
from runners.cloud.service import SPEC_LABEL, JobState
from runners.cloud.service_engine import explain_storage
from runners.cloud.spec import read_spec
from runners.engine import Observer
from runners.operations.compile import EngineName, with_engine
from runners.operations.pipeline_request import PipelineRequest
from runners.operations.service_runs import service_for
from sluice.errors import UsageError

_LABEL_LENGTH = 16
_LAST_RUNS = 5


@dataclass(frozen=True, kw_only=True)
class ScheduleRequest(PipelineRequest):
    """Request that names the schedule of a pipeline.

    Attributes:
      engine: instead of ``cloud.engine``.
    """

    engine: EngineName | None = None


@dataclass(frozen=True, kw_only=True)
class SetScheduleRequest(ScheduleRequest):
    """Request to create or change a schedule; None for what the config says.

    Attributes:
      cron: five fields.
      timezone: of the cron expression.
      max_concurrent: runs at the same time, at most.
      catch_up: whether missed runs are made up for.
    """

    cron: str | None = None
    timezone: str | None = None
    max_concurrent: int | None = None
    catch_up: bool | None = None


@dataclass(frozen=True)
class PastRun:
    """A run of a pipeline in the service, scheduled or submitted.

    Attributes:
      created_at: UTC, ISO 8601.
      state: see ``JobState``.
      page: its address in the service's console; None if there is none.
    """

    created_at: str | None
    state: JobState
    page: str | None


@dataclass(frozen=True)
class ScheduleView:
    """A schedule and when it starts runs.

    Attributes:
      engine: the service.
      schedule: as the service has it.
      next_times: in the schedule's timezone, computed here; empty if it is not active.
      last_runs: of the pipeline, newest first; only of ``show_schedule``.
    """

    engine: str
    schedule: ServiceSchedule
    next_times: tuple[datetime, ...]
    last_runs: tuple[PastRun, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Returns the JSON form."""
        return {
            "schema_version": 1,
            "engine": self.engine,
            **self.schedule.to_dict(),
            "next_times": [time.isoformat() for time in self.next_times],
            "last_runs": [asdict(run) for run in self.last_runs],
        }


def set_schedule(
    request: SetScheduleRequest,
    observer: Observer | None = None,
) -> ScheduleView:
    """Creates the schedule of a pipeline, or changes it in place.

    The pipeline is compiled as it is now: what is changed later runs after the next
    call. Takes as long as importing TFX does.

    Args:
      request: which pipeline, and when.
      observer: its ``on_warning`` and ``on_note`` are called; None for none.

    Raises:
      UsageError: the request or the config is wrong.
      RemoteError: the service or its storage refuses, or does not answer.
    """
    observer = observer or Observer()
    config = with_engine(request.validated_config(), request.engine)
    schedules, settings = schedules_for(config), _settings(request, config)
    cron = Cron(settings.cron, settings.timezone or schedules.timezone)
    schedules.check(cron)
    refuse(lint_config(config), config)
    check_images(config, observer.on_warning)
    observer.on_note("compiling for the service")
    compiled = compile_checked(config, scheduled=True)
    for warning in compiled.warnings:
        observer.on_warning(str(warning))
    # The client takes a second to import.
    from sluice.storage.gcs_storage import giving_up_soon

    with explain_storage(config), giving_up_soon():
        for item in compiled.uploads:
            upload(item)
    labels = {
        **compiled.job.get("labels", {}),
        SPEC_LABEL: read_spec(compiled.job).digest[:_LABEL_LENGTH],
    }
    wanted = WantedSchedule(
        config.name,
        cron,
        settings.max_concurrent,
        settings.catch_up,
        compiled.job,
        labels,
    )
    return _view(schedules, schedules.set(wanted))


def list_schedules(request: ScheduleRequest) -> list[ScheduleView]:
    """Returns the schedules of all pipelines in the service of a config.

    Raises:
      UsageError: the config is wrong.
      RemoteError: the service refuses, or does not answer.
    """
    schedules = schedules_for(_config_of(request))
    return [_view(schedules, found) for found in schedules.list()]


def show_schedule(request: ScheduleRequest) -> ScheduleView:
    """Returns the schedule of a pipeline, and the last runs of the pipeline there.

    Raises:
      UsageError: it has none, or the config is wrong.
      RemoteError: the service refuses, or does not answer.
    """
    schedules, found = _find(request)
    service = service_for(_config_of(request))
    runs = tuple(
        PastRun(job.created_at, job.state, service.page(job.name))
        for job in service.list(found.pipeline, _LAST_RUNS)
    )
    return replace(_view(schedules, found), last_runs=runs)


def pause_schedule(request: ScheduleRequest) -> ScheduleView:
    """Pauses a schedule; raises as ``show_schedule``."""
    schedules, found = _find(request)
    schedules.pause(found.pipeline)
    return show_schedule(request)


def resume_schedule(request: ScheduleRequest) -> ScheduleView:
    """Resumes a paused schedule; raises as ``show_schedule``."""
    schedules, found = _find(request)
    schedules.resume(found.pipeline)
    return show_schedule(request)


def delete_schedule(request: ScheduleRequest) -> ScheduleView:
    """Deletes a schedule and returns what it was; raises as ``show_schedule``."""
    schedules, found = _find(request)
    schedules.delete(found.pipeline)
    return ScheduleView(schedules.engine, found, ())


def schedules_for(config: Config) -> Schedules:
    """Returns the schedules of a config's service; asks it nothing.

    Raises:
      ConfigError: the config does not say where it is.
    """
    service: Any = service_for(config)
    if service.engine == "kubeflow":
        from runners.kubeflow.schedules import KubeflowSchedules

        return KubeflowSchedules(service)
    from runners.vertex.schedules import VertexSchedules

    return VertexSchedules(service)


def _config_of(request: ScheduleRequest) -> Config:
    config = with_engine(request.load_config(), request.engine)
    check_cloud(config)
    return config


def _find(request: ScheduleRequest) -> tuple[Schedules, ServiceSchedule]:
    config = _config_of(request)
    schedules = schedules_for(config)
    for found in schedules.list():
        if found.pipeline == config.name:
            return schedules, found
    words = ["schedule", "set", request.name, *request.same_config()]
    if request.engine is not None:
        words += ["--engine", request.engine]
    raise UsageError(
        f"{config.name} has no schedule on {SERVICES[schedules.engine]}",
        hint=request.next_command(*words, "--cron", "0 3 * * *"),
    )


def _settings(request: SetScheduleRequest, config: Config) -> Schedule:
    """Returns when runs start, and how, from the request or else the config.

    Raises:
      UsageError: neither says when.
    """
    configured = config.cloud.schedule if config.cloud else None
    asked = {name: getattr(request, name) for name in Schedule.model_fields}
    given = {name: value for name, value in asked.items() if value is not None}
    if configured is None and request.cron is None:
        raise UsageError(
            "neither the command nor the config says when runs start",
            where="cloud.schedule.cron",
            hint="--cron '0 3 * * *', for three o'clock every night",
        )
    return Schedule.model_construct(
        **{**(configured.model_dump() if configured else {}), **given}
    )


def _view(schedules: Schedules, found: ServiceSchedule) -> ScheduleView:
    times: tuple[datetime, ...] = ()
    if found.state == "active":
        now = datetime.now(timezone.utc)
        times = tuple(Cron(found.cron, found.timezone).next_times(now))
    return ScheduleView(schedules.engine, found, times)
