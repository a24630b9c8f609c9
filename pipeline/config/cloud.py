"""Config section ``cloud``: where and how a service runs the pipeline.

The section changes no graph: ``runners/cloud`` lays it over the compiled spec. Names of
machines, accelerators and regions are the service's own, and checked by it.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from annotated_types import Ge, Le
from pydantic import AfterValidator, StrictInt, StrictStr, model_validator

from sluice.config_section import (
    BUCKET_ADDRESS,
    Count,
    Flag,
    PositiveNumber,
    Section,
    Text,
    expect,
    matching,
    refuse,
)

DEFAULT = "default"


def _bucket_uri(value: str) -> str:
    if not re.fullmatch(BUCKET_ADDRESS, value) or re.search(r"[?*#]", value):
        expect("a place in a bucket, such as gs://my-bucket/sluice")
    return value.rstrip("/")


def _cron(value: str) -> str:
    from cronsim import CronSim, CronSimError

    try:
        if len(value.split()) != 5:
            raise CronSimError("not five fields")
        next(CronSim(value, datetime.now()))
    except (CronSimError, StopIteration):
        expect("five fields (minute, hour, day, month, weekday) such as '0 3 * * *'")
    return value


def _timezone(value: str) -> str:
    try:
        ZoneInfo(value)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        expect("a time zone, such as UTC or Europe/Berlin")
    return value


BucketUri = Annotated[Text, AfterValidator(_bucket_uri)]
Environment = dict[Text, StrictStr]
Labels = dict[Text, StrictStr]
_Region = Annotated[Text, matching(r"[a-z]+-[a-z]+\d+", "such as europe-west4")]
_Attempts = Annotated[StrictInt, Ge(0), Le(20)]
_Percent = Annotated[StrictInt, Ge(0), Le(100)]


class Accelerator(Section):
    """GPUs of each machine."""

    type: Text
    """By the service's name, such as `NVIDIA_TESLA_T4`."""
    count: Count = 1
    """How many of them each machine has."""


class Tpu(Section):
    """A TPU, on Vertex AI with a `machine_type` such as `ct5lp-hightpu-4t`."""

    topology: Text
    """Arrangement of its chips, such as `2x2`."""
    runtime_version: Text
    """Version of the TPU software that the image holds, such as `2.16.1`: that of its
    TensorFlow. It labels the job."""


class NodeResources(Section):
    """What a node is given, and how the service runs it."""

    cpu: PositiveNumber | None = None
    """CPU cores. null: the service's default."""
    memory_gb: PositiveNumber | None = None
    """Memory, in GB (10^9 bytes). null: the service's default."""
    accelerator: Accelerator | None = None
    machine_type: Text | None = None
    """Machine type of the custom job of the Trainer, such as `n1-standard-8`. null: the
    service chooses one by `cpu` and `memory_gb`."""
    workers: Count | None = None
    """Machines of the Trainer, for `strategy: multi_worker`. null: one."""
    tpu: Tpu | None = None
    retries: _Attempts | None = None
    """Further attempts of the service after any failure; `default` is not for gates.
    null: none."""
    cache: Flag | None = None
    """Whether the service may reuse the outputs of an earlier run. null: for all nodes
    whose result depends on their inputs only."""
    image: Text | None = None
    """Image of the node. null: `cloud.image`."""
    env: Environment = {}
    """Environment variables, added to `cloud.env`."""

    @property
    def needs_custom_job(self) -> bool:
        """Whether a container task of Vertex AI cannot have these resources."""
        return bool(self.machine_type or self.tpu or (self.workers or 1) > 1)


class CloudBeam(Section):
    """Where the Beam pipelines inside the nodes run."""

    runner: Literal["direct", "dataflow"] = "direct"
    """In the node's own process, or on Dataflow."""
    nodes: tuple[Text, ...] | None = None
    """The nodes that use Dataflow. null: all nodes that run Beam."""
    machine_type: Text | None = None
    """Machine type of Dataflow's workers."""
    workers: Count | None = None
    """Dataflow's workers at the start."""
    max_workers: Count | None = None
    """Dataflow's workers, at most."""
    disk_gb: Count | None = None
    """Disk of each worker."""
    image: Text | None = None
    """Image of the workers. null: `cloud.image`."""
    args: tuple[Text, ...] = ()
    """Further Beam options, such as `--streaming=false`."""


