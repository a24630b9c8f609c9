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

from google.protobuf import json_format

from runners.rehearsal.http_server import Request, Response, Server, json_response
from tests.cloud.failures import Failure, next_failure

LOST = -1
"""Status for ``fail``: the request is executed, then the connection is closed."""
CUT = 0
"""Status for ``fail``: the connection is closed, nothing is executed."""

_PLACE = re.compile(r"/v1/(projects/[^/]+/locations/[^/:]+)/(.+)")
_LABEL = re.compile(r"[a-z][a-z0-9_-]{0,62}")
_LABEL_VALUE = re.compile(r"[a-z0-9_-]{0,63}")
_CODES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    409: "ALREADY_EXISTS",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
}
_COMMON_QUERY = {"$alt"}
_LIST_QUERY = {"filter", "pageSize", "pageToken", "orderBy", "readMask"}


class _Refused(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class _Kind:
    """A kind of resource.

    Attributes:
      type: its class in ``google.cloud.aiplatform_v1.types``.
      id_parameter: query parameter that names a new one; None if the service does.
      id_pattern: what it must match.
      output_only: keys that a request must not have.
    """

    type: str
    id_parameter: str | None = None
    id_pattern: str = r".+"
    output_only: tuple[str, ...] = ()


_KINDS = {
    "pipelineJobs": _Kind(
        "PipelineJob",
        "pipelineJobId",
        r"[a-z][-a-z0-9]{0,127}",
        (
            *("createTime", "startTime", "endTime", "updateTime", "state"),
            *("jobDetail", "error", "templateMetadata", "scheduleName"),
        ),
    ),
    "schedules": _Kind(
        "Schedule",
        output_only=(
            *("createTime", "updateTime", "nextRunTime", "lastPauseTime"),
            *("lastResumeTime", "lastScheduledRunResponse", "state", "catchUp"),
            "startedRunCount",
        ),
    ),
    "customJobs": _Kind("CustomJob", output_only=("state", "error", "createTime")),
}


@dataclass
class FakeVertex:
    """Resources in memory, and an HTTP server for them.

    Attributes:
      tokens: bearer tokens that are accepted; None for any, or none.
      buckets: that exist; None for any.
      hidden_listings: how many listings do not have a new job yet.
      page_size: resources on a page, at most.
      log_entries: what Cloud Logging has.
    """

    tokens: set[str] | None = None
    buckets: set[str] | None = None
    hidden_listings: int = 0
    page_size: int = 2
    log_entries: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._found: dict[str, dict[str, Any]] = {}
        self._hidden: dict[str, int] = {}
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

    def jobs(self) -> list[dict[str, Any]]:
        """Returns the pipeline jobs, oldest first."""
        return self.resources("pipelineJobs")

    def resources(self, kind: str) -> list[dict[str, Any]]:
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
            _checked("PipelineJob", job)

    def end(self, job_id: str, state: str, error: str | None = None) -> None:
        """Ends a job: ``SUCCEEDED``, ``FAILED`` or ``CANCELLED``."""
        with self._lock:
            job = self._job(job_id)
            job["state"], job["endTime"] = f"PIPELINE_STATE_{state}", self.now()
            if error:
                job["error"] = {"code": 9, "message": error}
            _checked("PipelineJob", job)

    def _job(self, job_id: str) -> dict[str, Any]:
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
                    raise _Refused(failure.status, failure.message or "injected")
                else:
                    self._authenticate(request.headers)
                    found = self._route(method, unquote(parts.path), query, body)
                    response = replace(json_response(found), is_cut=bool(failure))
            except _Refused as refused:
                response = _refusal(refused)
            status = "-" if response.is_cut else response.status
            self._requests.append(f"{status} {method} {url}")
            return response

    def _authenticate(self, headers: dict[str, str]) -> None:
        token = headers.get("authorization", "").removeprefix("Bearer ")
        if self.tokens is not None and token not in self.tokens:
            raise _Refused(
                401,
                "Request had invalid authentication credentials. Expected OAuth 2 "
                "access token, login cookie or other valid authentication credential.",
            )

    def _route(
        self, method: str, path: str, query: dict[str, str], body: bytes
    ) -> dict[str, Any]:
        data = json.loads(body) if body else {}
        if (method, path) == ("POST", "/v2/entries:list"):
            return self._list_logs(data)
        match = _PLACE.fullmatch(path)
        if match is None:
            raise _Refused(404, f"The requested URL {path} was not found.")
        place, rest = match.groups()
        rest, _, verb = rest.partition(":")
        kind_name, _, resource_id = rest.partition("/")
        kind = _KINDS.get(kind_name)
        if kind is None:
            raise _Refused(404, f"The requested URL {path} was not found.")
        name = f"{place}/{rest}"
        if method == "POST" and not resource_id and not verb:
            return self._create(kind, kind_name, place, query, data)
        if method == "GET" and not resource_id and not verb:
            return self._list(kind_name, place, query)
        if name not in self._found:
            raise _Refused(404, f"The {kind.type} `{name}` was not found.")
        actions: dict[tuple[str, str], Callable[..., dict[str, Any]]] = {
            ("GET", ""): lambda: self._found[name],
            ("DELETE", ""): lambda: self._delete(name),
            ("PATCH", ""): lambda: self._patch(kind, name, query, data),
            ("POST", "cancel"): lambda: self._cancel(kind, name),
            ("POST", "pause"): lambda: self._pause(name, data),
            ("POST", "resume"): lambda: self._resume(name, data),
        }
        action = actions.get((method, verb))
        if action is None:
            raise _Refused(404, f"{method} {path} is not known")
        if (method, verb) != ("PATCH", ""):
            _only(query, _COMMON_QUERY)
        return action()

    def _create(
        self,
        kind: _Kind,
        kind_name: str,
        place: str,
        query: dict[str, str],
        data: dict[str, Any],
    ) -> dict[str, Any]:
        _only(query, _COMMON_QUERY | {kind.id_parameter or ""})
        given = _checked(kind.type, data)
        for key in kind.output_only:
            if key in given:
                raise _Refused(400, f"{kind.type}.{key} is output only")
        _check_labels(given.get("labels", {}))
        own_id = str(next(self._ids))
        chosen = query.get(kind.id_parameter or "", own_id)
        if not re.fullmatch(kind.id_pattern, chosen):
            raise _Refused(400, f"{kind.id_parameter} {chosen!r} is not valid")
        name = f"{place}/{kind_name}/{chosen}"
        if name in self._found:
            raise _Refused(409, f"The {kind.type} `{name}` already exists.")
        if kind_name == "pipelineJobs":
            self._check_job(given)
            given["state"] = "PIPELINE_STATE_PENDING"
        if kind_name == "schedules":
            self._check_schedule(given)
            given |= {"state": "ACTIVE", "nextRunTime": self.now()}
        if kind_name == "customJobs":
            given["state"] = "JOB_STATE_PENDING"
        given |= {"name": name, "createTime": self.now(), "updateTime": self.now()}
        if kind_name == "customJobs":
            given["startTime"] = given["createTime"]
        _checked(kind.type, given)
        self._found[name] = given
        self._hidden[name] = self.hidden_listings
        return given

    def _check_job(self, job: dict[str, Any]) -> None:
        spec, runtime = job.get("pipelineSpec", {}), job.get("runtimeConfig", {})
        for key in ("pipelineInfo", "root", "components", "deploymentSpec"):
            if key not in spec:
                raise _Refused(400, f"pipeline_spec.{key} is missing")
        if not str(spec.get("schemaVersion")).startswith("2."):
            raise _Refused(400, "pipeline_spec.schemaVersion is not supported")
        output = runtime.get("gcsOutputDirectory", "")
        bucket = output.removeprefix("gs://").partition("/")[0]
        if not output.startswith("gs://") or not bucket:
            raise _Refused(400, "runtime_config.gcs_output_directory is no gs:// URI")
        if self.buckets is not None and bucket not in self.buckets:
            raise _Refused(400, f"The specified bucket {bucket} does not exist.")
        declared = spec["root"].get("inputDefinitions", {}).get("parameters", {})
        given = runtime.get("parameterValues", {})
        if unknown := sorted(set(given) - set(declared)):
            raise _Refused(400, f"unknown runtime parameters: {unknown}")
        required = {
            name
            for name, item in declared.items()
            if "defaultValue" not in item and not item.get("isOptional")
        }
        if missing := sorted(required - set(given)):
            raise _Refused(400, f"runtime parameters without a value: {missing}")

    def _check_schedule(self, schedule: dict[str, Any]) -> None:
        if "cron" not in schedule or "maxConcurrentRunCount" not in schedule:
            raise _Refused(400, "cron and max_concurrent_run_count are required")
        cron = re.sub(r"^(CRON_)?TZ=\S+ ", "", schedule["cron"])
        if len(cron.split()) != 5:
            raise _Refused(400, f"cron {schedule['cron']!r} is not valid")
        request = schedule.get("createPipelineJobRequest")
        if not request or "parent" not in request:
            raise _Refused(400, "create_pipeline_job_request is required")
        self._check_job(request.get("pipelineJob", {}))

    def _list(self, kind: str, place: str, query: dict[str, str]) -> dict[str, Any]:
        _only(query, _COMMON_QUERY | _LIST_QUERY)
        matches = _filter(query.get("filter", ""))
        found = []
        for name, item in self._found.items():
            if not name.startswith(f"{place}/{kind}/") or not matches(item):
                continue
            if self._hidden[name]:
                self._hidden[name] -= 1
                continue
            found.append(item)
        order = query.get("orderBy", "")
        if order not in ("", "create_time desc", "create_time"):
            raise _Refused(400, f"order_by {order!r} is not supported")
        if order == "create_time desc":
            found.reverse()
        start = int(query.get("pageToken", 0))
        size = min(self.page_size, int(query.get("pageSize") or self.page_size))
        page: dict[str, Any] = {kind: found[start : start + size]}
        if start + size < len(found):
            page["nextPageToken"] = str(start + size)
        return page

    def _patch(
        self, kind: _Kind, name: str, query: dict[str, str], data: dict[str, Any]
    ) -> dict[str, Any]:
        _only(query, _COMMON_QUERY | {"updateMask"})
        given = _checked(kind.type, data)
        paths = [path for path in query.get("updateMask", "").split(",") if path]
        if not paths:
            raise _Refused(400, "update_mask is required")
        for path in paths:
            key = _camel(path)
            if key in kind.output_only:
                raise _Refused(400, f"{key} is output only")
            if key in given:
                self._found[name][key] = given[key]
            else:
                self._found[name].pop(key, None)
        self._found[name]["updateTime"] = self.now()
        if kind.type == "Schedule":
            self._check_schedule(self._found[name])
        return self._found[name]

    def _delete(self, name: str) -> dict[str, Any]:
        del self._found[name]
        place = name.rsplit("/", 2)[0]
        empty = {"@type": "type.googleapis.com/google.protobuf.Empty"}
        operation = f"{place}/operations/{next(self._ids)}"
        return {"name": operation, "done": True, "response": empty}

    def _cancel(self, kind: _Kind, name: str) -> dict[str, Any]:
        if kind.type not in ("PipelineJob", "CustomJob"):
            raise _Refused(404, f"{kind.type} has no method cancel")
        resource = self._found[name]
        if "endTime" in resource:
            raise _Refused(400, f"{name} is in a final state and cannot be cancelled.")
        prefix = "PIPELINE_STATE" if kind.type == "PipelineJob" else "JOB_STATE"
        resource["state"] = f"{prefix}_CANCELLING"
        return {}

    def _pause(self, name: str, data: dict[str, Any]) -> dict[str, Any]:
        _checked("PauseScheduleRequest", data)
        self._check_state(name, "ACTIVE")
        self._found[name] |= {"state": "PAUSED", "lastPauseTime": self.now()}
        self._found[name].pop("nextRunTime", None)
        return {}

    def _resume(self, name: str, data: dict[str, Any]) -> dict[str, Any]:
        given = _checked("ResumeScheduleRequest", data)
        self._check_state(name, "PAUSED")
        now = self.now()
        self._found[name] |= {
            "state": "ACTIVE",
            "lastResumeTime": now,
            "nextRunTime": now,
            "catchUp": given.get("catchUp", False),
        }
        return {}

    def _check_state(self, name: str, expected: str) -> None:
        if (state := self._found[name]["state"]) != expected:
            raise _Refused(400, f"The schedule `{name}` is in state {state}.")

    def _list_logs(self, data: dict[str, Any]) -> dict[str, Any]:
        keys = {"resourceNames", "filter", "orderBy", "pageSize", "pageToken"}
        _only(data, keys)
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
        answer: dict[str, Any] = {"entries": found[start : start + size]}
        if start + size < len(found):
            answer["nextPageToken"] = str(start + size)
        return answer


def _checked(type_name: str, data: dict[str, Any]) -> dict[str, Any]:
    """Returns a message in the service's form; unknown fields are refused."""
    from google.cloud.aiplatform_v1 import types

    kind = getattr(types, type_name)
    try:
        message = json_format.ParseDict(data, kind.pb()())
    except json_format.ParseError as error:
        raise _Refused(400, f"Invalid JSON payload received. {error}") from error
    return json_format.MessageToDict(message)


def _check_labels(labels: dict[str, str]) -> None:
    for key, value in labels.items():
        if not (_LABEL.fullmatch(key) and _LABEL_VALUE.fullmatch(value)):
            raise _Refused(400, f"the label {key}={value} is not valid")


def _only(query: dict[str, Any], known: set[str]) -> None:
    if unknown := sorted(set(query) - known):
        raise _Refused(400, f'Invalid JSON payload received. Unknown name "{unknown}"')


def _filter(text: str) -> Callable[[dict[str, Any]], bool]:
    """Returns a filter: equalities that are joined by AND."""
    wanted = []
    for part in filter(None, re.split(r"\s+AND\s+", text)):
        match = re.fullmatch(r'(labels\.)?([\w-]+)\s*=\s*"([^"]*)"', part.strip())
        if match is None:
            raise _Refused(400, f"Invalid filter: {part}")
        wanted.append(match.groups())

    def matches(item: dict[str, Any]) -> bool:
        return all(
            (item.get("labels", {}) if is_label else item).get(
                key if is_label else _camel(key)
            )
            == value
            for is_label, key, value in wanted
        )

    return matches


def _camel(path: str) -> str:
    first, *rest = path.split("_")
    return first + "".join(word.title() for word in rest)


def _refusal(refused: _Refused) -> Response:
    error = {
        "code": refused.status,
        "message": str(refused),
        "status": _CODES.get(refused.status, "UNKNOWN"),
    }
    body = json.dumps({"error": error}).encode()
    headers = {"Content-Type": "application/json; charset=UTF-8"}
    return Response(refused.status, body, headers)
