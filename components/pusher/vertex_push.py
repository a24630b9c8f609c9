"""Registers a pushed version with Vertex AI.

Each push is a version of one model in the registry, labelled with the model's digest. A
version of the same digest is found by that label and not registered again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from google.cloud.aiplatform import Model, init

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
    name = f"display_name={json.dumps(registry['model'])}"
    models = Model.list(filter=name, order_by="create_time")
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
