"""Registers a pushed version with Vertex AI, and deploys it to an endpoint.

Each push is a version of one model in the registry, labelled with the model's digest. A
version of the same digest is found by that label and not registered again. An endpoint
gets the new version without traffic; only when it is ready the traffic moves, and then
the previous one is removed. Whatever fails before leaves the previous one serving, and
a second attempt goes on from there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from components.pusher.vertex_client import VertexClient
from serving.model_store import Publication
from sluice.errors import UsageError
from sluice.storage.storage import is_remote
from sluice.vertex_ai import REQUEST_TIMEOUT_S

# A label's value has at most 63 characters, a SHA-256 has 64.
_LABEL_LENGTH = 63
_DIGEST_LABEL = "sluice_digest"


@dataclass(frozen=True)
class Registry:
    """A model in Vertex AI's registry.

    Attributes:
      model: its display name.
      serving_image: container that serves the SavedModel.
      project: by its id.
      region: such as ``europe-west4``.
      labels: of each version.
    """

    model: str
    serving_image: str
    project: str
    region: str
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Endpoint:
    """An endpoint, and the machines that serve each version.

    Attributes:
      name: its display name.
      machine_type: of each replica.
      accelerator: ``type`` and ``count`` of each replica's; None for none.
      min_replicas: replicas, at least.
      max_replicas: replicas, at most.
      traffic_percent: share of the requests that a new version gets.
    """

    name: str
    machine_type: str
    accelerator: Mapping[str, Any] | None = None
    min_replicas: int = 1
    max_replicas: int = 1
    traffic_percent: int = 100


@dataclass(frozen=True)
class Registered:
    """A version in the registry.

    Attributes:
      model: resource name of the model.
      version_id: of the registry.
    """

    model: str
    version_id: str

    def __str__(self) -> str:
        return f"{self.model}@{self.version_id}"


class VertexPush:
    """Pushes to one model of a registry."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._client = VertexClient(registry.project, registry.region)

    def register(self, publication: Publication, run_id: str | None) -> Registered:
        """Returns the registered version of a model; registers it if there is none.

        Args:
          publication: the version in the model store.
          run_id: of the run, for the version's description.

        Raises:
          UsageError: the model store is no bucket.
          RemoteError: the service refuses it, or does not answer.
        """
        if not is_remote(publication.uri):
            raise UsageError(
                "Vertex AI reads models from a bucket only",
                where="cloud.push.registry",
                expected="push.serving_dir on gs://",
                actual=publication.uri,
            )
        with self._client.explained("registered"):
            registered = self._client.call(lambda: self._ensure(publication, run_id))
            return self._client.call(lambda: self._without_duplicates(registered))

    def deploy(self, registered: Registered, endpoint: Endpoint) -> str:
        """Serves a version at an endpoint, and returns the endpoint's resource name.

        Raises:
          RemoteError: the service refuses it, does not answer, or cannot start the
            version; what was served is still served.
        """
        with self._client.explained("deployed; what was served before is still served"):
            name = self._client.call(lambda: self._endpoint_name(endpoint))
            self._client.call(lambda: self._ensure_deployed(name, registered, endpoint))
            self._client.call(lambda: self._move_traffic(name, registered, endpoint))
            return name

    def _ensure(self, publication: Publication, run_id: str | None) -> Registered:
        from google.cloud import aiplatform_v1 as vertex

        registry = self._registry
        model = self._find_model()
        label = publication.digest[:_LABEL_LENGTH]
        if model and (known := self._versions(model, label)):
            return Registered(model, known[0])
        request = vertex.UploadModelRequest(
            parent=self._client.parent,
            model=vertex.Model(
                display_name=registry.model,
                artifact_uri=publication.uri,
                container_spec=vertex.ModelContainerSpec(
                    image_uri=registry.serving_image
                ),
                labels={**registry.labels, _DIGEST_LABEL: label},
                version_aliases=[f"v{publication.version}", "default"],
                version_description=f"{publication.uri} of run {run_id}",
            ),
        )
        if model:
            request.parent_model = model
        else:
            request.model_id = resource_id(registry.model)
        answer = self._client.wait(
            self._client.models.upload_model(request, timeout=REQUEST_TIMEOUT_S)
        )
        return Registered(answer["model"].partition("@")[0], answer["modelVersionId"])

    def _find_model(self) -> str | None:
        from google.api_core.exceptions import NotFound

        registry = self._registry
        listed = self._client.models.list_models(
            request={
                "parent": self._client.parent,
                "filter": f"display_name={json.dumps(registry.model)}",
            }
        )
        if found := sorted(listed, key=lambda item: item.create_time):
            return found[0].name.partition("@")[0]
        # A new one may be missing in the list.
        name = f"{self._client.parent}/models/{resource_id(registry.model)}"
        try:
            return self._client.models.get_model(name=name).name.partition("@")[0]
        except NotFound:
            return None

    def _versions(self, model: str, label: str) -> list[str]:
        """Returns the ids of the versions with a digest, oldest first."""
        listed = self._client.models.list_model_versions(
            request={
                "name": model,
                "filter": f"labels.{_DIGEST_LABEL}={json.dumps(label)}",
            }
        )
        return sorted((item.version_id for item in listed), key=int)

    def _without_duplicates(self, registered: Registered) -> Registered:
        """Deletes versions that a lost answer or a race has made twice."""
        model = registered.model
        ours = self._client.models.get_model(name=str(registered))
        listed = self._versions(model, ours.labels[_DIGEST_LABEL])
        # A new one may be missing in the list.
        first, *others = sorted({*listed, registered.version_id}, key=int)
        for version_id in others:
            duplicate = self._client.models.get_model(name=f"{model}@{version_id}")
            if duplicate.version_aliases:  # The default version cannot be deleted.
                self._client.models.merge_version_aliases(
                    name=f"{model}@{first}",
                    version_aliases=list(duplicate.version_aliases),
                )
            self._client.wait(
                self._client.models.delete_model_version(name=f"{model}@{version_id}")
            )
        return Registered(model, first)

    def _endpoint_name(self, endpoint: Endpoint) -> str:
        from google.api_core.exceptions import Conflict

        parent, endpoint_id = self._client.parent, resource_id(endpoint.name)
        listed = self._client.endpoints.list_endpoints(
            request={
                "parent": parent,
                "filter": f"display_name={json.dumps(endpoint.name)}",
            }
        )
        if found := sorted(listed, key=lambda item: item.create_time):
            return found[0].name
        try:
            created = self._client.endpoints.create_endpoint(
                parent=parent,
                endpoint={"display_name": endpoint.name},
                endpoint_id=endpoint_id,
            )
            return self._client.wait(created)["name"]
        except Conflict:
            return f"{parent}/endpoints/{endpoint_id}"

    def _ensure_deployed(
        self, name: str, registered: Registered, endpoint: Endpoint
    ) -> None:
        from google.cloud import aiplatform_v1 as vertex

        found = self._client.endpoints.get_endpoint(name=name)
        if _deployments(found, registered):
            return
        machine = vertex.MachineSpec(machine_type=endpoint.machine_type)
        if endpoint.accelerator:
            machine.accelerator_type = endpoint.accelerator["type"]
            machine.accelerator_count = endpoint.accelerator["count"]
        deployed = vertex.DeployedModel(
            model=str(registered),
            display_name=f"{self._registry.model}-{registered.version_id}",
            dedicated_resources=vertex.DedicatedResources(
                machine_spec=machine,
                min_replica_count=endpoint.min_replicas,
                max_replica_count=endpoint.max_replicas,
            ),
        )
        # Without a traffic split: the new version gets no requests.
        request = vertex.DeployModelRequest(endpoint=name, deployed_model=deployed)
        self._client.wait(
            self._client.endpoints.deploy_model(request, timeout=REQUEST_TIMEOUT_S)
        )

    def _move_traffic(
        self, name: str, registered: Registered, endpoint: Endpoint
    ) -> None:
        from google.protobuf.field_mask_pb2 import FieldMask

        found = self._client.endpoints.get_endpoint(name=name)
        new = _deployments(found, registered)[0]
        split = dict(found.traffic_split)
        if not split.get(new.id):
            split = new_split(split, new.id, endpoint.traffic_percent)
            self._client.endpoints.update_endpoint(
                endpoint={"name": name, "traffic_split": split, "etag": found.etag},
                update_mask=FieldMask(paths=["traffic_split"]),
            )
        for deployed in found.deployed_models:
            is_ours = _model_id(deployed.model) == _model_id(registered.model)
            if is_ours and not split.get(deployed.id):
                self._client.wait(
                    self._client.endpoints.undeploy_model(
                        endpoint=name, deployed_model_id=deployed.id, traffic_split={}
                    )
                )


