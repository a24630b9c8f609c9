"""Config section ``cloud``: where and how a service runs the pipeline.

The section changes no graph: ``runners/cloud`` lays it over the compiled spec. Names of
machines, accelerators and regions are checked by the linter against a dated table.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from sluice.config_section import Count, Flag, PositiveNumber, Section, Text, expect
from sluice.retries import MAX_RETRIES
from sluice.storage.storage import is_remote

DEFAULT = "default"


def _bucket_uri(value: str) -> str:
    if not is_remote(value) or not re.fullmatch(r"gs://[^/?*#]+(/[^?*#]+)?", value):
        expect("a place in a bucket, such as gs://my-bucket/sluice")
    return value.rstrip("/")


def _variable(value: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", value):
        expect("the name of an environment variable")
    return value


BucketUri = Annotated[Text, AfterValidator(_bucket_uri)]
Environment = dict[
    Annotated[str, Field(strict=True), AfterValidator(_variable)],
    Annotated[str, Field(strict=True)],
]
Labels = dict[Text, Annotated[str, Field(strict=True)]]
_Attempts = Annotated[int, Field(strict=True, ge=0, le=MAX_RETRIES)]
_Percent = Annotated[int, Field(strict=True, ge=0, le=100)]


class Accelerator(Section):
    """GPUs of each machine."""

    type: Text = Field(description="By the service's name, such as `NVIDIA_TESLA_T4`.")
    count: Count = Field(default=1, description="How many of them each machine has.")


class Tpu(Section):
    """A TPU, on Vertex AI with a `machine_type` such as `ct5lp-hightpu-4t`."""

    topology: Text = Field(description="Arrangement of its chips, such as `2x2`.")
    runtime_version: Text = Field(
        description="Version of the TPU software that the image holds, such as "
        "`2.16.1`: that of its TensorFlow. It labels the job."
    )


class NodeResources(Section):
    """What a node is given, and how the service runs it."""

    cpu: PositiveNumber | None = Field(
        default=None, description="CPU cores. null: the service's default."
    )
    memory_gb: PositiveNumber | None = Field(
        default=None,
        description="Memory, in GB (10^9 bytes). null: the service's default.",
    )
    accelerator: Accelerator | None = None
    machine_type: Text | None = Field(
        default=None,
        description="Machine type of the custom job of the Trainer or a Tuner, such as "
        "`n1-standard-8`. null: the service chooses one by `cpu` and `memory_gb`.",
    )
    workers: Count | None = Field(
        default=None,
        description="Machines of the Trainer, for `strategy: multi_worker`. null: one.",
    )
    tpu: Tpu | None = None
    retries: _Attempts | None = Field(
        default=None,
        description="Further attempts of the service. null: what the config's "
        "`retries` say, of gates none.",
    )
    cache: Flag | None = Field(
        default=None,
        description="Whether the service may reuse the outputs of an earlier run. "
        "null: for all nodes whose result depends on their inputs only.",
    )
    image: Text | None = Field(
        default=None, description="Image of the node. null: `cloud.image`."
    )
    env: Environment = Field(
        default={}, description="Environment variables, added to `cloud.env`."
    )


class CloudBeam(Section):
    """Where the Beam pipelines inside the nodes run."""

    runner: Literal["direct", "dataflow"] = Field(
        default="direct",
        description="In the node's own process, or on Dataflow.",
    )
    nodes: tuple[Text, ...] | None = Field(
        default=None,
        description="The nodes that use Dataflow. null: all nodes that run Beam.",
    )
    machine_type: Text | None = Field(
        default=None, description="Machine type of Dataflow's workers."
    )
    workers: Count | None = Field(
        default=None, description="Dataflow's workers at the start."
    )
    max_workers: Count | None = Field(
        default=None, description="Dataflow's workers, at most."
    )
    disk_gb: Count | None = Field(default=None, description="Disk of each worker.")
    image: Text | None = Field(
        default=None, description="Image of the workers. null: `cloud.image`."
    )
    args: tuple[Text, ...] = Field(
        default=(), description="Further Beam options, such as `--streaming=false`."
    )


class Registry(Section):
    """A model of Vertex AI's registry, of which each push is a version."""

    model: Text | None = Field(
        default=None, description="Its display name. null: the pipeline's name."
    )
    serving_image: Text = Field(
        description="Container that serves the SavedModel, such as "
        "`us-docker.pkg.dev/vertex-ai/prediction/tf2-cpu.2-15:latest`."
    )
    labels: Labels = Field(default={}, description="Labels of each version.")


