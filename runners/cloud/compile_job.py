"""Compiles a pipeline with TFX, and lays the section ``cloud`` over its tasks."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any

from tfx.dsl.components.base.base_driver import BaseDriver
from tfx.dsl.components.base.executor_spec import BeamExecutorSpec
from tfx.orchestration.data_types import RuntimeParameter
from tfx.orchestration.kubeflow.v2 import kubeflow_v2_dag_runner as v2
from tfx.orchestration.kubeflow.v2.pipeline_builder import DEFAULT_IMAGE_PATH_KEY

from components.baseline_model.blessed_models import LOOK_UP
from components.tfrecord_gen.settings import SCHEDULE, SPANS, Schedule
from components.watermark import MARK, AdvanceWatermark
from pipeline.config.cloud import Cloud
from pipeline.config.config import Config
from pipeline.graph.create_pipeline import create_pipeline
from pipeline.graph.node_registry import INGESTION, PUSHER, SERVING_INGESTION, TRAINER
from runners.cloud.exit_handler import make_exit_handler
from runners.cloud.image import image_of_node
from runners.cloud.job_inputs import (
    ACCEPT_DATA,
    BASELINE,
    SPANS_OF,
    TRAINER_CONFIG,
    CompiledJob,
    cloud_locations,
)
from runners.cloud.task_settings import (
    apply_settings,
    beam_args,
    job_arguments,
    set_defaults,
    skip_without_new_data,
    tasks_of,
)
from sluice.errors import ConfigError
from sluice.node_kinds import NEW_DATA, NEWEST_INGESTION, NodeKind, kind_of
from sluice.storage import digest

_KEY_LENGTH = 32
# Stands for the name of the watermark until the spec is complete.
_KEY = "{KEY}"


def _is_useful(record: logging.LogRecord) -> bool:
    # TFX says so where it is found.
    return "DEFAULT_IMAGE_PATH_KEY is not found" not in str(record.msg)


def compile_pipeline(config: Config, *, scheduled: bool = False) -> CompiledJob:
    """Returns the compiled job and what it needs in the bucket.

    Args:
      config: with ``cloud.root``.
      scheduled: see ``operations.compile``.

    Raises:
      ConfigError: as ``create_pipeline`` does, or a node cannot run in the service.
    """
    cloud = config.cloud
    assert cloud is not None
    locations = cloud_locations(config)
    pipeline = create_pipeline(
        config,
        locations,
        more=lambda nodes: [_add_schedule(nodes, config)] if scheduled else [],
    )
    nodes = {node.id: node for node in pipeline.components}
    for node in nodes.values():
        _check_node(node, cloud.engine)
    kinds = {name: kind_of(node.type) for name, node in nodes.items()}
    images = {name: image_of_node(config, name) for name in nodes}
    images[DEFAULT_IMAGE_PATH_KEY] = image_of_node(config, "")
    for name, node in nodes.items():
        if isinstance(node.executor_spec, BeamExecutorSpec):
            node.executor_spec.beam_pipeline_args = beam_args(config, name)
    if cloud.of_node(TRAINER).needs_custom_job:
        _extend_custom_config(nodes[TRAINER], job_arguments(config, images[TRAINER]))
    _extend_custom_config(nodes[PUSHER], _push_destinations(config, cloud))
    parameters = _add_parameters(nodes, kinds, scheduled)
    runner = v2.KubeflowV2DagRunner(
        v2.KubeflowV2DagRunnerConfig(
            display_name=config.name,
            default_image=images,
            use_pipeline_spec_2_1=True,
        )
    )
    logging.getLogger("absl").addFilter(_is_useful)
    if cloud.engine == "vertex":
        runner.set_exit_handler(make_exit_handler(config))
    try:
        job = runner.run(pipeline, write_out=False)
    except Exception as error:
        raise ConfigError(
            f"TFX cannot compile the pipeline for a service: {error}"
        ) from error
    spec = job["pipelineSpec"]
    set_defaults(spec, parameters)
    apply_settings(spec, config, kinds, pinned=not scheduled)
    if scheduled:
        skip_without_new_data(spec, INGESTION, "examples", NEW_DATA)
        _name_watermark(spec)
    job["labels"] |= cloud.labels
    return CompiledJob(job, list(locations.uploads.values()))


def _check_node(node: Any, engine: str) -> None:
    """Raises a ``ConfigError`` for what TFX compiles to something that does not run."""
    driver = getattr(type(node), "DRIVER_CLASS", BaseDriver)
    # Where no driver has run, the executors of ours do the same.
    run_there = ("components.", "tfx.") if engine == "vertex" else ("components.",)
    if driver is not BaseDriver and not driver.__module__.startswith(run_there):
        raise ConfigError(
            f"the service does not run the driver of {node.id}, "
            f"{driver.__module__}.{driver.__name__}",
            hint="move what it does into the executor",
        )


def _add_schedule(nodes: Mapping[str, Any], config: Config) -> Any:
    """Lets ingestion look for new data; returns the node that ends a run."""
    mark = f"{config.cloud_dir}/state/watermarks/{_KEY}.json"
    ingestion = nodes[INGESTION]
    ingestion.exec_properties[SCHEDULE] = Schedule(
        watermark=mark, stale_after_h=config.validate_data.stale_after_h
    ).model_dump_json()
    for name in {SERVING_INGESTION, NEWEST_INGESTION} & {*nodes}:
        # Not read: without new data it is skipped as the readers are.
        nodes[name].spec.inputs["examples"] = ingestion.outputs["examples"]
    last = AdvanceWatermark(examples=ingestion.outputs["examples"], watermark=mark)
    for node in nodes.values():
        # A resolver is not a task of its name.
        if not kind_of(node.type).system:
            last.add_upstream_node(node)
    return last


def _name_watermark(spec: dict[str, Any]) -> None:
    """Puts the digest of what the tasks do into the mark's name.

    It covers their properties, with the fingerprints of their code, and the settings of
    the training; neither images nor machines.
    """
    tasks = tasks_of(spec)
    inputs = {name: task.get("inputs") for name, task in tasks.items()}
    settings = spec["root"].get("inputDefinitions")
    content = json.dumps([inputs, settings], sort_keys=True)
    key = digest.of_bytes(content.encode())[:_KEY_LENGTH]
    for name, parameter in ((INGESTION, SCHEDULE), (AdvanceWatermark.__name__, MARK)):
        value = tasks[name]["inputs"]["parameters"][parameter]["runtimeValue"]
        value["constant"] = value["constant"].replace(_KEY, key)


def _add_parameters(
    nodes: Mapping[str, Any], kinds: Mapping[str, NodeKind], scheduled: bool
) -> dict[str, str]:
    """Replaces what changes from run to run by runtime parameters.

    The spans and files of a submitted job have no default: a constant one would be a
    constant cache key, and the service a place where new data is silently not read.

    Returns:
      The default values by name.
    """
    defaults = {}
    for name, node in nodes.items():
        properties, kind = node.exec_properties, kinds[name]
        if kind.ingests and not scheduled:
            properties[SPANS] = RuntimeParameter(name=SPANS_OF[name], ptype=str)
        elif kind.judges_data:
            properties["override"] = RuntimeParameter(name=ACCEPT_DATA, ptype=str)
            defaults[ACCEPT_DATA] = ""
        elif kind.resolver and BASELINE in properties:
            properties[BASELINE] = RuntimeParameter(name=BASELINE, ptype=str)
            defaults[BASELINE] = LOOK_UP
        elif name == TRAINER:
            defaults[TRAINER_CONFIG] = properties["custom_config"]
            properties["custom_config"] = RuntimeParameter(
                name=TRAINER_CONFIG, ptype=str
            )
    return defaults


def _extend_custom_config(node: Any, more: Mapping[str, Any]) -> None:
    properties = node.exec_properties
    config = json.loads(properties["custom_config"]) or {}
    properties["custom_config"] = json.dumps({**config, **more})


def _push_destinations(config: Config, cloud: Cloud) -> dict[str, Any]:
    """Returns where the Pusher registers and deploys; see ``pusher.vertex_push``."""
    destinations: dict[str, Any] = {}
    if cloud.push.registry is not None:
        registry = cloud.push.registry.model_dump()
        destinations["registry"] = {
            **registry,
            "model": registry["model"] or config.name,
            "labels": {**cloud.labels, **registry["labels"]},
            "project": cloud.project,
            "region": cloud.region,
        }
    if cloud.push.endpoint is not None:
        endpoint = cloud.push.endpoint.model_dump()
        destinations["endpoint"] = {**endpoint, "name": endpoint["name"] or config.name}
    return destinations