class Registry(Section):
    """A model of Vertex AI's registry, of which each push is a version."""

    model: Text | None = None
    """Its display name. null: the pipeline's name."""
    serving_image: Text
    """Container that serves the SavedModel, such as
    `us-docker.pkg.dev/vertex-ai/prediction/tf2-cpu.2-15:latest`."""
    labels: Labels = {}
    """Labels of each version."""


class Endpoint(Section):
    """An endpoint of Vertex AI that each registered version is deployed to."""

    name: Text | None = None
    """Its display name. null: the pipeline's name."""
    machine_type: Text = "n1-standard-2"
    """Machine type of each replica."""
    accelerator: Accelerator | None = None
    min_replicas: Count = 1
    """Replicas, at least."""
    max_replicas: Count = 1
    """Replicas, at most."""
    traffic_percent: _Percent = 100
    """Share of the requests that a new version gets."""

    @model_validator(mode="after")
    def _check_replicas(self) -> Endpoint:
        if self.min_replicas > self.max_replicas:
            refuse("max_replicas is less than min_replicas", "max_replicas")
        return self


class CloudPush(Section):
    """Where the model goes, apart from the serving directory (Vertex AI only)."""

    registry: Registry | None = None
    endpoint: Endpoint | None = None
    """Needs `registry`. null: none."""

    @model_validator(mode="after")
    def _check_endpoint(self) -> CloudPush:
        if self.endpoint is not None and self.registry is None:
            refuse("endpoint serves a model of the registry: give registry too")
        return self


class Schedule(Section):
    """When the service starts runs by itself."""

    cron: Annotated[Text, AfterValidator(_cron)]
    """Five fields, such as `0 3 * * *`."""
    timezone: Annotated[Text, AfterValidator(_timezone)] = "UTC"
    """Such as `Europe/Berlin`."""
    max_concurrent: Count = 1
    """Runs of the schedule at the same time, at most."""
    catch_up: Flag = False
    """Whether missed runs are made up for."""


class Cloud(Section):
    """Where and how a service runs the pipeline."""

    engine: Literal["vertex", "kubeflow"] = "vertex"
    """Vertex AI Pipelines or Kubeflow Pipelines."""
    root: BucketUri | None = None
    """Folder in a bucket, such as `gs://my-bucket/sluice`; artifacts, accepted data,
    inputs and records are in `<root>/<name>/`. Needed to run."""
    image: Text | None = None
    """Image of every node."""
    project: Text | None = None
    """Google Cloud project, by its id."""
    region: _Region | None = None
    """Such as `europe-west4`."""
    service_account: Text | None = None
    """Account that the nodes run as. null: the service's default."""
    network: Text | None = None
    """Network, such as `projects/12345/global/networks/mine`."""
    labels: Labels = {}
    """Labels of jobs and of what they create."""
    env: Environment = {}
    """Environment variables of every node; no secrets."""
    nodes: dict[Text, NodeResources] = {}
    """By node, such as `{Trainer: {memory_gb: 32}}`. What `default` says is for every
    node; a node's own keys replace it."""
    beam: CloudBeam = CloudBeam.model_construct()
    push: CloudPush = CloudPush.model_construct()
    schedule: Schedule | None = None

    @property
    def selects_spans(self) -> bool:
        """Whether the first node of a run selects the spans: for a schedule.

        On Kubeflow Pipelines always, since nothing of ours starts its runs.
        """
        return self.engine == "kubeflow" or self.schedule is not None

    def of_node(self, node_id: str) -> NodeResources:
        """Returns the settings of a node, with those of ``default``."""
        default = self.nodes.get(DEFAULT, NodeResources())
        own = self.nodes.get(node_id, NodeResources())
        given = {name: getattr(own, name) for name in own.model_fields_set}
        env = {**self.env, **default.env, **own.env}
        return default.model_copy(update={**given, "env": env})
