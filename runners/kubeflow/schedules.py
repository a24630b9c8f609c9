"""Schedules on Kubeflow Pipelines: recurring runs.

A recurring run cannot be changed there, only replaced: the new one is created disabled,
the old one disabled, the new one enabled, the old one deleted. Wherever that is
interrupted, the old one or the new one runs, and the next call goes on from there. What
the service does not store (the timezone, five-field cron) is in the description.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

import kfp_server_api

from runners.cloud.cron import Cron
from runners.cloud.schedule import (
    Schedules,
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


class KubeflowSchedules(Schedules):
    """Recurring runs of one installation.

    Args:
      service: of a pipeline in this installation.
    """

    engine = "kubeflow"

    def __init__(self, service: KubeflowService) -> None:
        self._service, self._client = service, service.client
        self._api = service.client.recurring_runs
        self.timezone = service.client.settings.timezone

    def check(self, cron: Cron) -> None:
        """Raises a ``ConfigError`` for a timezone that is not the installation's."""
        installed = self.timezone
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

    def _put(self, wanted: WantedSchedule) -> ServiceSchedule:
        before = self._ours(wanted.pipeline)
        body = self._body(wanted, _is_paused(before))
        # Alone it needs no second step, before which it would look like a paused one.
        body.mode = "DISABLE" if before else "ENABLE"
        made = json.loads(body.description)["digest"]

        def find() -> Any:
            newest = next(reversed(self._ours(wanted.pipeline)), None)
            return newest if newest and _described(newest)["digest"] == made else None

        create = self._api.recurring_run_service_create_recurring_run
        return _schedule(self._client.create_once(find, create, body))

    def _listed(self, pipeline: str | None) -> Sequence[ServiceSchedule]:
        return [*map(_schedule, self._ours(pipeline))]

    def _replace(
        self, others: Sequence[ServiceSchedule], newest: ServiceSchedule
    ) -> None:
        get = self._api.recurring_run_service_get_recurring_run
        run = self._client.found(get, newest.name)
        for item in others:
            self._pause(item.name)
        if run is not None and not _described(run)["paused"]:
            self._resume(newest)
        for item in others:
            self._delete(item.name)

    def _pause(self, name: str) -> None:
        # One that is gone has been replaced.
        disable = self._api.recurring_run_service_disable_recurring_run
        self._client.found(disable, name)

    def _resume(self, found: ServiceSchedule) -> None:
        enable = self._api.recurring_run_service_enable_recurring_run
        self._client.found(enable, found.name)

    def _delete(self, name: str) -> None:
        delete = self._api.recurring_run_service_delete_recurring_run
        self._client.found(delete, name)

    def _ours(self, pipeline: str | None) -> Sequence[Any]:
        """Returns what ``_listed`` does, as the service describes it."""
        name = display_name(pipeline or "")
        runs = self._client.listed(
            self._api.recurring_run_service_list_recurring_runs,
            "recurring_runs",
            {"display_name": ("EQUALS" if pipeline else "IS_SUBSTRING", name)},
            namespace=self._client.settings.namespace,
        )
        ours = [run for run in runs if _described(run)]
        # The service has whole seconds only.
        return sorted(
            ours,
            key=lambda run: (
                run.created_at,
                _described(run)["set_at"],
                run.recurring_run_id,
            ),
        )

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
            "set_at": datetime.now(timezone.utc).isoformat(),
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
    return len(runs) == 1 or bool(_described(runs[-1])["paused"])


def _schedule(run: Any) -> ServiceSchedule:
    described = _described(run)
    return ServiceSchedule(
        name=run.recurring_run_id,
        pipeline=described[PIPELINE_LABEL],
        cron=" ".join(run.trigger.cron_schedule.cron.split()[-5:]),
        timezone=described["timezone"],
        state="active" if run.status == _ENABLED else "paused",
        max_concurrent=int(run.max_concurrency or 1),
        catch_up=not run.no_catchup,
        created_at=iso_time(run.created_at),
        updated_at=iso_time(run.updated_at),
    )


def _described(run: Any) -> Mapping[str, Any]:
    """Returns the content of the description; empty where it is not ours."""
    try:
        found = json.loads(run.description or "")
    except ValueError:
        return {}
    is_ours = isinstance(found, dict) and pipeline_of(run.display_name, found)
    return found if is_ours else {}
