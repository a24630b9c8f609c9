"""Schedules of a service: one per pipeline, created once and changed in place.

A schedule is known by its display name, which services do not keep unique: a lost
answer, an interrupted ``set`` or two at the same time can leave several. The newest one
of a pipeline takes over, and the others are deleted: by every ``set``, ``pause`` and
``resume``, so that exactly one remains, however calls are interleaved.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from runners.cloud.cron import Cron
from runners.cloud.service import PIPELINE_LABEL

ScheduleState = Literal["active", "paused", "completed"]

_PREFIX = "sluice-"
_MAX_ROUNDS = 10


@dataclass(frozen=True)
class WantedSchedule:
    """A schedule to create, or to change the present one into.

    Attributes:
      pipeline: its name.
      cron: when runs start.
      max_concurrent: runs at the same time, at most.
      catch_up: whether missed runs are made up for.
      job: compiled for a schedule: ``pipelineSpec`` and ``runtimeConfig``.
      labels: of its runs, besides ``PIPELINE_LABEL``.
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


class Schedules(ABC):
    """Client of a service that starts runs by itself.

    Every method raises ``RemoteError`` if the service refuses or does not answer.

    Attributes:
      engine: the config's name of the service, ``cloud.engine``.
      timezone: of cron expressions that name none.
    """

    engine: str
    timezone: str = "UTC"

    @abstractmethod
    def check(self, cron: Cron) -> None:
        """Raises a ``ConfigError`` for what this service cannot do; asks it nothing."""

    def set(self, wanted: WantedSchedule) -> ServiceSchedule:
        """Creates or changes the schedule of a pipeline; a paused one stays paused.

        Returns:
          The schedule of the pipeline now: another one if it was set meanwhile.

        Raises:
          ConfigError: as ``check``.
        """
        self.check(wanted.cron)
        made = self._put(wanted)
        # A service may not list yet what it has just created.
        return self._settle(wanted.pipeline) or made

    def list(self) -> Sequence[ServiceSchedule]:
        """Returns the schedule of each pipeline, oldest first.

        Of several, as an interrupted ``set`` leaves them, the one that starts runs.
        """
        found: dict[str, ServiceSchedule] = {}
        for item in self._listed(None):
            known = found.get(item.pipeline)
            if known is None or item.state == "active" or known.state != "active":
                found[item.pipeline] = item
        return list(found.values())

    def pause(self, pipeline: str) -> None:
        """Starts no more runs; those in progress go on."""
        if found := self._settle(pipeline):
            self._pause(found.name)

    def resume(self, pipeline: str) -> None:
        """Starts runs again; also those missed meanwhile if the schedule catches up."""
        if found := self._settle(pipeline):
            self._resume(found)

    def delete(self, pipeline: str) -> None:
        """Deletes the schedule of a pipeline; its runs stay."""
        for item in self._listed(pipeline):
            self._delete(item.name)

    def _settle(self, pipeline: str) -> ServiceSchedule | None:
        """Lets the newest schedule take over, deletes the others, and returns it.

        Each process deletes only what it has seen a newer one of, and looks again
        afterwards: so the newest of all is never deleted, and every other one is.
        """
        for _ in range(_MAX_ROUNDS):
            found = self._listed(pipeline)
            if len(found) < 2:
                break
            self._replace(found[:-1], found[-1])
        return found[-1] if found else None

    @abstractmethod
    def _put(self, wanted: WantedSchedule) -> ServiceSchedule:
        """Creates a schedule, or changes the newest one."""

    @abstractmethod
    def _listed(self, pipeline: str | None) -> Sequence[ServiceSchedule]:
        """Returns our schedules, oldest first; of one pipeline, or of all for None."""

    @abstractmethod
    def _replace(
        self, others: Sequence[ServiceSchedule], newest: ServiceSchedule
    ) -> None:
        """Deletes others; the newest one then starts the runs."""

    @abstractmethod
    def _pause(self, name: str) -> None: ...

    @abstractmethod
    def _resume(self, found: ServiceSchedule) -> None: ...

    @abstractmethod
    def _delete(self, name: str) -> None:
        """Deletes a schedule; one that is gone is no error."""


def display_name(pipeline: str) -> str:
    """Returns the name of a pipeline's schedule in a service."""
    return f"{_PREFIX}{pipeline}"


def pipeline_of(name: str, labels: Mapping[str, str]) -> str | None:
    """Returns the pipeline of a schedule; None if it is not ours.

    Args:
      name: its display name.
      labels: of its runs.
    """
    pipeline = labels.get(PIPELINE_LABEL)
    return pipeline if pipeline and name == display_name(pipeline) else None
