"""The job that compiles a pipeline with TFX; see ``compile_spec``."""

from __future__ import annotations

import json
import os
import traceback
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from google.protobuf import json_format
from tfx.dsl.components.base.executor_spec import BeamExecutorSpec
from tfx.orchestration.data_types import RuntimeParameter
from tfx.orchestration.kubeflow.v2 import kubeflow_v2_dag_runner as v2

from components.baseline_model.pushed_models import LOOK_UP
from components.tfrecord_gen.exec_properties import SCHEDULE, SPANS, Schedule
from components.watermark.component import MARK, AdvanceWatermark
from components.watermark.watermark import NEW_DATA
from pipeline.config.config import Config
from pipeline.config.serialize import read_stored_config
from pipeline.graph.create_pipeline import create_pipeline
from pipeline.graph.node_registry import INGESTION, PUSHER, SERVING_INGESTION
from runners.cloud.beam_args import beam_args
from runners.cloud.cloud_locations import Upload, cloud_locations
from runners.cloud.compile_spec import COMPILE
from runners.cloud.image import image_of, image_of_node
from runners.cloud.job_inputs import ACCEPT_DATA, BASELINE, SPANS_OF, TRAINER_CONFIG
from runners.cloud.kubeflow_spec import for_kubeflow
from runners.cloud.lint.finding import has_errors
from runners.cloud.lint.lint_pipeline import lint_pipeline
from runners.cloud.push_destinations import push_destinations
from runners.cloud.task_settings import (
    apply_settings,
    set_defaults,
    skip_without_new_data,
    tasks_of,
)
from runners.cloud.trainer_job import (
    TRAINER,
    job_arguments,
    job_kinds,
    needs_custom_job,
)
from runners.local.explain_failure import explain_failure
from runners.local.job_environment import JobEnvironment
from runners.local.job_result import write_result
from sluice.node_kinds import NodeKind, kind_of
from sluice.storage import digest

# Functions of the engines that return a pipeline's exit handler; by name, because the
# engines' packages are above this one.
EXIT_HANDLERS = {"vertex": "runners.vertex.exit_handler:make_exit_handler"}
# Label of the code that the graph was compiled from, which the image must hold.
CODE_LABEL = "sluice-code"
_LABEL_LENGTH = 32
# Stands for the name of the watermark until the spec is complete.
_KEY = "{KEY}"


def compile_job(run_dir: str, forms: list[bool]) -> None:
    """Writes findings, jobs and uploads, or the error, as the result ``COMPILE``.

    Args:
      run_dir: has the config.
      forms: by ``compile_pipeline``'s ``scheduled``; none is compiled where TFX refuses
        a node.
    """
    place = Path(run_dir)
    try:
        JobEnvironment.load(place).enter()
        config = read_stored_config(place / "config.json")
        # Another pipeline than the compiled one: TFX changes those that it compiles.
        found = lint_pipeline(create_pipeline(config, cloud_locations(config)))
        compiled = []
        try:
            for scheduled in forms:
                job, uploads = compile_pipeline(config, scheduled=scheduled)
                files = [(str(item.path), item.uri, item.digest) for item in uploads]
                compiled.append({"job": job, "uploads": files})
        except Exception:
            if not has_errors(found):
                raise
        findings = [item.to_dict() for item in found]
        result = {"findings": findings, "compiled": compiled, "error": None}
        write_result(place, COMPILE, result)
    except Exception as error:
        os.write(2, traceback.format_exc().encode())
        failure = explain_failure(COMPILE, error)
        write_result(place, COMPILE, {"error": vars(failure)})


def compile_pipeline(
    config: Config, *, scheduled: bool = False
) -> tuple[dict[str, Any], list[Upload]]:
    """Returns the compiled job and what it needs in the bucket.

    Args:
      config: with ``cloud.root``.
      scheduled: see ``compile_spec.compile_config``.

    Raises:
      ConfigError: as ``create_pipeline`` does.
      ParseError: the job is not one of KFP's, which would be a mistake here.
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
    kinds = {name: kind_of(node.type) for name, node in nodes.items()}
    images = {name: image_of_node(config, name) for name in nodes}
    for name, node in nodes.items():
        if isinstance(node.executor_spec, BeamExecutorSpec):
            node.executor_spec.beam_pipeline_args = beam_args(config, name)
    for name in job_kinds(config).keys() & nodes.keys():
        if needs_custom_job(cloud.of_node(name)):
            arguments = job_arguments(config, name, images[name])
            _extend_custom_config(nodes[name], arguments)
    _extend_custom_config(nodes[PUSHER], push_destinations(config))
    parameters = _add_parameters(nodes, kinds, scheduled)
    runner = v2.KubeflowV2DagRunner(
        v2.KubeflowV2DagRunnerConfig(
            display_name=config.name,
            default_image=images,
            use_pipeline_spec_2_1=True,
        )
    )
    module, _, function = EXIT_HANDLERS.get(cloud.engine, "").partition(":")
    handler = getattr(import_module(module), function)(config) if module else None
    if handler is not None:
        images[handler.id] = image_of_node(config, handler.id)
        runner.set_exit_handler(handler)
    job = runner.run(pipeline, write_out=False)
    if cloud.engine == "kubeflow":
        records = f"{config.cloud_dir}/kubeflow"
        job = for_kubeflow(job, task_records=records)
    spec = job["pipelineSpec"]
    set_defaults(spec, parameters)
    apply_settings(spec, config, kinds, pinned=not scheduled)
    if scheduled:
        skip_without_new_data(spec, INGESTION, "examples", NEW_DATA)
        _name_watermark(spec)
    code = image_of(config.root).fingerprint
    job["labels"] |= {**cloud.labels, CODE_LABEL: code[:_LABEL_LENGTH]}
    _check(job)
    return job, list(locations.uploads.values())


def _add_schedule(nodes: Mapping[str, Any], config: Config) -> Any:
    """Lets ingestion look for new data; returns the node that ends a run."""
    mark = f"{config.cloud_dir}/state/watermarks/{_KEY}.json"
    ingestion = nodes[INGESTION]
    ingestion.exec_properties[SCHEDULE] = Schedule(
        mark, config.validate_data.stale_after_h
    ).to_json()
    if serving := nodes.get(SERVING_INGESTION):
        # Not read: without new data it is skipped as the readers are.
        serving.spec.inputs["examples"] = ingestion.outputs["examples"]
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
    key = digest.of_bytes(content.encode())[:_LABEL_LENGTH]
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


def _check(job: dict[str, Any]) -> None:
    """Raises if KFP's protos do not have a field of the job."""
    from kfp.pipeline_spec import pipeline_spec_pb2 as kfp

    document = {key: value for key, value in job.items() if key != "pipelineSpec"}
    json_format.ParseDict(document, kfp.PipelineJob())
    spec = json_format.ParseDict(job["pipelineSpec"], kfp.PipelineSpec())
    deployment = json_format.MessageToDict(spec.deployment_spec)
    json_format.ParseDict(deployment, kfp.PipelineDeploymentConfig())
