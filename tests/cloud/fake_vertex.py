"""Fake Vertex AI: what the clients of google-cloud-aiplatform are called for.

Requests become the library's own messages, which refuse unknown fields. Nothing
advances by itself: the test says what becomes of a job.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from functools import partial
from itertools import count
from typing import Any

from google.api_core import exceptions
from google.protobuf import json_format

Json = dict[str, Any]

_METHOD = re.compile(
    "(create|get|list|update|delete|cancel)_(pipeline_job|schedule|custom_job)s?"
)
_STATES = {
    "pipeline_job": "PIPELINE_STATE_PENDING",
    "custom_job": "JOB_STATE_PENDING",
    "schedule": "ACTIVE",
}
_STEPS = {"PENDING": "RUNNING", "RUNNING": "SUCCEEDED", "CANCELLING": "CANCELLED"}


class FakeVertex:
    """Resources in memory, and the methods of the clients of all of them.

    Attributes:
      calls: methods that were called, each with what it was called for.
      log_entries: what Cloud Logging has.
    """

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.log_entries: list[Json] = []
        self._found: dict[str, Json] = {}
        self._failures: list[tuple[str, Exception, bool]] = []
        self._ids = count(7_000_000_001)
        self._clock = datetime(2026, 1, 1, tzinfo=timezone.utc)

    def fail(
        self, method: str, error: Exception, times: int = 1, is_done: bool = False
    ) -> None:
        """Lets the next calls of a method fail, though what it asks for may be done."""
        self._failures += [(method, error, is_done)] * times

    def heal(self) -> None:
        self._failures.clear()

    def resources(self, kind: str = "pipelineJobs") -> list[Json]:
        """Returns the resources of a kind in JSON, oldest first."""
        return [x for name, x in self._found.items() if f"/{kind}/" in name]

    def task(self, job_id: str, name: str, state: str, **values: Any) -> None:
        """Sets the state of a task of a job, and other keys of its detail.

        Args:
          job_id: of the pipeline job.
          name: of the task.
          state: such as ``RUNNING``.
          values: keys of ``PipelineTaskDetail``; those of ``artifacts`` of inputs and
            outputs are in the service's form.
        """
        job = self._job(job_id)
        details = job.setdefault("jobDetail", {}).setdefault("taskDetails", [])
        known = [item for item in details if item["taskName"] == name]
        if not known:
            known = [{"taskName": name, "createTime": self._now()}]
            details += known
        if state != "PENDING":
            known[0].setdefault("startTime", self._now())
        if state in ("SUCCEEDED", "FAILED", "CANCELLED", "SKIPPED"):
            known[0]["endTime"] = self._now()
        known[0].update(values, state=state)
        job["state"] = "PIPELINE_STATE_RUNNING"
        _message("PipelineJob", job)

    def end(self, job_id: str, state: str, error: str | None = None) -> None:
        """Ends a job: ``SUCCEEDED``, ``FAILED`` or ``CANCELLED``."""
        job = self._job(job_id)
        job["state"], job["endTime"] = f"PIPELINE_STATE_{state}", self._now()
        if error:
            job["error"] = {"code": 9, "message": error}

    def advance_custom_jobs(self) -> None:
        """Starts what is pending, and ends what runs or is being cancelled."""
        for job in self.resources("customJobs"):
            before = job["state"].removeprefix("JOB_STATE_")
            job["state"] = f"JOB_STATE_{_STEPS.get(before, before)}"
            if before in ("RUNNING", "CANCELLING"):
                job["endTime"] = self._now()

    def post(self, json: Json) -> Json:
        """Answers a request to Cloud Logging."""
        jobs = re.findall(r'resource\.labels\.job_id="([^"]+)"', json["filter"])
        found = [
            entry
            for entry in self.log_entries
            if entry["resource"]["labels"]["job_id"] in jobs
        ]
        found.sort(key=lambda entry: entry["timestamp"], reverse=True)
        assert json["orderBy"] == "timestamp desc"
        return {"entries": found[: json["pageSize"]]}

    def __getattr__(self, method: str) -> Any:
        if not _METHOD.fullmatch(method):
            raise AttributeError(method)
        return partial(self._answer, method)

    def _answer(
        self,
        method: str,
        request: Any = None,
        timeout: float = 0,
        retry: Any = None,
        **named: Any,
    ) -> Any:
        from google.cloud.aiplatform_v1 import types

        kind = getattr(types, f"{_title(method)}Request")
        data = json_format.MessageToDict(kind.pb(kind(request, **named)))
        self.calls.append(f"{method} {data}")
        failure = next((x for x in self._failures if x[0] == method), None)
        if failure:
            self._failures.remove(failure)
        if failure and not failure[2]:
            raise failure[1]
        match = _METHOD.fullmatch(method)
        assert match
        verb, resource = match.groups()
        if verb == "create":
            answer = self._create(resource, data)
        elif verb == "list":
            return [_message(_title(resource), x) for x in self._listed(resource, data)]
        elif verb == "update":
            answer = self._found[data["schedule"]["name"]]
            answer |= data["schedule"]
        else:
            answer = self._act(verb, resource, data)
        if failure:
            raise failure[1]
        return _message(_title(resource), answer)

    def _create(self, resource: str, data: Json) -> Json:
        key = _camel(resource)
        made = data[key]
        for label, value in made.get("labels", {}).items():
            assert re.fullmatch("[a-z][a-z0-9_-]{0,62}", label), label
            assert re.fullmatch("[a-z0-9_-]{0,63}", value), value
        if resource == "pipeline_job":
            _check_parameters(made)
        number = data.get(f"{key}Id", str(next(self._ids)))
        name = f"{data['parent']}/{key}s/{number}"
        if name in self._found:
            raise exceptions.Conflict(f"{name} already exists")
        known = {"name": name, "state": _STATES[resource], "createTime": self._now()}
        self._found[name] = {**made, **known}
        return self._found[name]

    def _listed(self, resource: str, data: Json) -> Iterator[Json]:
        wanted = re.findall(r'labels\.([\w-]+)="([^"]*)"', data.get("filter", ""))
        assert bool(wanted) == bool(data.get("filter"))
        found = self.resources(f"{_camel(resource)}s")
        if data.get("orderBy", "").endswith("desc"):
            found.reverse()
        for item in found:
            if dict(wanted).items() <= item.get("labels", {}).items():
                yield item

    def _act(self, verb: str, resource: str, data: Json) -> Json:
        found = self._found.get(data["name"])
        if found is None:
            raise exceptions.NotFound(f"{data['name']} was not found")
        if verb == "delete":
            del self._found[data["name"]]
        elif verb == "cancel" and "endTime" in found:
            raise exceptions.BadRequest("it is in a final state")
        elif verb == "cancel":
            prefix = _STATES[resource].removesuffix("PENDING")
            found["state"] = f"{prefix}CANCELLING"
        return found

    def _job(self, job_id: str) -> Json:
        by_id = {name.rpartition("/")[2]: job for name, job in self._found.items()}
        return by_id[job_id]

    def _now(self) -> str:
        """Returns the service's time, a second later with each call."""
        self._clock += timedelta(seconds=1)
        return self._clock.strftime("%Y-%m-%dT%H:%M:%SZ")


def _check_parameters(job: Json) -> None:
    runtime = job["runtimeConfig"]
    assert runtime["gcsOutputDirectory"].startswith("gs://")
    declared = job["pipelineSpec"]["root"].get("inputDefinitions", {})
    values, known = runtime.get("parameterValues", {}), declared.get("parameters", {})
    required = {name for name, item in known.items() if "defaultValue" not in item}
    assert required <= set(values) <= set(known)


def _message(type_name: str, data: Json) -> Any:
    from google.cloud.aiplatform_v1 import types

    kind = getattr(types, type_name)
    return kind.wrap(json_format.ParseDict(data, kind.pb()()))


def _title(name: str) -> str:
    return "".join(word.title() for word in name.split("_"))


def _camel(name: str) -> str:
    return name[0] + _title(name)[1:]
