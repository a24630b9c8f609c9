"""Fake Vertex AI: pipeline jobs, schedules, custom jobs, and their logs.

Bodies are parsed into the client library's own request protos; a field, a query
parameter or a path that the service does not know is refused, and so is an output-only
field, which the service would silently ignore. Nothing advances by itself: the test
says what becomes of a job.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from itertools import count
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from vertex_messages import (
    COMMON_QUERY,
    PLACE,
    Json,
    Refused,
    camel,
    checked,
    only,
    page,
    requested,
)
from vertex_resources import KINDS, Kind

from tests.cloud.failures import Failure, next_failure
from tests.kit.gcs.http_server import (
    Request,
    Response,
    Server,
    error_response,
    json_response,
)

LOST = -1
"""Status for ``fail``: the request is executed, then the connection is closed."""
CUT = 0
"""Status for ``fail``: the connection is closed, nothing is executed."""
_STEPS = {"PENDING": "RUNNING", "RUNNING": "SUCCEEDED", "CANCELLING": "CANCELLED"}


@dataclass
class FakeVertex:
    """Resources in memory, and an HTTP server for them.

    Attributes:
      tokens: bearer tokens that are accepted; None for any, or none.
      buckets: that exist; None for any.
      page_size: resources on a page, at most.
      log_entries: what Cloud Logging has.
    """

    tokens: set[str] | None = None
    buckets: set[str] | None = None
    page_size: int = 2
    log_entries: list[Json] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._found: dict[str, Json] = {}
        self._failures: list[Failure] = []
        self._requests: list[str] = []
        self._bodies: list[bytes] = []
        self._ids = count(7_000_000_001)
        self._clock = datetime(2026, 1, 1, tzinfo=timezone.utc)
        self._lock = threading.RLock()
        self._server = Server(self.answer)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def address(self) -> str:
        """Returns the address for ``api_endpoint``, with its scheme."""
        return self._server.address

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    # What the test says and sees.

    def fail(
        self, method: str, path: str, status: int, message: str = "", times: int = 1
    ) -> None:
        """Lets the next requests fail whose path matches a regular expression."""
        with self._lock:
            self._failures.append(Failure(method, path, status, times, message))

    def heal(self) -> None:
        """Removes all pending failures."""
        with self._lock:
            self._failures.clear()

    def requests(self) -> list[str]:
        """Returns and clears the requests, as ``STATUS METHOD path?query``."""
        with self._lock:
            seen, self._requests = self._requests, []
            return seen

    def bodies(self) -> list[bytes]:
        """Returns the bodies of all requests."""
        return list(self._bodies)

    def jobs(self) -> list[Json]:
        """Returns the pipeline jobs, oldest first."""
        return self.resources("pipelineJobs")

    def resources(self, kind: str) -> list[Json]:
        """Returns the resources of a kind, oldest first."""
        with self._lock:
            return [v for name, v in self._found.items() if f"/{kind}/" in name]

    def now(self) -> str:
        """Returns the service's time, a second later with each call."""
        self._clock += timedelta(seconds=1)
        return self._clock.strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    def task(self, job_id: str, name: str, state: str, **values: Any) -> None:
        """Sets the state of a task of a job, and other keys of its detail.

        Args:
          job_id: of the pipeline job.
          name: of the task.
          state: such as ``RUNNING``.
          values: keys of ``PipelineTaskDetail``; those of ``artifacts`` of inputs and
            outputs are in the service's form.
        """
        with self._lock:
            job = self._job(job_id)
            details = job.setdefault("jobDetail", {}).setdefault("taskDetails", [])
            known = {item["taskName"]: item for item in details}
            if name not in known:
                known[name] = {"taskId": str(next(self._ids)), "taskName": name}
                known[name]["createTime"] = self.now()
                details.append(known[name])
            task = known[name]
            if state != "PENDING":
                task.setdefault("startTime", self.now())
            if state in ("SUCCEEDED", "FAILED", "CANCELLED", "SKIPPED"):
                task["endTime"] = self.now()
            task.update(values, state=state)
            job["state"] = "PIPELINE_STATE_RUNNING"
            job.setdefault("startTime", self.now())
            checked("PipelineJob", job)

    def end(self, job_id: str, state: str, error: str | None = None) -> None:
        """Ends a job: ``SUCCEEDED``, ``FAILED`` or ``CANCELLED``."""
        with self._lock:
            job = self._job(job_id)
            job["state"], job["endTime"] = f"PIPELINE_STATE_{state}", self.now()
            if error:
                job["error"] = {"code": 9, "message": error}
            checked("PipelineJob", job)

    def advance_custom_jobs(self) -> None:
        """Starts what is pending, and ends what runs or is being cancelled."""
        for job in self.resources("customJobs"):
            before = job["state"].removeprefix("JOB_STATE_")
            job["state"] = f"JOB_STATE_{_STEPS.get(before, before)}"
            if before in ("RUNNING", "CANCELLING"):
                job["endTime"] = self.now()

    def _job(self, job_id: str) -> Json:
        by_id = {name.rpartition("/")[2]: job for name, job in self._found.items()}
        return by_id[job_id]

    # What the service does.

    def answer(self, request: Request) -> Response:
        """Returns the response to one request."""
        method, url, body = request.method, request.url, request.body
        parts = urlsplit(url)
        query = {key: values[-1] for key, values in parse_qs(parts.query).items()}
        with self._lock:
            self._bodies.append(body)
            failure = next_failure(self._failures, method, url)
            try:
                if failure and failure.status == CUT:
                    response = Response(body=b"{}", is_cut=True)
                elif failure and failure.status != LOST:
                    raise Refused(failure.status, failure.message or "injected")
                else:
                    self._authenticate(request.headers)
                    found = self._route(method, unquote(parts.path), query, body)
                    response = replace(json_response(found), is_cut=bool(failure))
            except Refused as refused:
                response = error_response(refused.status, str(refused))
            status = "-" if response.is_cut else response.status
            self._requests.append(f"{status} {method} {url}")
            return response

    def _authenticate(self, headers: dict[str, str]) -> None:
        token = headers.get("authorization", "").removeprefix("Bearer ")
        if self.tokens is not None and token not in self.tokens:
            raise Refused(
                401,
                "Request had invalid authentication credentials. Expected OAuth 2 "
                "access token, login cookie or other valid authentication credential.",
            )

    def _route(
        self, method: str, path: str, query: dict[str, str], body: bytes
    ) -> Json:
        data = json.loads(body) if body else {}
        if (method, path) == ("POST", "/v2/entries:list"):
            return self._list_logs(data)
        match = PLACE.fullmatch(path)
        if match is None:
            raise Refused(404, f"The requested URL {path} was not found.")
        place, rest = match.groups()
        rest, _, verb = rest.partition(":")
        kind_name, _, resource_id = rest.partition("/")
        kind = KINDS.get(kind_name)
        if kind is None:
            raise Refused(404, f"The requested URL {path} was not found.")
        name = f"{place}/{rest}"
        if method == "POST" and not resource_id and not verb:
            return self._create(kind, kind_name, place, query, data)
        if method == "GET" and not resource_id and not verb:
            start = f"{place}/{kind_name}/"
            listed = filter(lambda name: name.startswith(start), list(self._found))
            shown = [self._found[name] for name in listed]
            return page(kind_name, shown, query, self.page_size)
        if name not in self._found:
            raise Refused(404, f"The {kind.type} `{name}` was not found.")
        actions: dict[tuple[str, str], Callable[..., Json]] = {
            ("GET", ""): lambda: self._found[name],
            ("DELETE", ""): lambda: self._delete(name),
            ("PATCH", ""): lambda: self._patch(kind, name, query, data),
            ("POST", "cancel"): lambda: self._cancel(kind, name),
            ("POST", "pause"): lambda: self._pause_or_resume(kind, name, verb, data),
            ("POST", "resume"): lambda: self._pause_or_resume(kind, name, verb, data),
        }
        action = actions.get((method, verb))
        if action is None:
            raise Refused(404, f"{method} {path} is not known")
        if (method, verb) != ("PATCH", ""):
            only(query, COMMON_QUERY)
        return action()

    def _create(
        self,
        kind: Kind,
        kind_name: str,
        place: str,
        query: dict[str, str],
        data: Json,
    ) -> Json:
        only(query, COMMON_QUERY | {kind.id_parameter})
        made = requested(kind.type, data, kind.output_only)
        own_id = str(next(self._ids))
        chosen = query.get(kind.id_parameter, own_id)
        if not re.fullmatch(kind.id_pattern, chosen):
            raise Refused(400, f"{kind.id_parameter} {chosen!r} is not valid")
        name = f"{place}/{kind_name}/{chosen}"
        if name in self._found:
            raise Refused(409, f"The {kind.type} `{name}` already exists.")
        kind.check(made, self.buckets)
        made |= {**kind.initial, "name": name}
        made |= {"createTime": self.now(), "updateTime": self.now()}
        self._found[name] = checked(kind.type, made)
        return self._found[name]

    def _patch(self, kind: Kind, name: str, query: dict[str, str], data: Json) -> Json:
        only(query, COMMON_QUERY | {"updateMask"})
        changed = requested(kind.type, data, kind.output_only)
        paths = [path for path in query.get("updateMask", "").split(",") if path]
        if not paths:
            raise Refused(400, "update_mask is required")
        for path in paths:
            key = camel(path)
            if key in changed:
                self._found[name][key] = changed[key]
            else:
                self._found[name].pop(key, None)
        self._found[name]["updateTime"] = self.now()
        kind.check(self._found[name], self.buckets)
        return self._found[name]

    def _delete(self, name: str) -> Json:
        del self._found[name]
        place = name.rsplit("/", 2)[0]
        empty = {"@type": "type.googleapis.com/google.protobuf.Empty"}
        operation = f"{place}/operations/{next(self._ids)}"
        return {"name": operation, "done": True, "response": empty}

    def _cancel(self, kind: Kind, name: str) -> Json:
        if kind.states is None:
            raise Refused(404, f"{kind.type} has no method cancel")
        resource = self._found[name]
        if "endTime" in resource:
            raise Refused(400, f"{name} is in a final state and cannot be cancelled.")
        resource["state"] = f"{kind.states}_CANCELLING"
        return {}

    def _pause_or_resume(self, kind: Kind, name: str, verb: str, data: Json) -> Json:
        request = checked(f"{verb.title()}{kind.type}Request", data)
        state = "PAUSED" if verb == "pause" else "ACTIVE"
        schedule = self._found[name]
        if schedule["state"] == state:
            raise Refused(400, f"{name} is {state}, it cannot be {verb}d.")
        schedule |= {"state": state, f"last{verb.title()}Time": self.now()}
        schedule["catchUp"] = request.get("catchUp", False)
        return {}

    def _list_logs(self, data: Json) -> Json:
        keys = {"resourceNames", "filter", "orderBy", "pageSize", "pageToken"}
        only(data, keys)
        jobs = re.findall(r'resource\.labels\.job_id="([^"]+)"', data["filter"])
        found = [
            entry
            for entry in self.log_entries
            if entry["resource"]["labels"]["job_id"] in jobs
        ]
        found.sort(key=lambda entry: entry["timestamp"])
        if data.get("orderBy") == "timestamp desc":
            found.reverse()
        start, size = int(data.get("pageToken") or 0), data.get("pageSize", 50)
        answer: Json = {"entries": found[start : start + size]}
        if start + size < len(found):
            answer["nextPageToken"] = str(start + size)
        return answer