class Endpoint(Section):
    """An endpoint of Vertex AI that each registered version is deployed to."""

    name: Text | None = Field(
        default=None, description="Its display name. null: the pipeline's name."
    )
    machine_type: Text = Field(
        default="n1-standard-2", description="Machine type of each replica."
    )
    accelerator: Accelerator | None = None
    min_replicas: Count = Field(default=1, description="Replicas, at least.")
    max_replicas: Count = Field(default=1, description="Replicas, at most.")
    traffic_percent: _Percent = Field(
        default=100, description="Share of the requests that a new version gets."
    )


class CloudPush(Section):
    """Where the model goes, apart from the serving directory (Vertex AI only)."""

    registry: Registry | None = None
    endpoint: Endpoint | None = Field(
        default=None,
        description="The endpoint to deploy to; needs `registry`. null: none.",
    )


class Kubeflow(Section):
    """A Kubeflow Pipelines installation; its own settings give the credentials."""

    host: Text = Field(description="Address of its API, such as `https://kfp.example`.")
    namespace: Text | None = Field(
        default=None, description="Namespace of a multi-user installation."
    )
    experiment: Text | None = Field(
        default=None, description="null: the pipeline's name."
    )
    timezone: Text = Field(
        default="UTC",
        description="Time zone of the installation's schedules, its "
        "`CRON_SCHEDULE_TIMEZONE`; schedules in another one are refused.",
    )


class Schedule(Section):
    """When the service starts runs by itself."""

    cron: Text = Field(description="Five fields, such as `0 3 * * *`.")
    timezone: Text | None = Field(
        default=None,
        description="Such as `Europe/Berlin`. null: `kubeflow.timezone` on Kubeflow, "
        "else UTC.",
    )
    max_concurrent: Count = Field(
        default=1, description="Runs of the schedule at the same time, at most."
    )
    catch_up: Flag = Field(
        default=False, description="Whether missed runs are made up for."
    )


class Cloud(Section):
    """Where and how a service runs the pipeline."""

    engine: Literal["vertex", "kubeflow"] = Field(
        default="vertex", description="Vertex AI Pipelines or Kubeflow Pipelines."
    )
    root: BucketUri | None = Field(
        default=None,
        description="Folder in a bucket, such as `gs://my-bucket/sluice`; artifacts, "
        "accepted data, inputs and records are in `<root>/<name>/`. Needed to run.",
    )
    image: Text | None = Field(
        default=None,
        description="Image of every node.",
    )
    project: Text | None = Field(
        default=None, description="Google Cloud project, by its id."
    )
    region: Text | None = Field(default=None, description="Such as `europe-west4`.")
    service_account: Text | None = Field(
        default=None,
        description="Account that the nodes run as. null: the service's default.",
    )
    network: Text | None = Field(
        default=None,
        description="Network, such as `projects/12345/global/networks/mine`.",
    )
    labels: Labels = Field(
        default={}, description="Labels of jobs and of what they create."
    )
    env: Environment = Field(
        default={}, description="Environment variables of every node; no secrets."
    )
    nodes: dict[Text, NodeResources] = Field(
        default={},
        description="By node, such as `{Trainer: {memory_gb: 32}}`. What `default` "
        "says is for every node; a node's own keys replace it.",
    )
    beam: CloudBeam = CloudBeam.model_construct()
    push: CloudPush = CloudPush.model_construct()
    kubeflow: Kubeflow | None = None
    schedule: Schedule | None = None

    def of_node(self, node_id: str) -> NodeResources:
        """Returns the settings of a node, with those of ``default``."""
        default = self.nodes.get(DEFAULT, NodeResources())
        own = self.nodes.get(node_id, NodeResources())
        given = {name: getattr(own, name) for name in own.model_fields_set}
        env = {**self.env, **default.env, **own.env}
        return default.model_copy(update={**given, "env": env})
