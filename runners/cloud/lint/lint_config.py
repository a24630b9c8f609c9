"""Lints a config for its service, without TFX and in milliseconds.

Finds what is known from the config alone: what is missing, names that the service
refuses, what is on this machine, secrets, and machines that do not exist.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import Any

from pipeline.config.cloud import DEFAULT, Cloud
from pipeline.config.config import Config
from pipeline.config.origin import KeyPath, key_path
from pipeline.graph.custom_nodes import node_ids
from runners.cloud.cron import Cron
from runners.cloud.lint import machine_types
from runners.cloud.lint.finding import Finding, error, warning
from runners.cloud.lint.lint_machine import (
    lint_gpu,
    lint_job,
    lint_machine_name,
    lint_resources,
)
from runners.cloud.lint.lint_value import (
    SECRET_FIX,
    lint_image,
    lint_path,
    lint_secret,
    texts_of,
)
from runners.cloud.trainer_job import TRAINER, job_kinds, needs_custom_job
from sluice.errors import ConfigError, did_you_mean
from sluice.secrets import references
from sluice.storage.storage import is_remote

# https://cloud.google.com/resource-manager/docs/labels-overview; the service takes 64
# labels a job, and Sluice and TFX add some.
_LABEL_KEY, _LABEL_VALUE = r"[a-z][a-z0-9_-]{0,62}", r"[a-z0-9_-]{0,63}"
_MAX_LABELS = 56
_ACCOUNT = r"[^@\s]+@[^@\s]+\.gserviceaccount\.com"
_NETWORK = r"projects/\d+/global/networks/[a-z]([a-z0-9-]*[a-z0-9])?"


def lint_config(config: Config) -> list[Finding]:
    """Returns the findings about a validated config with a ``cloud`` section."""
    assert config.cloud is not None
    lint = _Lint(config, config.cloud)
    checks = (
        lint.needed,
        lint.names,
        lint.images,
        lint.local_paths,
        lint.secrets,
        lint.nodes,
        lint.push,
        lint.schedule,
        lint.kubeflow,
    )
    return [finding for check in checks for finding in check()]


class _Lint:
    """The checks of one config; each yields its findings."""

    def __init__(self, config: Config, cloud: Cloud) -> None:
        self._config, self._cloud = config, cloud
        self._vertex = cloud.engine == "vertex"

    def _at(self, *path: str | int) -> str:
        location, key = self._config.origin.location(path), key_path(path)
        if location.startswith("--set "):  # Without the value: it may be a secret.
            location = location.partition("=")[0]
        return location if location == f"--set {key}" else f"{location}, {key}"

    def needed(self) -> Iterator[Finding]:
        """What a run cannot do without."""
        needed = {"root": "gs://BUCKET/FOLDER", "image": "REGISTRY/IMAGE"}
        if self._vertex:
            needed["region"] = "REGION"
        if self._vertex and self._names_project():
            needed["project"] = "PROJECT"
        for key, example in needed.items():
            if getattr(self._cloud, key) is None:
                yield error(
                    self._at("cloud", key),
                    f"there is no cloud.{key}",
                    f"write it into a profile, or add --set cloud.{key}={example}",
                )
        region = self._cloud.region
        if self._vertex and region is not None and region not in machine_types.REGIONS:
            hint = did_you_mean(region, machine_types.REGIONS)
            yield warning(
                self._at("cloud", "region"),
                f"Vertex AI had no region {region!r} in {machine_types.AS_OF}",
                hint or "check its name",
            )

    def _names_project(self) -> bool:
        """Whether the compiled pipeline names the project; else credentials may."""
        dataflow = self._cloud.beam.runner == "dataflow"
        given = map(self._cloud.of_node, job_kinds(self._config))
        has_job = any(map(needs_custom_job, given))
        return bool(dataflow or has_job or self._cloud.push.registry)

    def names(self) -> Iterator[Finding]:
        """Names and labels in the form that the service wants."""
        cloud, name = self._cloud, self._config.name
        if self._vertex and not re.fullmatch(_LABEL_VALUE, name):
            yield error(
                self._at("name"),
                f"the pipeline's name has {len(name)} characters; it is a label of the "
                "job, with at most 63",
                "take a shorter name",
            )
        places: dict[KeyPath, dict[str, str]] = {("cloud", "labels"): cloud.labels}
        if cloud.push.registry:
            places["cloud", "push", "registry", "labels"] = cloud.push.registry.labels
        for path, labels in places.items():
            if len(labels) > _MAX_LABELS:
                what = f"there are {len(labels)} labels, at most {_MAX_LABELS} fit"
                yield error(self._at(*path), what, "leave some out")
            for key, value in labels.items():
                if re.fullmatch(_LABEL_KEY, key) and re.fullmatch(_LABEL_VALUE, value):
                    continue
                yield error(
                    self._at(*path, key),
                    f"{key!r}: {value!r} is not a valid label",
                    "write at most 63 lower-case letters, digits, hyphens and "
                    "underscores, the key's first a letter",
                )
        given = {"service_account": _ACCOUNT, "network": _NETWORK}
        examples = {
            "service_account": "NAME@PROJECT.iam.gserviceaccount.com",
            "network": "projects/PROJECT_NUMBER/global/networks/NAME",
        }
        for key, pattern in given.items():
            value = getattr(cloud, key)
            if self._vertex and value is not None and not re.fullmatch(pattern, value):
                yield error(
                    self._at("cloud", key),
                    f"{value!r} is not a {key.replace('_', ' ')}",
                    f"write {examples[key]}",
                )

    def images(self) -> Iterator[Finding]:
        """References to images, of all nodes and of Dataflow's workers."""
        given: dict[KeyPath, str | None] = {
            ("cloud", "image"): self._cloud.image,
            ("cloud", "beam", "image"): self._cloud.beam.image,
        }
        for name, node in self._cloud.nodes.items():
            given["cloud", "nodes", name, "image"] = node.image
        for path, image in given.items():
            if image is not None:
                yield from lint_image(image, self._at(*path))

    def local_paths(self) -> Iterator[Finding]:
        """Files and folders of this machine, which no node elsewhere can read."""
        config = self._config
        if not is_remote(config.data.dir):
            target = f"{self._cloud.root or 'gs://BUCKET/FOLDER'}/{config.name}/data"
            yield error(
                self._at("data", "dir"),
                f"the data, {config.data.dir}, is on this machine",
                f"copy it: gcloud storage rsync --recursive {config.data.dir} "
                f"{target}, then write data: {{dir: {target}}}",
            )
        if config.push.serving_dir is not None and not is_remote(
            config.push.serving_dir
        ):
            yield warning(
                self._at("push", "serving_dir"),
                f"{config.push.serving_dir} is on this machine, so models are pushed "
                f"to <cloud.root>/{config.name}/serving instead",
                "write a gs:// address, or null",
            )
        for name, own in config.nodes.items():
            for key, text in texts_of(own.parameters):
                where = self._at("nodes", name, "parameters", *key)
                yield from lint_path(text, config.root, where)

    def secrets(self) -> Iterator[Finding]:
        """Credentials in what is published, references that nothing resolves there."""
        config, cloud = self._config, self._cloud
        values: list[tuple[KeyPath, Any, str]] = [
            (("model_params",), config.model_params, TRAINER)
        ]
        values += [
            (("nodes", name, "parameters"), own.parameters, name)
            for name, own in config.nodes.items()
        ]
        for path, value, node in values:
            for key, text in texts_of(value):
                where = self._at(*path, *key)
                for name in references(text):
                    if name is not None and name not in cloud.of_node(node).env:
                        yield error(
                            where,
                            f"nothing sets the environment variable {name} in the "
                            f"container of {node}",
                            SECRET_FIX,
                        )
                yield from lint_secret(str(key[-1]) if key else "", text, where)
        variables: dict[KeyPath, dict[str, str]] = {("cloud", "env"): cloud.env}
        for name, resources in cloud.nodes.items():
            variables["cloud", "nodes", name, "env"] = resources.env
        for path, env in variables.items():
            for name, text in env.items():
                yield from lint_secret(name, text, self._at(*path, name))

    def nodes(self) -> Iterator[Finding]:
        """What nodes are given, as far as a machine of the service can have it."""
        known = node_ids(self._config)
        beam = self._cloud.beam
        named: list[tuple[KeyPath, str]] = [
            (("cloud", "nodes", name), name)
            for name in self._cloud.nodes
            if name != DEFAULT
        ]
        named += [
            (("cloud", "beam", "nodes", index), name)
            for index, name in enumerate(beam.nodes or ())
        ]
        for path, name in named:
            if name not in known:
                yield error(
                    self._at(*path),
                    f"there is no node {name!r}",
                    did_you_mean(name, known) or f"one of {', '.join(known)}",
                )
        if not self._vertex:
            return
        if beam.machine_type is not None and beam.runner == "dataflow":
            where = self._at("cloud", "beam", "machine_type")
            yield from lint_machine_name(beam.machine_type, where)
        jobs = job_kinds(self._config)
        for name, own in self._cloud.nodes.items():
            at = partial(self._at, "cloud", "nodes", name)
            yield from lint_resources(
                own, self._cloud.region, at, can_be_job=name in jobs
            )
        for name in jobs:
            yield from lint_job(
                self._cloud.of_node(name),
                self._config.train.strategy if name == TRAINER else "auto",
                self._cloud.region,
                partial(self._at, "cloud", "nodes", name),
            )

    def push(self) -> Iterator[Finding]:
        """Registry and endpoint."""
        push, where = self._cloud.push, self._at("cloud", "push")
        if push.endpoint is None:
            return
        endpoint = push.endpoint
        where = f"{where}.endpoint"
        if push.registry is None:
            yield error(
                where,
                "an endpoint serves a model of the registry, and there is no "
                "cloud.push.registry",
                "add registry: {serving_image: ...}",
            )
        if endpoint.min_replicas > endpoint.max_replicas:
            what = "min_replicas is larger than max_replicas"
            yield error(where, what, f"write max_replicas: {endpoint.min_replicas}")
        yield from lint_machine_name(endpoint.machine_type, f"{where}.machine_type")
        if endpoint.accelerator is not None:
            yield from lint_gpu(
                endpoint.machine_type,
                endpoint.accelerator,
                self._cloud.region,
                f"{where}.accelerator",
            )

    def schedule(self) -> Iterator[Finding]:
        """Times of the schedule."""
        schedule = self._cloud.schedule
        if schedule is None:
            return
        try:
            Cron(schedule.cron, schedule.timezone or "UTC")
        except ConfigError as wrong:
            what = f"{wrong.what}: {wrong.actual}" if wrong.actual else wrong.what
            fix = wrong.hint or f"write {wrong.expected}"
            yield error(self._at("cloud", "schedule"), what, fix)

    def kubeflow(self) -> Iterator[Finding]:
        """What Kubeflow Pipelines does not have."""
        if self._vertex:
            return
        if self._cloud.kubeflow is None:
            yield warning(
                self._at("cloud", "kubeflow"),
                "sluice submit and schedule need the address of Kubeflow Pipelines",
                "write kubeflow: {host: https://...}",
            )
        lacking: dict[KeyPath, object] = {
            ("push", "registry"): self._cloud.push.registry,
            ("push", "endpoint"): self._cloud.push.endpoint,
            ("network",): self._cloud.network,
        }
        for name, own in self._cloud.nodes.items():
            for key in ("machine_type", "workers", "tpu"):
                lacking["nodes", name, key] = getattr(own, key)
        for path, value in lacking.items():
            if value is not None:
                yield error(
                    self._at("cloud", *path),
                    f"Kubeflow Pipelines has no {path[-1]}; only Vertex AI does",
                    "leave it out, or take engine: vertex",
                )
