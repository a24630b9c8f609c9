"""Schedules on Kubeflow Pipelines: recurring runs.

A recurring run cannot be changed there, only replaced: the new one is created disabled,
the old one disabled, the new one enabled, the old one deleted. Wherever that is
interrupted, at most one of them is enabled, and the next call goes on from there. What
the service does not store (the timezone, five-field cron) is in the description.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import kfp_server_api

from runners.cloud.cron import Cron
from runners.cloud.schedule import (
    ServiceSchedule,
    WantedSchedule,
    display_name,
    pipeline_of,
)
from runners.cloud.service import PIPELINE_LABEL
from runners.kubeflow.client import iso_time
from runners.kubeflow.service import KubeflowService
from sluice.errors import ConfigError
from sluice.storage import digest

_ENABLED = "ENABLED"


class KubeflowSchedules:
    """Recurring runs of one installation; see ``Schedules``.

    Args:
      service: of a pipeline in this installation.
    """

    engine = "kubeflow"

    def __init__(self, service: KubeflowService) -> None:
        self._service, self._client = service, service.client
        self._api = service.client.recurring_runs

    def check(self, cron: Cron) -> None:
        """Raises a ``ConfigError`` for a timezone that is not the installation's."""
        installed = self._client.settings.timezone
        if cron.timezone != installed:
            raise ConfigError(
                "Kubeflow Pipelines has one timezone for all schedules",
                where="cloud.kubeflow.timezone",
                expected=f"a schedule in {installed}",
                actual=cron.timezone,
                hint=f"--timezone {installed}, or set CRON_SCHEDULE_TIMEZONE of its "
                "deployment ml-pipeline-scheduledworkflow and "
                f"cloud.kubeflow.timezone={cron.timezone}",
            )

    def set(self, wanted: WantedSchedule) -> ServiceSchedule:
        """Replaces the recurring run of a pipeline, unless it is already as wanted.

        Raises:
          ConfigError: its timezone is not that of the installation.
        """
        self.check(wanted.cron)
        before = self._named(wanted.pipeline)
        paused = _is_paused(before)
        body = self._body(wanted, paused)
        # Alone it needs no second step, before which it would look like a paused one.
        body.mode = "DISABLE" if before else "ENABLE"
        made = json.loads(body.description)["digest"]

        def find() -> Any:
            same = (run for run in self._named(wanted.pipeline) if _digest(run) == made)
            return next(same, None)

        create = self._api.recurring_run_service_create_recurring_run
        name = self._client.create_once(find, create, body).recurring_run_id
        others = [
            run for run in self._named(wanted.pipeline) if run.recurring_run_id != name
        ]
        for run in others:
            self.pause(run.recurring_run_id)
        if not paused:
            self.resume(name, catch_up=wanted.catch_up)
        for run in others:
            self.delete(run.recurring_run_id)
        return _schedule(self._client.call(self._get, name))

    def list(self) -> Sequence[ServiceSchedule]:
        """Returns the recurring runs with our names, in all experiments."""
        runs = self._client.listed(
            self._api.recurring_run_service_list_recurring_runs,
            "recurring_runs",
            {"display_name": ("IS_SUBSTRING", display_name(""))},
            namespace=self._client.settings.namespace,
        )
        ours = [run for run in runs if pipeline_of(run.display_name)]
        ours.sort(key=lambda run: run.created_at)
        return [_schedule(run) for run in ours]

    def pause(self, name: str) -> None:
        """Disables a recurring run."""
        self._client.call(self._api.recurring_run_service_disable_recurring_run, name)

    def resume(self, name: str, *, catch_up: bool) -> None:
        """Enables a recurring run; whether it catches up was decided by ``set``."""
        self._client.call(self._api.recurring_run_service_enable_recurring_run, name)

    def delete(self, name: str) -> None:
        """Deletes a recurring run; one that is gone is no error."""
        delete = self._api.recurring_run_service_delete_recurring_run
        self._client.found(delete, name)

    @property
    def _get(self) -> Any:
        return self._api.recurring_run_service_get_recurring_run

    def _named(self, pipeline: str) -> Sequence[Any]:
        """Returns the recurring runs of a pipeline, oldest first."""
        runs = self._client.listed(
            self._api.recurring_run_service_list_recurring_runs,
            "recurring_runs",
            {"display_name": ("EQUALS", display_name(pipeline))},
            namespace=self._client.settings.namespace,
        )
        return sorted(runs, key=lambda run: run.created_at)

    def _body(self, wanted: WantedSchedule, paused: bool) -> Any:
        settings = wanted.job["runtimeConfig"]
        runtime = {
            "parameters": settings.get("parameterValues", {}),
            "pipeline_root": settings["gcsOutputDirectory"],
        }
        schedule = {
            # robfig/cron reads five fields as seconds to months.
            "trigger": {"cron_schedule": {"cron": f"0 {wanted.cron.expression}"}},
            "max_concurrency": str(wanted.max_concurrent),
            "no_catchup": not wanted.catch_up,
            "service_account": self._service.service_account,
            "experiment_id": self._service.experiment_id(),
        }
        content = [wanted.job["pipelineSpec"], runtime, schedule, dict(wanted.labels)]
        text = json.dumps(content, sort_keys=True)
        description = {
            **wanted.labels,
            PIPELINE_LABEL: wanted.pipeline,
            "timezone": wanted.cron.timezone,
            "paused": paused,
            "digest": digest.of_bytes(text.encode()),
        }
        return kfp_server_api.V2beta1RecurringRun(
            display_name=display_name(wanted.pipeline),
            description=json.dumps(description),
            pipeline_spec=wanted.job["pipelineSpec"],
            runtime_config=runtime,
            **schedule,
        )


def _is_paused(runs: Sequence[Any]) -> bool:
    """Whether a user has paused a schedule; of an interrupted ``set``, before it."""
    if not runs or any(run.status == _ENABLED for run in runs):
        return False
    return len(runs) == 1 or bool(_described(runs[-1]).get("paused"))


def _schedule(run: Any) -> ServiceSchedule:
    described = _described(run)
    fields = run.trigger.cron_schedule.cron.split() if run.trigger else []
    return ServiceSchedule(
        name=run.recurring_run_id,
        pipeline=pipeline_of(run.display_name) or run.display_name,
        cron=" ".join(fields[-5:]),
        timezone=described.get("timezone", "UTC"),
        state="active" if run.status == _ENABLED else "paused",
        max_concurrent=int(run.max_concurrency or 1),
        catch_up=not run.no_catchup,
        created_at=iso_time(run.created_at),
        updated_at=iso_time(run.updated_at),
    )


def _digest(run: Any) -> str | None:
    return _described(run).get("digest")


def _described(run: Any) -> Mapping[str, Any]:
    try:
        found = json.loads(run.description or "")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
