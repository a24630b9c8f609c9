"""Where the Pusher registers and deploys a model, beside the serving directory."""

from __future__ import annotations

from typing import Any

from pipeline.config.config import Config
from sluice.errors import ConfigError


def check_push(config: Config) -> None:
    """Raises a ``ConfigError`` if a destination lacks what it needs."""
    cloud = config.cloud
    assert cloud is not None
    push = cloud.push
    if push.registry is None and push.endpoint is None:
        return
    missing = [key for key in ("project", "region") if not getattr(cloud, key)]
    missing += [] if push.registry else ["push.registry"]
    if missing:
        raise ConfigError(
            "the destinations of cloud.push are not complete",
            where=config.origin.location(("cloud", "push")),
            expected=", ".join(f"cloud.{key}" for key in missing),
            hint="an endpoint serves a version of the registry"
            if missing == ["push.registry"]
            else f"--set cloud.{missing[0]}=...",
        )


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
