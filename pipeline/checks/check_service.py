"""Checks a config for its service, without TFX: what would be wrong there, and silent.

What the service refuses by itself, such as an unknown machine, is left to the service.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from pipeline.config.cloud import DEFAULT, Cloud
from pipeline.config.config import Config
from pipeline.config.data import REQUESTS
from pipeline.config.problems import KeyPath, Problems
from pipeline.graph.custom_nodes import node_ids
from pipeline.graph.node_registry import TRAINER
from sluice.errors import ConfigError
from sluice.secrets import references
from sluice.storage.storage import is_remote


def cloud_of(config: Config) -> Cloud:
    """Returns the section ``cloud``.

    Raises:
      ConfigError: there is none.
    """
    if config.cloud is None:
        raise ConfigError(
            "the config has no section cloud",
            where=config.origin.file,
            expected="where a service runs the pipeline",
            hint="--profile vertex or --profile kubeflow, with --set "
            "cloud.root=gs://BUCKET/FOLDER",
        )
    return config.cloud


def check_service(config: Config) -> list[str]:
    """Checks a config for its service; returns warnings.

    Raises:
      ConfigError: the config is wrong; names all problems.
    """
    cloud, problems = cloud_of(config), Problems(config.origin)
    _check_needed(cloud, problems)
    _check_places(config, cloud, problems)
    _check_references(config, cloud, problems)
    _check_nodes(config, cloud, problems)
    problems.raise_if_any()
    return problems.warnings


def _check_needed(cloud: Cloud, problems: Problems) -> None:
    needed = {"root": "gs://BUCKET/FOLDER", "image": "REGISTRY/IMAGE"}
    if cloud.engine == "vertex":
        needed["region"] = "REGION"
        job = cloud.of_node(TRAINER).needs_custom_job
        # Otherwise the credentials may name it.
        if job or cloud.beam.runner == "dataflow" or cloud.push.registry:
            needed["project"] = "PROJECT"
    for key, example in needed.items():
        if getattr(cloud, key) is None:
            hint = f"--set cloud.{key}={example}"
            problems.add(("cloud", key), f"there is no cloud.{key}", hint=hint)


def _check_places(config: Config, cloud: Cloud, problems: Problems) -> None:
    if not is_remote(config.data.dir):
        target = f"{cloud.root or 'gs://BUCKET/FOLDER'}/{config.name}/data"
        problems.add(
            ("data", "dir"),
            f"the data, {config.data.dir}, is on this machine",
            hint=f"gcloud storage rsync --recursive {config.data.dir} {target}, then "
            f"--set data.dir={target}",
        )
    if config.data.serving == REQUESTS:
        what = "requests are recorded on the machine of `sluice serve`"
        hint = "copy them below data.dir, and name them by `logs`"
        problems.add(("data", "serving"), what, hint=hint)
    local = config.push.serving_dir
    if local is not None and not is_remote(local):
        problems.warn(
            ("push", "serving_dir"),
            f"{local} is on this machine, so models are pushed to "
            f"<cloud.root>/{config.name}/serving instead",
        )


def _check_references(config: Config, cloud: Cloud, problems: Problems) -> None:
    places: list[tuple[KeyPath, Any, str]] = [
        (("model_params",), config.model_params, TRAINER)
    ]
    places += [
        (("nodes", name, "parameters"), own.parameters, name)
        for name, own in config.nodes.items()
    ]
    for path, value, node in places:
        for name in references(json.dumps(value)):
            if name is not None and name not in cloud.of_node(node).env:
                problems.add(
                    path,
                    f"nothing sets the environment variable {name} in the container "
                    f"of {node}",
                    hint="keep a secret in Secret Manager, and let your code read it "
                    "as the nodes' service account",
                )


def _check_nodes(config: Config, cloud: Cloud, problems: Problems) -> None:
    known = node_ids(config)
    named: list[tuple[KeyPath, str]] = [
        (("cloud", "nodes", name), name) for name in cloud.nodes if name != DEFAULT
    ]
    named += [
        (("cloud", "beam", "nodes", index), name)
        for index, name in enumerate(cloud.beam.nodes or ())
    ]
    for path, name in named:
        if name not in known:
            problems.unknown(path, f"there is no node {name!r}", name, known)
    for path, jobs in _keys_of_others(cloud):
        problems.add(path, f"only {jobs} can have {path[-1]}")


def _keys_of_others(cloud: Cloud) -> Iterator[tuple[KeyPath, str]]:
    """Yields keys that the service or the node does not have, and who has them."""
    on_vertex = cloud.engine == "vertex"
    if not on_vertex:
        for key in ("registry", "endpoint"):
            if getattr(cloud.push, key) is not None:
                yield ("cloud", "push", key), "Vertex AI"
        if cloud.network is not None:
            yield ("cloud", "network"), "Vertex AI"
    for name, own in cloud.nodes.items():
        if on_vertex and name == TRAINER:
            continue
        for key in ("machine_type", "workers", "tpu"):
            if getattr(own, key) is not None:
                yield ("cloud", "nodes", name, key), "the Trainer on Vertex AI"
