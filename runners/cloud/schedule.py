"""Protocol of a service's schedules: one per pipeline, changed in place.

A schedule is known by its display name, which services do not keep unique: whoever
creates one looks first, and removes what a lost answer has left twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, Protocol

from runners.cloud.cron import Cron

ScheduleState = Literal["active", "paused", "completed"]

_PREFIX = "sluice-"


@dataclass(frozen=True)
class WantedSchedule:
    """A schedule to create, or to change the present one into.

    Attributes:
      pipeline: its name.
      cron: when runs start.
      max_concurrent: runs at the same time, at most.
      catch_up: whether missed runs are made up for.
      job: compiled for a schedule: ``pipelineSpec`` and ``runtimeConfig``.
      labels: of its runs.
    """

    pipeline: str
    cron: Cron
    max_concurrent: int
    catch_up: bool
    job: Mapping[str, Any]
    labels: Mapping[str, str]


@dataclass(frozen=True)
class ServiceSchedule:
    """A schedule as the service has it.

    Attributes:
      name: by which the service knows it.
      pipeline: its name.
      cron: five fields.
      timezone: of the cron expression.
      state: ``completed`` if it starts no more runs.
      max_concurrent: runs at the same time, at most.
      catch_up: whether missed runs are made up for.
      created_at: UTC, ISO 8601.
      updated_at: likewise; None if it is not known.
    """

    name: str
    pipeline: str
    cron: str
    timezone: str
    state: ScheduleState
    max_concurrent: int
    catch_up: bool
    created_at: str | None = None
    updated_at: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Returns the JSON form."""
        return asdict(self)


class Schedules(Protocol):
    """Client of a service that starts runs by itself.

    Every method raises ``RemoteError`` if the service refuses or does not answer.

    Attributes:
      engine: the config's name of the service, ``cloud.engine``.
    """

    engine: str

    def check(self, cron: Cron) -> None:
        """Raises a ``ConfigError`` for what this service cannot do; asks it nothing."""
        ...

    def set(self, wanted: WantedSchedule) -> ServiceSchedule:
        """Creates or changes the schedule of a pipeline; a paused one stays paused."""
        ...

    def list(self) -> Sequence[ServiceSchedule]:
        """Returns the schedules of all pipelines, oldest first."""
        ...

    def pause(self, name: str) -> None:
        """Starts no more runs; those in progress go on."""
        ...

    def resume(self, name: str, *, catch_up: bool) -> None:
        """Starts runs again; also those missed meanwhile if ``catch_up``."""
        ...

    def delete(self, name: str) -> None:
        """Deletes a schedule; its runs stay."""
        ...


def display_name(pipeline: str) -> str:
    """Returns the name of a pipeline's schedule in a service."""
    return f"{_PREFIX}{pipeline}"


def pipeline_of(name: str) -> str | None:
    """Returns the pipeline of a display name; None if the schedule is not ours."""
    return name.removeprefix(_PREFIX) if name.startswith(_PREFIX) else None
