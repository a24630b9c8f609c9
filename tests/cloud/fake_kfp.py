"""Fake Kubeflow Pipelines: experiments, runs and recurring runs of its REST API.

It refuses what the service refuses (read in its sources, August 2026): fields that the
messages do not have, resolvers, other specs than 2.1, unknown or too many parameters,
filters on unknown fields. As there, names are not unique and no id can be chosen.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from uuid import uuid4

import kfp_server_api

from runners.rehearsal.http_server import Request, Response, Server, json_response
from tests.cloud.failures import Failure, next_failure

TAKEN = 0
"""Status for ``fail``: the request is executed, and the connection is then closed."""
LOGIN = 200
"""Status for ``fail``: the answer is the page of a proxy, where users log in."""

_API = "/apis/v2beta1/"
_LOG = re.compile(r"/apis/v1alpha1/runs/([^/]+)/nodes/([^/]+)/log")
_MAX_PARAMETER_BYTES = 10_000
_FILTERS = {
    "experiments": {"experiment_id", "display_name", "namespace"},
    "runs": {"run_id", "display_name", "description", "state", "experiment_id"},
    "recurringruns": {"recurring_run_id", "display_name", "description"},
}
_MODELS = {
    "experiments": (kfp_server_api.V2beta1Experiment, "experiment_id"),
    "runs": (kfp_server_api.V2beta1Run, "run_id"),
    "recurringruns": (kfp_server_api.V2beta1RecurringRun, "recurring_run_id"),
}
_LISTED = {"recurringruns": "recurringRuns"}


class _RefusedError(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass
class FakeKfp:
    """An installation in memory, and an HTTP server for it.

    Attributes:
      token: that requests must have; None for no check.
      page_size: items on a page, at most.
      items: by collection and id, oldest first.
      logs: of pods, by name.
      requests: method and path of each request.
      hidden: how many listings do not show the run that was created last.
      tick_s: seconds between two creations, whose times have whole seconds.
      on_request: called before each request, with its method and path; a
        ``ConnectionError`` loses the request.
    """

    token: str | None = None
    page_size: int = 2
    items: dict[str, dict[str, dict[str, Any]]] = field(
        default_factory=lambda: {name: {} for name in _MODELS}
    )
    logs: dict[str, str] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    hidden: int = 0
    tick_s: float = 1
    on_request: Callable[[str], None] | None = None

    def __post_init__(self) -> None:
        self._failures: list[Failure] = []
        self._now = datetime(2026, 11, 22, tzinfo=timezone.utc)
        self._lock = threading.RLock()
        self._server = Server(self._answer)
        serve = self._server.serve_forever
        threading.Thread(target=serve, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def host(self) -> str:
        return self._server.address

    @property
    def runs(self) -> list[dict[str, Any]]:
        return list(self.items["runs"].values())

    @property
    def recurring_runs(self) -> list[dict[str, Any]]:
        return list(self.items["recurringruns"].values())

    def fail(
        self, method: str, path: str, status: int, times: int = 1, after: int = 0
    ) -> None:
        """Lets the next requests fail whose path matches, after so many that do not."""
        self._failures.append(Failure(method, path, status, times, after=after))

    def heal(self) -> None:
        """Lets no request fail any more."""
        self._failures.clear()

    def set_run(self, run_id: str, state: str, *tasks: dict[str, Any]) -> None:
        """Sets the state of a run, and its tasks as ``task_details`` has them."""
        run = self.items["runs"][run_id]
        run |= {"state": state, "run_details": {"task_details": list(tasks)}}
        if state in ("SUCCEEDED", "FAILED", "CANCELED"):
            run["finished_at"] = self._tick()

    def _tick(self) -> str:
        self._now += timedelta(seconds=self.tick_s)
        return self._now.strftime("%Y-%m-%dT%H:%M:%SZ")

    def _answer(self, request: Request) -> Response:
        method, path = request.method, request.url
        if self.on_request is not None:
            try:
                self.on_request(f"{method} {path}")
            except ConnectionError:
                return Response(body=b"{}", is_cut=True)
        with self._lock:
            self.requests.append(f"{method} {path}")
            failure = next_failure(self._failures, method, path)
            if failure and failure.status == LOGIN:
                page = {"Content-Type": "text/html; charset=utf-8"}
                return Response(200, b"<html>Log in</html>", page)
            if failure and failure.status != TAKEN:
                return _error(failure.status, "made to fail")
            try:
                self._authenticate(request.headers)
                response = self._respond(method, path, request.body)
            except _RefusedError as refused:
                response = _error(refused.status, str(refused))
            if failure:
                return Response(200, response.body or b"{}", is_cut=True)
            return response

    def _authenticate(self, headers: dict[str, str]) -> None:
        given = headers.get("authorization")
        if self.token is not None and given != f"Bearer {self.token}":
            raise _RefusedError(401, "the token has expired")

    def _respond(self, method: str, path: str, body: bytes) -> Response:
        url = urlsplit(path)
        if found := _LOG.fullmatch(url.path):
            run_id, pod = found.groups()
            if run_id not in self.items["runs"] or pod not in self.logs:
                raise _RefusedError(500, f"Failed to read logs from pod {pod}")
            return Response(200, self.logs[pod].encode())
        collection, _, rest = url.path.removeprefix(_API).partition("/")
        if not url.path.startswith(_API) or collection not in _MODELS:
            raise _RefusedError(404, f"no such path: {url.path}")
        name, _, action = unquote(rest).partition(":")
        if not name:
            if method == "POST":
                return json_response(self._create(collection, json.loads(body)))
            return json_response(self._list(collection, url.query))
        item = self.items[collection].get(name)
        if item is None:
            raise _RefusedError(404, f"{collection} {name} not found")
        if method == "DELETE":
            del self.items[collection][name]
            return json_response({})
        if method == "POST":
            return json_response(self._act(collection, item, action))
        return json_response(item)

    def _act(
        self, collection: str, item: dict[str, Any], action: str
    ) -> dict[str, Any]:
        if (collection, action) == ("runs", "terminate"):
            if item["state"] not in ("PENDING", "RUNNING"):
                raise _RefusedError(400, "Failed to terminate run: it has ended")
            item["state"] = "CANCELING"
        elif collection == "recurringruns" and action in ("enable", "disable"):
            item["status"] = action.upper() + "D"
        else:
            raise _RefusedError(404, f"no such action: {action}")
        return {}

    def _create(self, collection: str, body: dict[str, Any]) -> dict[str, Any]:
        model, id_field = _MODELS[collection]
        _refuse_unknown_fields(model, body)
        if not body.get("display_name"):
            raise _RefusedError(400, "the name is empty")
        siblings = self.items[collection].values()
        if collection == "experiments":
            if any(one["display_name"] == body["display_name"] for one in siblings):
                raise _RefusedError(409, f"{body['display_name']} already exists")
        else:
            _check_spec(body)
            if body.get("experiment_id") not in self.items["experiments"]:
                raise _RefusedError(404, "Experiment not found")
        item = {**body, id_field: str(uuid4()), "created_at": self._tick()}
        if collection == "runs":
            item["state"] = "PENDING"
        if collection == "recurringruns":
            item["status"] = _status_of_new(body)
        self.items[collection][item[id_field]] = item
        return item

    def _list(self, collection: str, query: str) -> dict[str, Any]:
        given = {key: values[-1] for key, values in parse_qs(query).items()}
        known = {"filter", "page_size", "page_token", "sort_by", "namespace"}
        known |= {"experiment_id"} if collection != "experiments" else set()
        if unknown := set(given) - known:
            raise _RefusedError(400, f"unknown parameters {unknown}")
        items = list(self.items[collection].values())
        if self.hidden > 0 and collection == "runs":
            self.hidden -= 1
            items = items[:-1]
        for predicate in json.loads(given.get("filter", "{}")).get("predicates", []):
            items = [one for one in items if _holds(collection, predicate, one)]
        for key in ("experiment_id", "namespace"):
            if key in given:
                items = [one for one in items if one.get(key) == given[key]]
        if sort_by := given.get("sort_by"):
            key, _, order = sort_by.partition(" ")
            items.sort(key=lambda one: one[key], reverse=order == "desc")
        start = int(given.get("page_token", 0))
        size = min(int(given.get("page_size", 20)), self.page_size)
        page: dict[str, Any] = {
            _LISTED.get(collection, collection): items[start:][:size]
        }
        if start + size < len(items):
            page["next_page_token"] = str(start + size)
        return page | {"total_size": len(items)}


def _error(status: int, message: str) -> Response:
    body = json.dumps({"error": message, "code": 3, "message": message}).encode()
    return Response(status, body, {"Content-Type": "application/json"})


def _holds(collection: str, predicate: dict[str, Any], item: dict[str, Any]) -> bool:
    key, wanted = predicate["key"], predicate["string_value"]
    if key not in _FILTERS[collection]:
        raise _RefusedError(
            400, f"no support for filtering on unrecognized field {key}"
        )
    value = item.get(key, "")
    if predicate["operation"] == "EQUALS":
        return value == wanted
    if predicate["operation"] == "IS_SUBSTRING":
        return wanted in value
    raise _RefusedError(400, f"unknown operation {predicate['operation']}")


def _refuse_unknown_fields(model: Any, body: Any) -> None:
    """Refuses a body with fields that a generated model does not have."""
    names = {json_name: name for name, json_name in model.attribute_map.items()}
    for key, value in body.items():
        if key not in names:
            raise _RefusedError(400, f"unknown field {key!r} in {model.__name__}")
        inner = getattr(kfp_server_api, model.openapi_types[names[key]], None)
        if inner is not None and isinstance(value, dict):
            _refuse_unknown_fields(inner, value)


def _check_spec(body: dict[str, Any]) -> None:
    """Refuses a pipeline spec that the service does not compile."""
    from google.protobuf import json_format
    from kfp.pipeline_spec import pipeline_spec_pb2

    spec = body.get("pipeline_spec")
    if not spec:
        raise _RefusedError(400, "no pipeline spec is provided")
    try:
        parsed = json_format.ParseDict(spec, pipeline_spec_pb2.PipelineSpec())
    except json_format.ParseError as error:
        raise _RefusedError(400, f"invalid v2 pipeline spec: {error}") from None
    if parsed.schema_version != "2.1.0":
        raise _RefusedError(400, "KFP only supports schema version 2.1.0")
    for label, executor in spec["deploymentSpec"]["executors"].items():
        if not {"container", "importer"} & set(executor):
            raise _RefusedError(
                400,
                f'executor(label="{label}"): non-container and non-importer executor '
                "not implemented",
            )
    given = body.get("runtime_config", {}).get("parameters", {})
    declared = parsed.root.input_definitions.parameters
    if unknown := set(given) - set(declared):
        raise _RefusedError(400, f"parameters are not inputs: {sorted(unknown)}")
    for name, item in declared.items():
        if (
            name not in given
            and not item.is_optional
            and not item.HasField("default_value")
        ):
            raise _RefusedError(400, f"parameter {name} is not optional")
        is_text = item.parameter_type == pipeline_spec_pb2.ParameterType.STRING
        if name in given and is_text and not isinstance(given[name], str):
            raise _RefusedError(400, f"input parameter {name} requires type string")
    if len(json.dumps(given)) > _MAX_PARAMETER_BYTES:
        raise _RefusedError(400, "The input parameter length exceed maximum size")


def _status_of_new(body: dict[str, Any]) -> str:
    if not 1 <= int(body.get("max_concurrency", 0)) <= 10:
        raise _RefusedError(400, "Max concurrency must be at least 1 and at most 10")
    fields = body["trigger"]["cron_schedule"]["cron"].split()
    if not 5 <= len(fields) <= 6:
        raise _RefusedError(400, "Schedule cron is not a supported format")
    modes = {"ENABLE": "ENABLED", "DISABLE": "DISABLED"}
    if body.get("mode") not in modes:
        raise _RefusedError(400, "the mode of a recurring run must be set")
    return modes[body["mode"]]
