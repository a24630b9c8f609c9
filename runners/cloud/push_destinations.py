"""Where the Pusher registers and deploys a model, beside the serving directory."""

from __future__ import annotations

from typing import Any

from pipeline.config.config import Config


def push_destinations(config: Config) -> dict[str, Any]:
    """Returns the keys of the Pusher's ``custom_config``, see ``components.pusher``."""
    cloud = config.cloud
    assert cloud is not None
    found: dict[str, Any] = {}
    if cloud.push.registry is not None:
        registry = cloud.push.registry.model_dump()
        found["registry"] = {
            **registry,
            "model": registry["model"] or config.name,
            "labels": {**cloud.labels, **registry["labels"]},
            "project": cloud.project,
            "region": cloud.region,
        }
    if cloud.push.endpoint is not None:
        endpoint = cloud.push.endpoint.model_dump()
        found["endpoint"] = {**endpoint, "name": endpoint["name"] or config.name}
    return found
