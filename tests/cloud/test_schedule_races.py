"""Schedules on Kubeflow that are set at the same time, or by a killed process.

The service neither keeps names unique nor changes a recurring run in place.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import count
from random import Random
from typing import Any

import pytest
from fake_kfp import FakeKfp

from pipeline.config.cloud import Cloud, Kubeflow
from runners.cloud.cron import Cron
from runners.cloud.schedule import Schedules, ServiceSchedule, WantedSchedule
from runners.kubeflow.schedules import KubeflowSchedules
from runners.kubeflow.service import KubeflowService

pytestmark = [pytest.mark.cloud, pytest.mark.fault]

_SPEC: dict[str, Any] = {
    "pipelineInfo": {"name": "digits"},
    "schemaVersion": "2.1.0",
    "sdkVersion": "tfx-1.16.0",
    "components": {},
    "deploymentSpec": {"executors": {}},
    "root": {"dag": {"tasks": {}}},
}
_OLD = WantedSchedule(
    pipeline="digits",
    cron=Cron("0 1 * * *"),
    max_concurrent=1,
    catch_up=False,
    job={
        "pipelineSpec": _SPEC,
        "runtimeConfig": {"gcsOutputDirectory": "gs://b/root"},
    },
    labels={},
)
_FIRST = replace(_OLD, cron=Cron("0 2 * * *"))
_SECOND = replace(_OLD, cron=Cron("0 3 * * *"))
_Wanted = tuple[WantedSchedule, ...]


@pytest.fixture
def kfp() -> Iterator[FakeKfp]:
    fake = FakeKfp(tick_s=0.1)
    yield fake
    fake.close()


def _client(kfp: FakeKfp) -> Schedules:
    cloud = Cloud(engine="kubeflow", kubeflow=Kubeflow(host=kfp.host))
    return KubeflowSchedules(KubeflowService(cloud, "digits"))


def _set_at_once(kfp: FakeKfp, wanted: _Wanted, seed: int) -> list[ServiceSchedule]:
    """Sets schedules from one thread each, their requests in a random order."""
    clients, random = [_client(kfp) for _ in wanted], Random(seed)
    kfp.on_request = lambda request: time.sleep(random.choice((0, 0.001, 0.004)))
    with ThreadPoolExecutor(len(wanted)) as threads:
        results = list(threads.map(lambda one, w: one.set(w), clients, wanted))
    kfp.on_request = None
    return results


def _crons(kfp: FakeKfp, status: str) -> list[str]:
    """Returns the cron expressions of what the service has in a state."""
    return [
        item["trigger"]["cron_schedule"]["cron"].removeprefix("0 ")
        for item in kfp.recurring_runs
        if item["status"] == status
    ]


@pytest.mark.parametrize("before", [None, "active", "paused"])
@pytest.mark.parametrize("racing", [(_FIRST, _SECOND), (_FIRST, _SECOND, _OLD)])
def test_of_simultaneous_sets_exactly_one_remains(
    kfp: FakeKfp, before: str | None, racing: _Wanted
) -> None:
    schedules = _client(kfp)
    for seed in range(8):
        schedules.delete("digits")
        if before:
            schedules.set(_OLD)
        if before == "paused":
            schedules.pause("digits")
        results = _set_at_once(kfp, racing, seed)
        (kept,) = schedules.list()
        state = "paused" if before == "paused" else "active"
        assert kept.cron in {one.cron.expression for one in racing}
        assert kept.state == state
        status = "DISABLED" if before == "paused" else "ENABLED"
        assert _crons(kfp, status) == [kept.cron]
        assert len(kfp.recurring_runs) == 1
        assert kept.name in {result.name for result in results}


def _set_until_killed(kfp: FakeKfp, wanted: WantedSchedule, requests: int) -> bool:
    """Sets a schedule in a process that is killed at its n-th request.

    Returns:
      Whether it was killed, and had not ended before.
    """
    left = count(requests, -1)

    def kill(request: str) -> None:
        if next(left) == 0:
            os.kill(int(process.pid or 0), signal.SIGKILL)
            raise ConnectionAbortedError

    process = multiprocessing.get_context("fork").Process(
        target=lambda: _client(kfp).set(wanted)
    )
    kfp.on_request = kill
    process.start()
    process.join(30)
    kfp.on_request = None
    return process.exitcode == -signal.SIGKILL


@pytest.mark.parametrize("before", ["active", "paused"])
def test_a_killed_set_leaves_one_schedule_and_the_next_call_completes_it(
    kfp: FakeKfp, before: str
) -> None:
    schedules = _client(kfp)
    interrupted = 0
    for requests in count():
        schedules.delete("digits")
        schedules.set(_OLD)
        if before == "paused":
            schedules.pause("digits")
        killed = _set_until_killed(kfp, _FIRST, requests)
        interrupted += len(kfp.recurring_runs) > 1
        (shown,) = schedules.list()
        assert shown.cron in {"0 1 * * *", "0 2 * * *"}
        assert len(_crons(kfp, "ENABLED")) <= (before == "active")
        if requests % 2:
            changed = schedules.set(_SECOND)
            assert (changed.cron, changed.state) == ("0 3 * * *", before)
        else:
            schedules.pause("digits")
            (changed,) = schedules.list()
            assert changed.state == "paused"
        assert len(kfp.recurring_runs) == 1
        if not killed:
            break
    assert interrupted >= 3


def test_a_killed_first_set_is_not_taken_for_a_pause(kfp: FakeKfp) -> None:
    schedules = _client(kfp)
    for requests in range(4, 10):
        schedules.delete("digits")
        _set_until_killed(kfp, _FIRST, requests)
        assert schedules.set(_SECOND).state == "active"
        assert _crons(kfp, "ENABLED") == ["0 3 * * *"]
        assert _crons(kfp, "DISABLED") == []
