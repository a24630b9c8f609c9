"""Fake Vertex AI: versions of models, endpoints, and long-running operations.

An operation is not done when it is first asked for. Only the documented address
``/v1/...`` is known, and not the ``/ui/...`` that the client's own polling uses.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field

from fake_vertex import FakeVertex
from vertex_messages import (
    COMMON_QUERY,
    PLACE,
    Json,
    Refused,
    checked,
    only,
    page,
    requested,
)

_ID = r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?"
_ALIAS = re.compile(r"[a-z][a-zA-Z0-9-]{0,126}[a-z0-9]")
_TYPES = "type.googleapis.com/google.cloud.aiplatform.v1."
_OUTPUT_ONLY = {
    "Model": ("name", "versionId", "createTime", "etag", "deployedModels"),
    "Endpoint": ("name", "createTime", "deployedModels"),
    "DeployedModel": ("createTime", "modelVersionId"),
}


@dataclass
class FakeVertexModels(FakeVertex):
    """Models and endpoints, too.

    Attributes:
      broken_images: images that do not start: their deployments fail.
      hidden_versions: how many listings do not have a new version yet.
      deployments: versions in the order in which they were deployed.
    """

    broken_images: set[str] = field(default_factory=set)
    hidden_versions: int = 0
    deployments: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._versions: dict[str, dict[str, Json]] = {}
        self._endpoints: dict[str, Json] = {}
        self._pending: dict[str, Json] = {}

    def versions(self) -> list[Json]:
        """Returns the versions of all models, oldest first."""
        return [item for found in self._versions.values() for item in found.values()]

    def endpoints(self) -> list[Json]:
        """Returns the endpoints, oldest first."""
        return list(self._endpoints.values())

    def served(self) -> dict[str, int]:
        """Returns the share of the requests of each version, by its id."""
        return {
            item["modelVersionId"]: share
            for endpoint in self._endpoints.values()
            for item in endpoint.get("deployedModels", [])
            if (share := endpoint.get("trafficSplit", {}).get(item["id"]))
        }

    def _route(
        self, method: str, path: str, query: dict[str, str], body: bytes
    ) -> Json:
        match = PLACE.fullmatch(path)
        place, rest = match.groups() if match else ("", "")
        kind = rest.partition("/")[0].partition(":")[0]
        if kind not in ("models", "endpoints", "operations"):
            return super()._route(method, path, query, body)
        rest, _, verb = rest.partition(":")
        name, data = f"{place}/{rest}", json.loads(body) if body else {}
        if method == "GET" and "/operations/" in name:
            return self._poll(name)
        routes = {
            ("models", "POST", "upload"): lambda: self._upload(place, data),
            ("models", "GET", ""): lambda: self._get_model(place, name, query),
            ("models", "GET", "listVersions"): lambda: self._list_versions(name, query),
            ("models", "POST", "mergeVersionAliases"): lambda: self._merge(name, data),
            ("models", "DELETE", "deleteVersion"): lambda: self._delete_version(name),
            ("endpoints", "POST", ""): lambda: self._make_endpoint(place, query, data),
            ("endpoints", "GET", ""): lambda: self._get_endpoint(place, name, query),
            ("endpoints", "PATCH", ""): lambda: self._set_traffic(name, query, data),
            ("endpoints", "POST", "deployModel"): lambda: self._deploy(name, data),
            ("endpoints", "POST", "undeployModel"): lambda: self._undeploy(name, data),
        }
        route = routes.get((kind, method, verb))
        if route is None:
            raise Refused(404, f"{method} {path} is not known")
        return route()

    def _operation(
        self,
        parent: str,
        kind: str,
        response: Json,
        error: str | None = None,
    ) -> Json:
        name = f"{parent}/operations/{next(self._ids)}"
        done: Json = {"name": name, "done": True}
        if error:
            done["error"] = {"code": 9, "message": error}
        else:
            done["response"] = {"@type": _TYPES + kind, **checked(kind, response)}
        self._pending[name] = done
        return {"name": name}

    def _poll(self, name: str) -> Json:
        if name not in self._pending:
            raise Refused(404, f"Operation {name} was not found.")
        if not self._pending[name].get("asked"):
            self._pending[name]["asked"] = True
            return {"name": name}
        return {k: v for k, v in self._pending[name].items() if k != "asked"}

    def _upload(self, place: str, data: Json) -> Json:
        request = checked("UploadModelRequest", data)
        model = self._given("Model", request.get("model", {}))
        if not model.get("artifactUri", "").startswith("gs://"):
            raise Refused(400, "model.artifact_uri is no gs:// URI")
        if not model.get("containerSpec", {}).get("imageUri"):
            raise Refused(400, "model.container_spec.image_uri is required")
        parent, model_id = request.get("parentModel"), request.get("modelId")
        if parent and model_id:
            raise Refused(400, "parent_model and model_id are exclusive")
        if parent and parent not in self._versions:
            raise Refused(404, f"The Model `{parent}` was not found.")
        name = parent or f"{place}/models/{self._new_id(model_id)}"
        if not parent and name in self._versions:
            raise Refused(409, f"The Model `{name}` already exists.")
        aliases = model.get("versionAliases", [])
        if bad := [item for item in aliases if not _ALIAS.fullmatch(item)]:
            raise Refused(400, f"the alias {bad[0]!r} is not valid")
        versions = self._versions.setdefault(name, {})
        version_id = str(max(map(int, versions), default=0) + 1)
        # The first version is the default.
        model["versionAliases"] = list(aliases) if versions else [*aliases, "default"]
        model |= {"name": name, "versionId": version_id, "createTime": self.now()}
        versions[version_id] = model
        self._take_aliases(name, version_id, model["versionAliases"])
        self._hidden[f"{name}@{version_id}"] = self.hidden_versions
        response = {"model": name, "modelVersionId": version_id}
        return self._operation(name, "UploadModelResponse", response)

    def _take_aliases(self, name: str, version_id: str, aliases: list[str]) -> None:
        for key, item in self._versions[name].items():
            kept = [a for a in item["versionAliases"] if a not in aliases]
            item["versionAliases"] = sorted(set(aliases)) if key == version_id else kept

    def _version(self, name: str) -> Json:
        model, _, version_id = name.partition("@")
        for key, item in self._versions.get(model, {}).items():
            if key == version_id or (version_id or "default") in item["versionAliases"]:
                return item
        raise Refused(404, f"The Model `{name}` was not found.")

    def _get_model(self, place: str, name: str, query: dict[str, str]) -> Json:
        if name != f"{place}/models":
            return self._version(name)
        defaults = [self._version(item) for item in self._versions]
        return page("models", defaults, query, self.page_size)

    def _list_versions(self, name: str, query: dict[str, str]) -> Json:
        self._version(name)
        shown = [
            item
            for key, item in self._versions[name].items()
            if not self._hides(f"{name}@{key}")
        ]
        return page("models", shown, query, self.page_size)

    def _merge(self, name: str, data: Json) -> Json:
        given = checked("MergeVersionAliasesRequest", data)["versionAliases"]
        found = self._version(name)
        aliases = [*found["versionAliases"], *given]
        self._take_aliases(found["name"], found["versionId"], aliases)
        return found

    def _delete_version(self, name: str) -> Json:
        found = self._version(name)
        if "default" in found["versionAliases"]:
            raise Refused(400, "the default version cannot be deleted")
        del self._versions[found["name"]][found["versionId"]]
        name = f"{found['name']}/operations/{next(self._ids)}"
        empty = {"@type": "type.googleapis.com/google.protobuf.Empty"}
        self._pending[name] = {"name": name, "done": True, "response": empty}
        return {"name": name}

    def _make_endpoint(self, place: str, query: dict[str, str], data: Json) -> Json:
        only(query, COMMON_QUERY | {"endpointId"})
        endpoint = self._given("Endpoint", data)
        name = f"{place}/endpoints/{self._new_id(query.get('endpointId'))}"
        if name in self._endpoints:
            raise Refused(409, f"The Endpoint `{name}` already exists.")
        endpoint |= {"name": name, "createTime": self.now(), "etag": self._etag()}
        self._endpoints[name] = endpoint
        return self._operation(name, "Endpoint", endpoint)

    def _endpoint(self, name: str) -> Json:
        if name not in self._endpoints:
            raise Refused(404, f"The Endpoint `{name}` was not found.")
        return self._endpoints[name]

    def _get_endpoint(self, place: str, name: str, query: dict[str, str]) -> Json:
        if name != f"{place}/endpoints":
            return self._endpoint(name)
        return page("endpoints", self.endpoints(), query, self.page_size)

    def _set_traffic(self, name: str, query: dict[str, str], data: Json) -> Json:
        only(query, COMMON_QUERY | {"updateMask"})
        if query.get("updateMask") != "trafficSplit":
            raise Refused(400, "only the traffic split is updated here")
        given, endpoint = checked("Endpoint", data), self._endpoint(name)
        if given.get("etag", endpoint["etag"]) != endpoint["etag"]:
            raise Refused(409, "the etag does not match")
        split = given.get("trafficSplit", {})
        known = {item["id"] for item in endpoint.get("deployedModels", [])}
        if set(split) - known or sum(split.values()) not in (0, 100):
            raise Refused(400, f"the traffic split {split} is not valid")
        endpoint |= {"trafficSplit": split, "etag": self._etag()}
        return endpoint

    def _deploy(self, name: str, data: Json) -> Json:
        request, endpoint = checked("DeployModelRequest", data), self._endpoint(name)
        if request.get("trafficSplit"):
            raise Refused(400, "traffic would move before the deployment is ready")
        deployed = self._given("DeployedModel", request["deployedModel"])
        version = self._version(deployed["model"])
        machine = deployed["dedicatedResources"]["machineSpec"]
        if "machineType" not in machine:
            raise Refused(400, "machine_type is required")
        deployed_id = str(next(self._ids))
        deployed |= {"id": deployed_id, "modelVersionId": version["versionId"]}
        if version["containerSpec"]["imageUri"] in self.broken_images:
            why = f"Model server exited unexpectedly: {deployed['displayName']}"
            return self._operation(name, "DeployModelResponse", {}, error=why)
        endpoint.setdefault("deployedModels", []).append(deployed)
        endpoint["etag"] = self._etag()
        self.deployments.append(version["versionId"])
        response = {"deployedModel": deployed}
        return self._operation(name, "DeployModelResponse", response)

    def _undeploy(self, name: str, data: Json) -> Json:
        given, endpoint = checked("UndeployModelRequest", data), self._endpoint(name)
        deployed_id = given["deployedModelId"]
        if endpoint.get("trafficSplit", {}).get(deployed_id):
            raise Refused(400, "the deployed model has traffic")
        left = [i for i in endpoint["deployedModels"] if i["id"] != deployed_id]
        endpoint |= {"deployedModels": left, "etag": self._etag()}
        return self._operation(name, "UndeployModelResponse", {})

    def _given(self, kind: str, data: Json) -> Json:
        found = requested(kind, data, _OUTPUT_ONLY[kind])
        if not found.get("displayName"):
            raise Refused(400, f"{kind}.display_name is required")
        return found

    def _new_id(self, chosen: str | None) -> str:
        if chosen is not None and not re.fullmatch(_ID, chosen):
            raise Refused(400, f"the id {chosen!r} is not valid")
        return chosen or str(next(self._ids))

    def _etag(self) -> str:
        return f"etag-{next(self._ids)}"