def resource_id(name: str) -> str:
    """Returns the id of a new model or endpoint: letters, digits and hyphens."""
    text = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    return (text if text[:1].isalpha() else f"m-{text}")[:63].rstrip("-")


def new_split(old: Mapping[str, int], new: str, percent: int) -> dict[str, int]:
    """Returns a traffic split in which a new deployment has a share.

    The others divide the rest as before; without others, the new one gets everything.

    Args:
      old: percentages by id of the deployment.
      new: the id of the new one.
      percent: its share.
    """
    others = {key: share for key, share in old.items() if key != new and share}
    rest, total = 100 - percent, sum(others.values())
    if not others or not rest:
        return {new: 100}
    split = {key: share * rest // total for key, share in others.items()}
    split[max(others, key=others.__getitem__)] += rest - sum(split.values())
    return {new: percent, **{key: share for key, share in split.items() if share}}


def _model_id(name: str) -> str:
    """Returns a model's id; the project may be named by id or number."""
    return name.partition("@")[0].rpartition("/")[2]


def _deployments(endpoint: Any, registered: Registered) -> list[Any]:
    """Returns the deployments of a version, those with traffic first."""
    found = [
        item
        for item in endpoint.deployed_models
        if _model_id(item.model) == _model_id(registered.model)
        and item.model_version_id == registered.version_id
    ]
    return sorted(found, key=lambda item: -endpoint.traffic_split.get(item.id, 0))
