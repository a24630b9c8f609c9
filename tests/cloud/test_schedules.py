"""Schedules of both services: their real clients against the fakes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
from fake_kfp import TAKEN, FakeKfp
from fake_vertex import LOST, FakeVertex

from pipeline.config.cloud import Cloud, Kubeflow
from runners.cloud.cron import Cron
from runners.cloud.schedule import Schedules, WantedSchedule
from runners.kubeflow.schedules import KubeflowSchedules
from runners.kubeflow.service import KubeflowService
from runners.vertex.client import VertexService
from runners.vertex.schedules import VertexSchedules
from sluice.errors import ConfigError, RemoteError

pytestmark = pytest.mark.cloud

_JOB: dict[str, Any] = {
    "displayName": "digits",
    "pipelineSpec": {
        "pipelineInfo": {"name": "digits"},
        "schemaVersion": "2.1.0",
        "sdkVersion": "tfx-1.16.0",
        "components": {},
        "deploymentSpec": {"executors": {}},
        "root": {"dag": {"tasks": {}}},
    },
    "runtimeConfig": {"gcsOutputDirectory": "gs://b/root"},
}
_WANTED = WantedSchedule(
    pipeline="digits",
    cron=Cron("0 3 * * *"),
    max_concurrent=1,
    catch_up=False,
    job=_JOB,
    labels={"sluice-spec": "abc"},
)


@dataclass
class Place:
    """A service and its fake.

    Attributes:
      schedules: the client.
      stored: returns what the fake has.
      lose: loses the answer to the next request with this end of its path, which the
        fake executes.
      fail: answers the next creations with a status.
      enabled: whether a stored schedule starts runs.
      cron: of a stored schedule, as the service was given it.
      disown: makes a stored schedule one that was not created by Sluice.
    """

    schedules: Schedules
    stored: Callable[[], list[dict[str, Any]]]
    lose: Callable[[str], None]
    fail: Callable[[int], None]
    enabled: Callable[[dict[str, Any]], bool]
    cron: Callable[[dict[str, Any]], str]
    disown: Callable[[dict[str, Any]], object]


def _on_kubeflow(kfp: FakeKfp) -> Place:
    cloud = Cloud(engine="kubeflow", kubeflow=Kubeflow(host=kfp.host))
    return Place(
        schedules=KubeflowSchedules(KubeflowService(cloud, "digits")),
        stored=lambda: kfp.recurring_runs,
        lose=lambda end: kfp.fail("POST", f"{end}$", TAKEN),
        fail=lambda status: kfp.fail("POST", r"/recurringruns$", status, times=2),
        enabled=lambda item: item["status"] == "ENABLED",
        cron=lambda item: item["trigger"]["cron_schedule"]["cron"],
        disown=lambda item: item.update(
            description="by hand",
            trigger={"periodic_schedule": {"interval_second": "3600"}},
        ),
    )


def _on_vertex(vertex: FakeVertex) -> Place:
    service = VertexService("project", "europe-west4")
    return Place(
        schedules=VertexSchedules(service),
        stored=lambda: vertex.resources("schedules"),
        lose=lambda end: vertex.fail("POST", rf"{end}(\?|$)", LOST),
        fail=lambda status: vertex.fail("POST", r"/schedules(\?|$)", status, times=2),
        enabled=lambda item: item["state"] == "ACTIVE",
        cron=lambda item: item["cron"],
        disown=lambda item: item["createPipelineJobRequest"]["pipelineJob"].pop(
            "labels"
        ),
    )


@pytest.fixture(params=["vertex", "kubeflow"])
def place(request: pytest.FixtureRequest) -> Place:
    fake: Any = request.getfixturevalue(
        "kfp" if request.param == "kubeflow" else "vertex"
    )
    return _on_kubeflow(fake) if request.param == "kubeflow" else _on_vertex(fake)


def test_a_schedule_is_created_and_read_back(place: Place) -> None:
    made = place.schedules.set(_WANTED)
    assert (made.pipeline, made.cron, made.timezone) == ("digits", "0 3 * * *", "UTC")
    assert (made.state, made.max_concurrent, made.catch_up) == ("active", 1, False)
    assert place.schedules.list() == [made]
    (stored,) = place.stored()
    assert place.enabled(stored)


def test_it_is_changed_in_place_by_its_name(place: Place) -> None:
    place.schedules.set(_WANTED)
    spec = {**_JOB["pipelineSpec"], "pipelineInfo": {"name": "digits-new"}}
    wanted = replace(
        _WANTED,
        cron=Cron("30 4 * * 1"),
        max_concurrent=2,
        catch_up=True,
        job={**_JOB, "pipelineSpec": spec},
    )
    changed = place.schedules.set(wanted)
    assert (changed.cron, changed.max_concurrent) == ("30 4 * * 1", 2)
    assert (changed.catch_up, changed.state) == (True, "active")
    (stored,) = place.stored()
    assert "digits-new" in str(stored)


def test_the_same_again_changes_nothing(place: Place) -> None:
    first = place.schedules.set(_WANTED)
    again = place.schedules.set(_WANTED)
    assert (again.name, again.state) == (first.name, "active")
    assert len(place.stored()) == 1


def test_a_lost_answer_does_not_create_two(place: Place) -> None:
    place.lose("/(schedules|recurringruns)")
    made = place.schedules.set(_WANTED)
    assert made.state == "active"
    assert len(place.stored()) == 1


def test_a_new_schedule_may_be_missing_in_the_list(vertex: FakeVertex) -> None:
    vertex.hidden_listings = 3
    assert _on_vertex(vertex).schedules.set(_WANTED).state == "active"


@pytest.mark.parametrize("status", [429, 503])
def test_a_busy_service_is_asked_again(place: Place, status: int) -> None:
    place.fail(status)
    assert place.schedules.set(_WANTED).state == "active"
    assert len(place.stored()) == 1


def test_a_paused_schedule_stays_paused_when_it_is_changed(place: Place) -> None:
    place.schedules.set(_WANTED)
    place.schedules.pause("digits")
    (paused,) = place.schedules.list()
    assert paused.state == "paused"
    changed = place.schedules.set(replace(_WANTED, cron=Cron("0 5 * * *")))
    assert (changed.state, changed.cron) == ("paused", "0 5 * * *")
    (stored,) = place.stored()
    assert not place.enabled(stored)
    place.schedules.resume("digits")
    (resumed,) = place.schedules.list()
    assert resumed.state == "active"


def test_a_deleted_schedule_is_gone_and_may_be_deleted_again(place: Place) -> None:
    place.schedules.set(_WANTED)
    place.schedules.delete("digits")
    assert place.stored() == []
    place.schedules.delete("digits")


def test_a_lost_answer_to_pause_or_resume_is_no_error(place: Place) -> None:
    place.schedules.set(_WANTED)
    place.lose(":(pause|disable)")
    place.schedules.pause("digits")
    assert [item.state for item in place.schedules.list()] == ["paused"]
    place.schedules.pause("digits")
    place.lose(":(resume|enable)")
    place.schedules.resume("digits")
    assert [item.state for item in place.schedules.list()] == ["active"]


def test_a_refusal_to_pause_is_an_error(vertex: FakeVertex) -> None:
    place = _on_vertex(vertex)
    place.schedules.set(_WANTED)
    vertex.fail("POST", ":pause", 400)
    with pytest.raises(RemoteError, match="refuse"):
        place.schedules.pause("digits")


def test_a_schedule_of_somebody_else_with_our_name_is_left_alone(place: Place) -> None:
    place.schedules.set(_WANTED)
    (foreign,) = place.stored()
    place.disown(foreign)
    before = dict(foreign)
    assert place.schedules.list() == []
    place.schedules.set(_WANTED)
    assert len(place.stored()) == 2
    assert [item.pipeline for item in place.schedules.list()] == ["digits"]
    place.schedules.pause("digits")
    place.schedules.delete("digits")
    assert place.stored() == [before]


def test_each_pipeline_has_its_own_schedule(place: Place) -> None:
    for pipeline in ("digits", "taxi", "flowers"):
        place.schedules.set(replace(_WANTED, pipeline=pipeline))
    listed = [item.pipeline for item in place.schedules.list()]
    assert listed == ["digits", "taxi", "flowers"]


def test_kubeflow_is_given_seconds_and_vertex_the_timezone(
    kfp: FakeKfp, vertex: FakeVertex
) -> None:
    on_kubeflow, on_vertex = _on_kubeflow(kfp), _on_vertex(vertex)
    on_kubeflow.schedules.set(_WANTED)
    berlin = replace(_WANTED, cron=Cron("0 3 * * *", "Europe/Berlin"))
    made = on_vertex.schedules.set(berlin)
    assert on_kubeflow.cron(on_kubeflow.stored()[0]) == "0 0 3 * * *"
    assert on_vertex.cron(on_vertex.stored()[0]) == "TZ=Europe/Berlin 0 3 * * *"
    assert (made.cron, made.timezone) == ("0 3 * * *", "Europe/Berlin")


def test_kubeflow_has_one_timezone_for_all_schedules(kfp: FakeKfp) -> None:
    berlin = replace(_WANTED, cron=Cron("0 3 * * *", "Europe/Berlin"))
    with pytest.raises(ConfigError, match="one timezone for all") as raised:
        _on_kubeflow(kfp).schedules.set(berlin)
    assert "CRON_SCHEDULE_TIMEZONE" in str(raised.value.hint)
    assert kfp.recurring_runs == []


@pytest.mark.fault
@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", ":disable"), ("POST", ":enable"), ("DELETE", "/recurringruns/")],
)
def test_an_interrupted_change_on_kubeflow_never_has_two_enabled(
    kfp: FakeKfp, method: str, path: str
) -> None:
    place = _on_kubeflow(kfp)
    place.schedules.set(_WANTED)
    wanted = replace(_WANTED, cron=Cron("0 5 * * *"))
    kfp.fail(method, path, 403)
    with pytest.raises(RemoteError):
        place.schedules.set(wanted)
    assert len(kfp.recurring_runs) == 2
    assert sum(map(place.enabled, kfp.recurring_runs)) <= 1
    changed = place.schedules.set(wanted)
    assert (changed.cron, changed.state) == ("0 5 * * *", "active")
    assert len(kfp.recurring_runs) == 1


@pytest.mark.fault
def test_an_interrupted_change_of_a_paused_schedule_stays_paused(kfp: FakeKfp) -> None:
    place = _on_kubeflow(kfp)
    place.schedules.set(_WANTED)
    place.schedules.pause("digits")
    wanted = replace(_WANTED, cron=Cron("0 5 * * *"))
    kfp.fail("DELETE", "/recurringruns/", 403)
    with pytest.raises(RemoteError):
        place.schedules.set(wanted)
    assert place.schedules.set(wanted).state == "paused"
