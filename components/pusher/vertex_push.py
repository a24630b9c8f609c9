"""Registers a pushed version with Vertex AI, and deploys it to an endpoint.

Each push is a version of one model in the registry, labelled with the model's digest. A
version of the same digest is found by that label and not registered again. An endpoint
gets the new version without traffic; only when it is ready the traffic moves, and then
the previous one is removed. Whatever fails before leaves the previous one serving, and
a second attempt goes on from there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from google.cloud.aiplatform import Endpoint, Model, init

from serving.model_store import Publication
from sluice.errors import UsageError
from sluice.storage.storage import is_remote

# A label's value has at most 63 characters, a SHA-256 has 64.
_LABEL_LENGTH = 63
_DIGEST_LABEL = "sluice_digest"


def register(
    publication: Publication, registry: Mapping[str, Any], run_id: str | None
) -> Model:
    """Returns the registered version of a model; registers it if there is none.

    Args:
      publication: the version in the model store.
      registry: ``model``, the display name; ``serving_image``; ``labels`` of the
        version; ``project`` and ``region``.
      run_id: of the run, for the version's description.

    Raises:
      UsageError: the model store is no bucket.
      GoogleAPIError: the service refuses it, or does not answer.
    """
    if not is_remote(publication.uri):
        raise UsageError(
            "Vertex AI reads models from a bucket only",
            where="cloud.push.registry",
            expected="push.serving_dir on gs://",
            actual=publication.uri,
        )
    init(project=registry["project"], location=registry["region"])
    models = Model.list(filter=_named(registry["model"]), order_by="create_time")
    parent = models[0].resource_name if models else None
    label = publication.digest[:_LABEL_LENGTH]
    if parent:
        of_digest = f"labels.{_DIGEST_LABEL}={json.dumps(label)}"
        registered = models[0].versioning_registry.list_versions(filter=of_digest)
        if registered:
            return Model(parent, version=registered[0].version_id)
    return Model.upload(
        registry["serving_image"],
        artifact_uri=publication.uri,
        parent_model=parent,
        version_aliases=[f"v{publication.version}"],
        version_description=f"{publication.uri} of run {run_id}",
        display_name=registry["model"],
        labels={**registry["labels"], _DIGEST_LABEL: label},
    )


def deploy(model: Model, settings: Mapping[str, Any]) -> str:
    """Serves a version at an endpoint, and returns the endpoint's resource name.

    Args:
      model: as ``register`` returns it.
      settings: ``name``, the endpoint's display name; ``machine_type``, ``accelerator``
        (``type`` and ``count``, or None), ``min_replicas`` and ``max_replicas`` of the
        version; ``traffic_percent``, its share of the requests.

    Raises:
      GoogleAPIError: the service refuses it, does not answer, or cannot start the
        version; what was served is still served.
    """
    endpoints = Endpoint.list(filter=_named(settings["name"]), order_by="create_time")
    endpoint = (
        endpoints[0] if endpoints else Endpoint.create(display_name=settings["name"])
    )
    if not [*_deployments(endpoint, model, model.version_id)]:
        accelerator = settings["accelerator"] or {}
        endpoint.deploy(
            model,
            deployed_model_display_name=f"{model.display_name}-{model.version_id}",
            # Leaves the split as it is; traffic_percentage=0 may be rounded, or be 100.
            traffic_split={},
            machine_type=settings["machine_type"],
            min_replica_count=settings["min_replicas"],
            max_replica_count=settings["max_replicas"],
            accelerator_type=accelerator.get("type"),
            accelerator_count=accelerator.get("count"),
        )
    split = endpoint.traffic_split
    ids = [*_deployments(endpoint, model, model.version_id)]
    if not any(split.get(deployed) for deployed in ids):
        split = new_split(split, ids[0], settings["traffic_percent"])
        endpoint.update(traffic_split=split)
    for deployed in _deployments(endpoint, model):
        if not split.get(deployed):
            endpoint.undeploy(deployed)
    return endpoint.resource_name


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


def _named(display_name: str) -> str:
    return f"display_name={json.dumps(display_name)}"


def _deployments(
    endpoint: Endpoint, model: Model, version_id: str | None = None
) -> Iterator[str]:
    """Yields the ids of what serves a model, or one version of it, at an endpoint."""
    for item in endpoint.list_models():
        # The project may be named by its id or by its number.
        same = item.model.partition("@")[0].rpartition("/")[2] == model.name
        if same and version_id in (None, item.model_version_id):
            yield item.id
